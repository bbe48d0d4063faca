"""Learning: from rollouts to skills, and from a bank of them to what a policy is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import Factory, evolve, frozen

from envharness_core.account import charges
from envharness_core.campaigns.asking import FaultError, asked
from envharness_core.campaigns.batch import Ask, Play
from envharness_core.config import RunConfig, SkillsConfig
from envharness_core.data import TaskSummary
from envharness_core.episode import Episode
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EMBEDDER, EXTRACTOR
from envharness_core.plugins import Plugins
from envharness_core.seeds import derive
from envharness_core.skills.bank import BankConfig, SkillBank
from envharness_core.skills.embedder import Embedder
from envharness_core.skills.extractor import Experience, Extractor
from envharness_core.skills.skill import Skill
from envharness_core.spec import ComponentSpec, layers_digest
from envharness_core.store import Store
from envharness_core.tools import Tool
from envharness_core.trajectory import Rollout, Trajectory
from envharness_core.warn import warn


@frozen
class School:
    """What all learning of a run shares.

    Args:
        extractor: who makes skills of rollouts.
        embedder: how skills are compared with tasks; None by their words.
        config: how much is learnt, and given.
        seed: the run's.
        trajectory: loads an episode's trajectory.
        tools: the bridge's.
    """

    extractor: Extractor[Any]
    embedder: Embedder[Any] | None
    config: SkillsConfig
    seed: int
    trajectory: Callable[[Episode], Trajectory]
    tools: tuple[Tool, ...]

    def bank(self, skills: Sequence[Skill] = ()) -> SkillBank:
        """Return a bank that keeps what the config allows, with some skills in it."""
        bank = SkillBank(config=BankConfig(per_task=self.config.per_task, capacity=self.config.capacity))
        bank.add(skills, self.embedder)
        return bank

    def close(self) -> None:
        """Release what extractor and embedder hold."""
        self.extractor.close()
        if self.embedder is not None:
            self.embedder.close()

    def chosen(self, bank: SkillBank, task: TaskSummary) -> tuple[str, ...]:
        """Return what a policy is told for a task, the best first; nothing that was learnt on the task itself."""
        matches = bank.retrieve(
            task.summary,
            self.config.retrieve,
            exclude_task=task.id,
            embedder=self.embedder,
            threshold=self.config.threshold,
            diversity=self.config.diversity,
        )
        return tuple(match.skill.text for match in matches)


def school_of(config: RunConfig, plugins: Plugins, store: Store, tools: Sequence[Tool]) -> School:
    """Return the school of a run.

    Raises:
        ConfigError: extractor or embedder can't be had with this config.
        PluginError: one of them is broken.
    """
    extractor = plugins.create(EXTRACTOR, config.extractor, "extractor")
    embedder = None if config.embedder is None else plugins.create(EMBEDDER, config.embedder, "embedder")
    return School(extractor, embedder, config.skills, config.seed, store.trajectory, tuple(tools))


@frozen
class Learnt:
    """What the rollouts of a task taught.

    Args:
        skills: the best first.
        rollouts, successes: how many graded rollouts there were, and how many of them succeeded.
        problem: why there is nothing, where the extractor broke.
        usage: what making them used of models, by role.
    """

    skills: tuple[Skill, ...]
    rollouts: int = 0
    successes: int = 0
    problem: str = ""
    usage: JsonObject = Factory(dict)


def learn(
    school: School,
    task: TaskSummary,
    condition: str,
    layers: tuple[ComponentSpec, ...],
    episodes: Sequence[Episode],
) -> Play[Learnt]:
    """Have skills made of the graded rollouts of a task; an extractor that breaks costs its task, not the run."""
    rollouts = tuple(Rollout(episode, school.trajectory(episode)) for episode in episodes)
    start = rollouts[0].trajectory.start if rollouts else None
    told = task.summary if start is None else start.instruction
    experience = Experience(task, told, condition, layers, rollouts, school.tools)
    learnt = Learnt((), len(rollouts), len(experience.winners))
    if not rollouts:
        return learnt
    seed = derive("extractor", school.seed, task.id, condition, layers_digest(layers))
    extract = school.extractor.extract
    try:
        ask = partial(_accounted, partial(asked, extract, (list, tuple), experience, seed))
        made, usage = yield Ask(ask, school.extractor.waits)
        learnt = evolve(learnt, usage=usage)
        skills = _sound(school.extractor, made)
    except FaultError as fault:
        warn("extractor_broke", task=task.id, condition=condition, error=str(fault))
        return evolve(learnt, problem=str(fault))
    placed = tuple(_placed(skill, experience) for skill in skills[: school.config.per_task])
    return evolve(learnt, skills=placed)


def _accounted(call: Callable[[], Sequence[object]]) -> tuple[Sequence[object], JsonObject]:
    """Return an answer, and what it cost."""
    with charges() as used:
        made = call()
    return made, used


def _sound(extractor: Extractor[Any], made: Sequence[object]) -> tuple[Skill, ...]:
    """Return what an extractor made; refuse what aren't skills."""
    skills = tuple(skill for skill in made if isinstance(skill, Skill))
    if len(skills) < len(made):
        raise FaultError(f"{type(extractor).__name__}.extract must return skills, got {made!r:.200}")
    return skills


def _placed(skill: Skill, experience: Experience) -> Skill:
    """Return a skill whose provenance is where its extractor was given it, whatever that says."""
    said = skill.provenance
    rollouts = [rolled for rolled in experience.rollouts if rolled.episode.key in said.trajectories]
    return evolve(skill, provenance=experience.provenance(said.extractor, rollouts))
