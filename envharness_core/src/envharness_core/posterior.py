"""What a number of successes says about a rate: Beta posteriors."""

from __future__ import annotations

from math import exp, lgamma, log

_TINY = 1e-300
_PRECISION = 1e-12


def band_posterior(wins: int, rollouts: int, low: float, high: float, prior: float) -> float:
    """Return the posterior probability that a rate lies in [low, high], under a Beta(prior, prior) prior."""
    a, b = wins + prior, rollouts - wins + prior
    return beta_cdf(high, a, b) - beta_cdf(low, a, b)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the probability that a Beta(a, b) variable is at most x.

    Source: the continued fraction of the regularised incomplete beta function, DLMF 8.17.22.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # where the fraction converges slowly, use the symmetry
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x)) / a
    return front / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate 1 + d1/(1 + d2/(1 + ...)) by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, 400):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + term * d)
        c = _away_from_zero(1.0 + term / c)
        value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value


def wilson_interval(wins: int, rollouts: int, z: float = 1.96) -> tuple[float, float]:
    """Return an interval for a rate; [0, 1] where nothing was rolled out.

    Source: Wilson (1927), the score interval; z = 1.96 covers 95 %.
    """
    if rollouts == 0:
        return 0.0, 1.0
    rate, square = wins / rollouts, z * z / rollouts
    centre = (rate + square / 2) / (1 + square)
    half = z * ((rate * (1 - rate) + square / 4) / rollouts) ** 0.5 / (1 + square)
    return max(0.0, centre - half), min(1.0, centre + half)


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
