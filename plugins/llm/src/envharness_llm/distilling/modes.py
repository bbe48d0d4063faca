"""Modes: which rollouts of a task are read together, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal, TypeAlias

from envharness_core import Action, Experience
from envharness_core.trajectory import Rollout

Mode: TypeAlias = Literal["contrast", "failure", "success", "pair"]
"""What is looked for: how both kinds of rollouts differ, lessons of failures, what made successes work, or where one
failure and one success part."""

MODES: tuple[Mode, ...] = ("contrast", "failure", "success", "pair")
"""All modes, in an order in which the first few are of different kinds."""


def rollouts_for(mode: Mode, experience: Experience) -> tuple[Rollout, ...]:
    """Return the rollouts that a mode reads, in rollout order; none where it has nothing to read.

    A contrast takes both kinds of rollouts, and more than the two that a pair has.
    """
    winners, losers = experience.winners, experience.losers
    match mode:
        case "success":
            return winners
        case "failure":
            return losers
        case "contrast":
            return experience.rollouts if winners and losers and len(experience.rollouts) > 2 else ()
        case "pair":
            return _parting_latest(experience) if winners and losers else ()


def _parting_latest(experience: Experience) -> tuple[Rollout, ...]:
    """Return the failure and the success that have most in common before they part; of equals the first."""
    pairs = product(experience.losers, experience.winners)
    chosen = max(pairs, key=lambda pair: _common(*map(_actions, pair)))
    keys = {rolled.episode.key for rolled in chosen}
    return tuple(rolled for rolled in experience.rollouts if rolled.episode.key in keys)


def _actions(rolled: Rollout) -> list[Action | None]:
    return [step.action for step in rolled.trajectory.steps]


def _common(one: Sequence[Action | None], other: Sequence[Action | None]) -> int:
    """Count the actions with which both begin."""
    return next(
        (place for place, (first, second) in enumerate(zip(one, other, strict=False)) if first != second),
        min(len(one), len(other)),
    )
