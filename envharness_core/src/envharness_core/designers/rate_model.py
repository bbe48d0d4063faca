"""How a task's success rate depends on the knobs of its layers: a Bayesian logistic regression, in plain Python.

The logit of a candidate's rate is its features times the task's coefficients, plus an effect of its own, because
the regression is wrong locally: rollouts of the candidate itself count for more than those of its neighbours. Where
chance alone is known to end some episodes (faults under a tight budget), the rate has a known ceiling: rate = ceiling
* sigmoid(logit). Everything is a pure function of frozen data.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), algorithm 3.1 for the Laplace
approximation, here with the covariance of a linear model plus a nugget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erf, exp, log, sqrt
from random import Random
from typing import TypeAlias

from attrs import frozen

Vector: TypeAlias = tuple[float, ...]
"""Coefficients or features; all of one model have the same length and meaning."""

Matrix: TypeAlias = tuple[Vector, ...]
"""A symmetric matrix, as rows."""

_ROUNDS = 50
_STEP = 1e-6
"""A move of the logits that counts as none."""
_LONGEST = 4.0
"""The most that a logit moves in a round: the scoring overshoots where all rollouts ended alike."""


@frozen
class Gaussian:
    """A normal distribution over coefficients."""

    mean: Vector
    covariance: Matrix

    @classmethod
    def independent(cls, means: Sequence[float], deviations: Sequence[float]) -> Gaussian:
        """Make one whose coefficients are independent, from their means and standard deviations."""
        size = range(len(means))
        return cls(tuple(means), tuple(tuple(deviations[i] ** 2 * (i == j) for j in size) for i in size))


@frozen
class Sample:
    """What was seen of one candidate.

    Args:
        features: its knobs as numbers; usually the first is 1, for the intercept.
        successes: how many of its rollouts succeeded.
        trials: how many were graded, at least 1.
        ceiling: the known share of episodes, in (0, 1], in which its layers leave a success possible.
    """

    features: Vector
    successes: int
    trials: int
    ceiling: float = 1.0


@frozen
class Fit:
    """The posterior of a task's coefficients, and of the logit of each candidate that was tried.

    Args:
        coefficients: for candidates that weren't tried.
        tried: mean and variance of the logit, by the key that the sample had.
        spread: standard deviation of a candidate's own effect, on the logit.
    """

    coefficients: Gaussian
    tried: Mapping[str, tuple[float, float]]
    spread: float

    def logit(self, key: str, features: Vector) -> tuple[float, float]:
        """Return mean and variance of a candidate's logit; its own rollouts count where it was tried."""
        if key in self.tried:
            return self.tried[key]
        mean, variance = projected(self.coefficients, features)
        return mean, variance + self.spread**2

    def in_band(self, key: str, features: Vector, band: tuple[float, float], ceiling: float = 1.0) -> float:
        """Return the probability that a candidate's true rate is in the band: two rates in (0, 1), ascending."""
        mean, variance = self.logit(key, features)
        return within(mean, variance, band[0] / ceiling, band[1] / ceiling)


def fit(prior: Gaussian, samples: Mapping[str, Sample], spread: float = 0.4) -> Fit:
    """Return the Laplace posterior given the rollouts of each candidate that was tried, by a key of its own.

    Finite also where a candidate always or never succeeded: the prior holds it.
    """
    if not samples:
        return Fit(prior, {}, spread)
    seen = list(samples.values())
    reach = [_times(prior.covariance, sample.features) for sample in seen]
    start = [_dot(prior.mean, sample.features) for sample in seen]
    kernel = [
        [_dot(one.features, other) + spread**2 * (i == j) for j, other in enumerate(reach)]
        for i, one in enumerate(seen)
    ]
    pull, root, factor = _mode(kernel, start, seen)
    mean = [m + sum(p * r[k] for p, r in zip(pull, reach, strict=True)) for k, m in enumerate(prior.mean)]
    covariance = _reduced(prior.covariance, reach, root, factor)
    logits = [s + _dot(row, pull) for s, row in zip(start, kernel, strict=True)]
    return Fit(
        Gaussian(tuple(mean), covariance),
        {
            key: (logits[i], max(1e-9, kernel[i][i] - _explained(kernel[i], root, factor)))
            for i, key in enumerate(samples)
        },
        spread,
    )


def within(mean: float, variance: float, low: float, high: float) -> float:
    """Return the probability that a rate is between low and high (both above 0), its logit being normal."""
    deviation = sqrt(variance)
    below_high = _cdf((logit(high) - mean) / deviation) if high < 1.0 else 1.0
    below_low = _cdf((logit(low) - mean) / deviation) if low < 1.0 else 1.0
    return below_high - below_low


def draw(gaussian: Gaussian, random: Random) -> Vector:
    """Draw coefficients: what Thompson sampling takes for the truth, this once."""
    factor = _cholesky([list(row) for row in gaussian.covariance])
    noise = [random.gauss(0.0, 1.0) for _ in gaussian.mean]
    return tuple(
        m + _dot(row, noise[: i + 1]) for i, (m, row) in enumerate(zip(gaussian.mean, factor, strict=True))
    )


def projected(gaussian: Gaussian, features: Vector) -> tuple[float, float]:
    """Return mean and variance of features times coefficients."""
    used = [(i, x) for i, x in enumerate(features) if x]
    mean = sum(x * gaussian.mean[i] for i, x in used)
    rows = gaussian.covariance
    return mean, sum(x * sum(y * rows[i][j] for j, y in used) for i, x in used)


