"""What a number of successes says about a rate: Beta posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, lgamma, log

CELLS = 200
"""Equal cells of [0, 1] over which a rate's posterior is taken where it has no closed form."""
MIDDLES = tuple((cell + 0.5) / CELLS for cell in range(CELLS))
"""The rates in the middles of these cells."""
_LOG_WIN = tuple(log(rate) for rate in MIDDLES)
_LOG_LOSS = tuple(log(1.0 - rate) for rate in MIDDLES)
_TINY = 1e-300
_PRECISION = 1e-12


def band_posterior(wins: int, rollouts: int, low: float, high: float, prior: float) -> float:
    """Return the posterior probability that a rate lies in [low, high], under a Beta(prior, prior) prior."""
    a, b = wins + prior, rollouts - wins + prior
    return beta_cdf(high, a, b) - beta_cdf(low, a, b)


def cell_posterior(
    wins: int, rollouts: int, prior: float, evidence: Sequence[float] | None = None
) -> tuple[float, ...]:
    """Return the posterior probability of each of the ``CELLS`` cells of a rate, under a Beta(prior, prior) prior.

    Args:
        wins, rollouts: what was counted.
        prior: both parameters of the prior.
        evidence: the logarithm of what else speaks for each cell.
    """
    cells = log_likelihood(wins, rollouts)
    logs = [one + other for one, other in zip(_prior_cells(prior), cells, strict=True)]
    if evidence is not None:
        logs = [one + other for one, other in zip(logs, evidence, strict=True)]
    most = max(logs)
    masses = [exp(value - most) for value in logs]
    total = sum(masses)
    return tuple(mass / total for mass in masses)


def log_likelihood(wins: int, rollouts: int) -> tuple[float, ...]:
    """Return, for each cell, the logarithm of the chance of such counts in one given order."""
    losses = rollouts - wins
    return tuple(wins * won + losses * lost for won, lost in zip(_LOG_WIN, _LOG_LOSS, strict=True))


@lru_cache(maxsize=64)
def _prior_cells(prior: float) -> tuple[float, ...]:
    """Return the logarithm of the prior probability of each cell."""
    below = [beta_cdf(cell / CELLS, prior, prior) for cell in range(CELLS + 1)]
    return tuple(log(max(_TINY, upper - lower)) for lower, upper in pairwise(below))


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
