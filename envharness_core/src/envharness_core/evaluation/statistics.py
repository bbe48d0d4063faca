"""Paired differences: what two conditions differ by on the same tasks, and what may be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from random import Random
from typing import Literal, TypeAlias

from attrs import frozen

from envharness_core.seeds import derive

Finding: TypeAlias = Literal["gain", "no evidence of gain", "harm"]
"""What may be said of a difference; whoever looks at several comparisons may find one of them by chance."""

CONFIDENCE = 0.95
"""Of every interval; a finding needs that, and a test that agrees."""

_RESAMPLES = 10_000


@frozen
class Difference:
    """What one condition's success rate is above another's, over tasks that both attempted.

    Args:
        tasks: how many tasks both have a graded attempt on.
        mean: the mean over tasks, each task's own over its runs first, in [-1, 1].
        low, high: its bootstrap interval over tasks (percentiles of 10,000 resamples).
        p: how often a difference of this size comes about where the signs of the tasks' differences are chance
            (two-sided sign-flip test over 10,000 flips, the one at hand counted in).
    """

    tasks: int
    mean: float
    low: float
    high: float
    p: float

    @property
    def finding(self) -> Finding:
        """What may be said: the interval leaves 0 out, and the test agrees, which few tasks never can."""
        if self.p > 1 - CONFIDENCE or self.low <= 0 <= self.high:
            return "no evidence of gain"
        return "gain" if self.low > 0 else "harm"

    def sentence(self, one: str, other: str) -> str:
        """Say in a plain sentence what was found."""
        interval = f"{CONFIDENCE:.0%} interval {self.low:+.3f} to {self.high:+.3f}"
        numbers = f"{self.mean:+.3f} ({interval}, {self.tasks} tasks)"
        words = {
            "gain": f"{one} beats {other}: a gain of {numbers}.",
            "harm": f"{one} does worse than {other}: harm, {numbers}.",
            "no evidence of gain": f"No evidence of gain of {one} over {other}: {numbers}.",
        }
        return words[self.finding]


def paired(one: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]]) -> Difference | None:
    """Compare two conditions by what they have in common.

    Args:
        one, other: for each task, the scores of its graded attempts.

    Returns:
        None where they share no task.
    """
    differences = [
        _mean(one[task]) - _mean(other[task]) for task in sorted(one) if one[task] and other.get(task)
    ]
    if not differences:
        return None
    random = Random(derive("bootstrap", [round(item, 12) for item in differences]))
    low, high = _interval(differences, random)
    return Difference(len(differences), _mean(differences), low, high, _sign_flip(differences, random))


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the sample standard deviation of values; None for the latter where there is only one."""
    mean = _mean(values)
    if len(values) < 2:
        return mean, None
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _interval(differences: Sequence[float], random: Random) -> tuple[float, float]:
    size = len(differences)
    means = sorted(sum(random.choices(differences, k=size)) / size for _ in range(_RESAMPLES))
    tail = (1 - CONFIDENCE) / 2
    return means[int(tail * _RESAMPLES)], means[int((1 - tail) * _RESAMPLES) - 1]


def _sign_flip(differences: Sequence[float], random: Random) -> float:
    apart = [abs(item) for item in differences if item]
    seen = abs(sum(differences)) - 1e-9
    if not apart:
        return 1.0
    extreme = 1 + sum(
        abs(
            sum(
                item if bit == "1" else -item
                for item, bit in zip(apart, _bits(len(apart), random), strict=True)
            )
        )
        >= seen
        for _ in range(_RESAMPLES)
    )
    return extreme / (_RESAMPLES + 1)


def _bits(count: int, random: Random) -> str:
    return format(random.getrandbits(count), f"0{count}b")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