def learned_prior(
    base: Gaussian,
    tasks: Sequence[Mapping[str, Sample]],
    *,
    spread: float = 0.4,
    weight: float = 4.0,
    rounds: int = 8,
) -> Gaussian:
    """Return the prior that the rollouts of earlier tasks suggest: empirical Bayes by EM, ``rounds`` of it.

    The mean is that of the tasks; the covariance is their uncertainty plus how much they differ from each other.
    ``base`` counts as ``weight`` tasks, so that nothing changes where there were none.
    """
    prior = base
    for _ in range(rounds if tasks else 0):
        prior = _pooled(base, [fit(prior, samples, spread).coefficients for samples in tasks], weight)
    return prior


def _pooled(base: Gaussian, posteriors: Sequence[Gaussian], weight: float) -> Gaussian:
    total = weight + len(posteriors)
    parts = [(weight, base), *((1.0, posterior) for posterior in posteriors)]
    size = range(len(base.mean))
    mean = [sum(w * part.mean[k] for w, part in parts) / total for k in size]
    rows = [[0.0] * len(mean) for _ in size]
    for w, part in parts:
        off = [m - centre for m, centre in zip(part.mean, mean, strict=True)]
        for i in size:
            rows[i] = [
                r + w * (c + off[i] * o) for r, c, o in zip(rows[i], part.covariance[i], off, strict=True)
            ]
    return Gaussian(tuple(mean), tuple(tuple(value / total for value in row) for row in rows))


def logit(rate: float) -> float:
    """Return the log odds of a rate in (0, 1)."""
    return log(rate / (1.0 - rate))


def sigmoid(value: float) -> float:
    """Return the rate that has these log odds."""
    return 1.0 / (1.0 + exp(-value)) if value >= 0 else exp(value) / (1.0 + exp(value))


def _mode(
    kernel: list[list[float]], start: Sequence[float], seen: Sequence[Sample]
) -> tuple[list[float], list[float], list[list[float]]]:
    """Find the most probable logits by Fisher scoring: return them as kernel weights, and the curvature there.

    The curvature is the square root of the likelihood's, and the Cholesky factor of I + root kernel root.
    """
    size = range(len(seen))
    offsets = [0.0] * len(seen)
    for _ in range(_ROUNDS):
        slopes = [_slope(sample, s + f) for sample, s, f in zip(seen, start, offsets, strict=True)]
        root = [sqrt(weight) for _, weight in slopes]
        factor = _cholesky([[root[i] * kernel[i][j] * root[j] + (i == j) for j in size] for i in size])
        target = [weight * f + gradient for (gradient, weight), f in zip(slopes, offsets, strict=True)]
        inner = _solved(factor, [r * _dot(row, target) for r, row in zip(root, kernel, strict=True)])
        pull = [t - r * x for t, r, x in zip(target, root, inner, strict=True)]
        moved = [_dot(row, pull) for row in kernel]
        largest = max(abs(new - old) for new, old in zip(moved, offsets, strict=True))
        if largest < _STEP:
            break
        share = min(1.0, _LONGEST / largest)
        offsets = [old + share * (new - old) for new, old in zip(moved, offsets, strict=True)]
    return pull, root, factor


def _slope(sample: Sample, value: float) -> tuple[float, float]:
    """Return the gradient of a sample's log likelihood at a logit, and its expected curvature."""
    reached = sigmoid(value)
    missed = 1.0 - reached
    below = max(1e-12, 1.0 - sample.ceiling * reached)
    gradient = missed * (sample.successes - sample.trials * sample.ceiling * reached) / below
    return gradient, max(1e-9, sample.trials * sample.ceiling * reached * missed * missed / below)


def _reduced(
    covariance: Matrix, reach: Sequence[Sequence[float]], root: list[float], factor: list[list[float]]
) -> Matrix:
    """Return the covariance less what the samples explain of it."""
    halves = [
        _forward(factor, [r * row[k] for r, row in zip(root, reach, strict=True)])
        for k in range(len(covariance))
    ]
    return tuple(
        tuple(value - _dot(halves[i], halves[j]) for j, value in enumerate(row))
        for i, row in enumerate(covariance)
    )


def _explained(row: list[float], root: list[float], factor: list[list[float]]) -> float:
    half = _forward(factor, [r * x for r, x in zip(root, row, strict=True)])
    return _dot(half, half)


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    """Return the lower factor of a positive definite matrix, each row as long as it has to be."""
    factor: list[list[float]] = []
    for i, row in enumerate(matrix):
        line: list[float] = []
        for j in range(i):
            line.append((row[j] - _dot(line, factor[j][:j])) / factor[j][j])
        line.append(sqrt(max(1e-12, row[i] - _dot(line, line))))
        factor.append(line)
    return factor


def _forward(factor: list[list[float]], right: Sequence[float]) -> list[float]:
    found: list[float] = []
    for row, value in zip(factor, right, strict=True):
        found.append((value - _dot(row[:-1], found)) / row[-1])
    return found


def _solved(factor: list[list[float]], right: Sequence[float]) -> list[float]:
    """Solve factor factor' x = right."""
    found = _forward(factor, right)
    for i in range(len(found) - 1, -1, -1):
        later = sum(factor[k][i] * found[k] for k in range(i + 1, len(found)))
        found[i] = (found[i] - later) / factor[i][i]
    return found


def _times(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [_dot(row, vector) for row in matrix]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(one, other, strict=True))


def _cdf(value: float) -> float:
    return 0.5 * (1.0 + erf(value / sqrt(2.0)))
