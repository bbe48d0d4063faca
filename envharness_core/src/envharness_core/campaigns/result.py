"""Results: what became of a task, and of a whole run, as plain data."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from attrs import frozen

from envharness_core.designer import Attempt, Diagnosis, TaskHistory
from envharness_core.episode import Episode
from envharness_core.jsondata import Json, JsonObject
from envharness_core.spec import ComponentSpec

Status: TypeAlias = Literal["accepted", "kept", "abandoned"]
"""What became of a task: a stack was accepted, it was in order as it is, or it was given up."""


@frozen
class TaskResult:
    """What became of a task.

    Args:
        status: how it ended.
        layers: the stack that was accepted, innermost first.
        reason: the gate's last word, or why the task was given up.
        rollouts: design rollouts, all of them.
        history: everything that was tried.
        fault: whether it was given up because the designer or the objective broke.
    """

    status: Status
    layers: tuple[ComponentSpec, ...]
    reason: str
    rollouts: int
    history: TaskHistory
    fault: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the task has a stack that the gate accepted, be it the unchanged one."""
        return self.status != "abandoned"

    def as_json(self) -> JsonObject:
        """Return the result as plain data."""
        return {
            "task": self.history.task.id,
            "status": self.status,
            "layers": [layer.as_json() for layer in self.layers],
            "reason": self.reason,
            "fault": self.fault,
            "rollouts": self.rollouts,
            "baseline": _rate(self.history.baseline),
            "diagnosis": diagnosis_json(self.history.diagnosis),
            "attempts": [_attempt(attempt) for attempt in self.history.attempts],
        }


def _attempt(attempt: Attempt) -> JsonObject:
    judgement = attempt.judgement
    return {
        "layers": [layer.as_json() for layer in attempt.candidate.layers],
        "rationale": attempt.candidate.rationale,
        "rejected": attempt.rejected or None,
        "validation": _rate(attempt.episodes),
        "confirmation": _rate(attempt.confirmation) if attempt.confirmation else None,
        "decision": attempt.decision.name.lower(),
        "reason": judgement.reason if judgement else attempt.rejected,
    }


def diagnosis_json(diagnosis: Diagnosis | None) -> Json:
    """Return a diagnosis as plain data, without the designer's own notes."""
    if diagnosis is None:
        return None
    return {
        "flaw": diagnosis.flaw,
        "evidence": diagnosis.evidence,
        "boundary": diagnosis.boundary,
        "headroom": diagnosis.headroom,
        "reliance": diagnosis.reliance,
        "direction": cast("str", diagnosis.direction),
    }


def _rate(episodes: tuple[Episode, ...]) -> JsonObject:
    return {
        "successes": sum(episode.success for episode in episodes),
        "graded": sum(episode.graded for episode in episodes),
        "played": len(episodes),
    }
