"""The course of a campaign: which tasks are designed when, and with which skills the policy plays them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from envharness_core.campaigns.batch import Play
from envharness_core.campaigns.learning import Learnt, School, learn
from envharness_core.campaigns.result import TaskResult
from envharness_core.campaigns.task import Workshop, design_round, design_task, joined
from envharness_core.config import RunConfig
from envharness_core.converter import structure, unstructure
from envharness_core.data import TaskSummary
from envharness_core.designer import TaskHistory
from envharness_core.episode import Design, Episode
from envharness_core.jsondata import Json, JsonObject
from envharness_core.objective import Decision
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.skill import Skill


@frozen
class Wave:
    """Tasks that are designed at the same time, and learn from finished waves only.

    Args:
        number: from 0 on.
        round: from 0 on.
        tasks: in the run's order.
        last: whether it is of the last round.
    """

    number: int
    round: int
    tasks: tuple[TaskSummary, ...]
    last: bool


def waves(tasks: Sequence[TaskSummary], config: RunConfig) -> tuple[Wave, ...]:
    """Return the waves of a run.

    Rounds follow each other task by task; where the policy learns from wave to wave, all tasks have their first round
    before any has its second.
    """
    size = config.campaign.wave
    rounds = config.campaign.rounds if config.skills.coevolve else 1
    chunks = [tuple(tasks[start : start + size]) for start in range(0, len(tasks), size)]
    ordered = [(number, chunk) for number in range(rounds) for chunk in chunks]
    return tuple(
        Wave(place, number, chunk, last=number == rounds - 1) for place, (number, chunk) in enumerate(ordered)
    )


class Course:
    """Goes through the waves of a run; keeps what became of its tasks, and the skills that were learnt on the way.

    Args:
        shop: what all tasks share.
        school: what all learning shares; None where the policy learns nothing.
        charged: told what an earlier session's lessons have used of models.
    """

    def __init__(
        self, shop: Workshop, school: School | None, charged: Callable[[JsonObject], None] = lambda _: None
    ) -> None:
        self._charged = charged
        self.results: dict[str, TaskResult] = {}
        self._shop = shop
        self._school = school
        self._bank = SkillBank() if school is None else school.bank()
        self._told: dict[str, tuple[str, ...]] = {}

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that were learnt so far, the oldest first."""
        return self._bank.skills

    def close(self) -> None:
        """Release what designer, extractor and embedder hold."""
        self._shop.designer.close()
        if self._school is not None:
            self._school.close()

    def design(
        self, bare: Design, earlier: tuple[TaskHistory, ...], wave: Wave, task: TaskSummary
    ) -> Play[TaskResult]:
        """Design a task of a wave, on top of what earlier rounds accepted."""
        if self._school is None:
            result = yield from design_task(self._shop, task, bare, earlier)
        else:
            result = yield from self._further(self._school, bare, earlier, wave, task)
        self.results[task.id] = result
        return result

    def under(self, bare: Design, task: str) -> Design:
        """Return the design of the unchanged task with the skills that the policy had when it was last designed."""
        return evolve(bare, skills=self._told.get(task, ()))

    def learn(self, wave: Wave, stored: Callable[[str], Json]) -> Play[list[Json]]:
        """Learn from the stacks that a wave has accepted, task by task; return the lessons as plain data.

        Args:
            wave: whose tasks are finished.
            stored: returns what an earlier session has kept of it under ``place(wave)``, or None.
        """
        if self._school is None:
            return []
        kept = stored(place(wave))
        lessons = [] if kept is None else list(structure(kept, tuple[Learnt, ...], place(wave)))
        for lesson in lessons:
            self._charged(lesson.usage)
        for task in wave.tasks if kept is None else ():
            episodes, result = self._accepted(task.id, wave), self.results[task.id]
            if episodes:
                lessons.append((yield from learn(self._school, task, "reshaped", result.layers, episodes)))
        skills = [skill for lesson in lessons for skill in lesson.skills]
        self._bank.add(skills, self._school.embedder)
        return [unstructure(lesson) for lesson in lessons]

    def _further(
        self, school: School, bare: Design, earlier: tuple[TaskHistory, ...], wave: Wave, task: TaskSummary
    ) -> Play[TaskResult]:
        """Design one round of a task for the policy as it is equipped by now."""
        before = self.results.get(task.id)
        if before is not None and before.status != "accepted":
            return before
        self._told[task.id] = school.chosen(self._bank, task)
        layers, spent = ((), 0) if before is None else (before.layers, before.rollouts)
        base = self.under(bare, task.id).under(layers)
        latest = yield from design_round(self._shop, task, base, earlier, wave.round, spent)
        return joined(before, latest)

    def _accepted(self, task: str, wave: Wave) -> tuple[Episode, ...]:
        """Return the rollouts of the stack that a task's round has accepted; none where it has accepted nothing."""
        if self._school is None:
            return ()
        attempts = self.results[task].history.attempts
        accepted = [
            attempt
            for attempt in attempts
            if attempt.decision is Decision.ACCEPT and attempt.candidate.layers
        ]
        if len(accepted) <= wave.round:
            return ()
        episodes = (*accepted[-1].confirmation, *accepted[-1].episodes)
        return episodes[: self._school.config.rollouts]


def place(wave: Wave) -> str:
    """Return where a store keeps the skills of a wave."""
    return f"skills {wave.number}"
