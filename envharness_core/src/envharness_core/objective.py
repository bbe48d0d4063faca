"""Objectives: what a reshaped task is for, as a gate of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import Generic, Literal, TypeAlias

from attrs import frozen

from envharness_core.component import ConfigT
from envharness_core.episode import Episode

Direction: TypeAlias = Literal["scaffold", "harden", "leave"]
"""Which way a task's difficulty should go."""


class Decision(IntEnum):
    """What to do with a candidate, from the most lenient to the strictest."""

    ACCEPT = 0
    MORE = 1
    """Not decided yet: roll out more of the same."""
    REFINE = 2
    """Keep what works and change the magnitude."""
    REJECT = 3
    """Start over."""


def strictest(*decisions: Decision) -> Decision:
    """Return the strictest of some decisions: a designer's word can only tighten the gate's."""
    return max(decisions)


@frozen
class Judgement:
    """A gate's word on a batch.

    Args:
        decision: what to do.
        direction: which way the candidate should move.
        score: how good it is, in [0, 1]; for a band, the posterior probability of being inside.
        reason: the numbers in a sentence.
        rollouts: with ``MORE``, how many further graded rollouts are wanted; with ``ACCEPT``, how many there may be
            if the designer wants more; 0 for none.
    """

    decision: Decision
    direction: Direction
    score: float
    reason: str
    rollouts: int = 0


class Objective(ABC, Generic[ConfigT]):
    """Judges batches by their outcomes, which come graded and in rollout order, whichever worker was faster.

    Both calls are made first with nothing rolled out, to learn how many rollouts the gate wants, and again whenever
    those have come in. The smallest one::

        class AtMostHalf(Objective):
            summary = "a success rate of at most one half"

            def judge(self, baseline, attempt):
                if len(attempt) < 10:
                    return Judgement(Decision.MORE, "leave", 0.0, "too few", rollouts=10 - len(attempt))
                rate = sum(episode.success for episode in attempt) / len(attempt)
                if rate <= 0.5:
                    return Judgement(Decision.ACCEPT, "leave", 1.0, f"rate {rate:.2f}")
                return Judgement(Decision.REFINE, "harden", 0.0, f"rate {rate:.2f}")
    """

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    summary: str
    """What the objective asks for, as a designer is told it."""
    band: tuple[float, float] | None = None
    """The success rates that are asked for, where the objective is about them."""

    @abstractmethod
    def judge(self, baseline: Sequence[Episode], attempt: Sequence[Episode]) -> Judgement:
        """Judge a candidate's rollouts beside those of the unchanged task."""

    def confirm(
        self, baseline: Sequence[Episode], attempt: Sequence[Episode], confirmation: Sequence[Episode]
    ) -> Judgement:
        """Judge an accepted candidate again on fresh rollouts; by default, by ``judge`` on these alone.

        The attempt was picked for its numbers, among several that were tried, so they flatter it: what counts it in
        must not take it at face value. Asked with no attempt at all, the answer's ``rollouts`` say how many a whole
        confirmation takes.
        """
        return self.judge(baseline, confirmation)
