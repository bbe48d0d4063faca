"""Retrieval: the few that fit best, and where wanted not the same advice twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from envharness_core.errors import ConfigError
from envharness_core.skills.skill import Skill

Similarity = Callable[[int, int], float]
"""How like each other two candidates are, by their numbers."""


@frozen
class Match:
    """A skill that was found, and how well it fits the query, in [0, 1]."""

    skill: Skill
    score: float


def pick(
    scores: Sequence[float],
    support: Sequence[int],
    similarity: Similarity,
    k: int,
    *,
    diversity: float = 0.0,
) -> list[int]:
    """Pick the best k by maximal marginal relevance, the best first; ties by support, then order.

    The first is the best match whatever ``diversity`` is; each next one is weighed by its score times
    ``1 - diversity`` less its likeness to the nearest one picked before, times ``diversity``.
    """
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], -support[number], number))
    if not diversity or k < 2:
        return order[: max(0, k)]
    picked, left = order[:1], order[1:]
    nearest = dict.fromkeys(left, -1.0)
    while left and len(picked) < k:
        for number in left:
            nearest[number] = max(nearest[number], similarity(picked[-1], number))
        best = max(
            left, key=lambda number: (1 - diversity) * scores[number] - diversity * nearest[number]
        )  # the first of equals, which are in order already
        picked.append(best)
        left.remove(best)
    return picked


def check_share(name: str, value: float) -> None:
    """Refuse what isn't a number in [0, 1].

    Raises:
        ConfigError: names the parameter.
    """
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name}: must be a number from 0 to 1, got {value!r}")
