"""Replay: a stored campaign's decisions made again from its stored episodes, without env, policy or executor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from attrs import evolve, frozen

from envharness_core.campaigns.batch import Batch, driven
from envharness_core.campaigns.course import Course, Wave, waves
from envharness_core.campaigns.facts import Facts, read_facts
from envharness_core.campaigns.learning import school_of
from envharness_core.campaigns.result import TaskResult
from envharness_core.campaigns.schedule import batch_specs
from envharness_core.campaigns.task import Workshop
from envharness_core.config import RunConfig, make_config, override_key
from envharness_core.converter import structure
from envharness_core.data import TaskSummary
from envharness_core.designer import TaskHistory
from envharness_core.differences import differences
from envharness_core.episode import Design, Episode
from envharness_core.errors import CheckpointError, ConfigError, ProviderError
from envharness_core.jsondata import JsonObject, copy_object
from envharness_core.kinds import DESIGNER, LAYER, OBJECTIVE
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec, layers_digest
from envharness_core.store import Store

_ASKABLE = ("objective", "designer", "campaign", "settings")


@frozen
class Replayed:
    """What became of a task's decisions.

    Args:
        task: its id.
        stored: its status in the run; empty where the run hasn't finished it.
        status: its status now; empty where rollouts are missing.
        changes: what differs, a line each.
        needs: which rollouts it would take to go on, where they aren't stored; empty for none.
    """

    task: str
    stored: str
    status: str
    changes: tuple[str, ...] = ()
    needs: str = ""

    @property
    def same(self) -> bool:
        """Whether the same was decided, for the same reasons."""
        return not self.changes and not self.needs


@frozen
class Replay:
    """What became of a run's decisions; ``unfinished`` counts the tasks that the run hasn't decided."""

    tasks: tuple[Replayed, ...]
    unfinished: int

    @property
    def same(self) -> bool:
        """Whether every task was decided as in the run."""
        return all(task.same for task in self.tasks)

    def as_json(self) -> JsonObject:
        """Return the counts, and each task that isn't the same."""
        other = [task for task in self.tasks if not task.same]
        in_order = ("accepted", "kept")
        return {
            "tasks": len(self.tasks),
            "same": len(self.tasks) - len(other),
            "unfinished": self.unfinished,
            "accepted": {
                "stored": sum(task.stored in in_order for task in self.tasks),
                "replayed": sum(task.status in in_order for task in self.tasks),
            },
            "different": [_told(task) for task in other if not task.needs],
            "open": [_told(task) for task in other if task.needs],
        }


class _MissingError(Exception):
    """A procedure asked for rollouts that aren't stored."""


def replay_run(
    store: Store,
    plugins: Plugins,
    overrides: Sequence[str] = (),
    heard: Callable[[Replayed], None] = lambda _: None,
) -> Replay:
    """Make every decision of a run again from its stored episodes, and compare.

    Args:
        store: the run's, for reading.
        plugins: where objective, designer and layers are looked up.
        overrides: ``a.b=value`` each, to ask what another objective, designer or budget would have decided. A task
            that would need rollouts which aren't stored is left open there, and later designs don't learn from it.
        heard: called after each task.

    Raises:
        ConfigError: an override is wrong, or of what decides the rollouts themselves.
        CheckpointError: the run was made by a version that wrote down too little, or its trajectories were pruned.
    """
    store.require_campaign()
    if store.meta("pruned"):
        raise CheckpointError(f"{store.folder}: its trajectories were pruned, and designers read them")
    config = _config(store, overrides)
    plugins = plugins.working_in(store.folder, config.settings, replaying=True)
    replayer = _Replayer(store, plugins, config, read_facts(store))
    tasks, unfinished = [], 0
    for replayed in replayer.run():
        if replayed.stored:
            tasks.append(replayed)
            heard(replayed)
        else:
            unfinished += 1
    return Replay(tuple(tasks), unfinished)


class _Replayer:
    """Drives the design of each task over the store, wave by wave, as the run did."""

    def __init__(self, store: Store, plugins: Plugins, config: RunConfig, facts: Facts) -> None:
        self._store = store
        self._plugins = plugins
        self._config = config
        self._facts = facts
        self._stored = {str(result["task"]): result for result in store.results()}
        self._played = {
            (design["task"], layers_digest(_specs(design["layers"]))) for design in store.designs()
        }
        self._shop = self._workshop()
        self._school = school_of(config, plugins, store, facts.tools) if config.skills.coevolve else None

    def run(self) -> Iterator[Replayed]:
        """Yield what became of each task, in the run's order; of an undecided one only its id."""
        for part in self._facts.parts:
            tasks = [task for task in self._facts.tasks if task.id in set(part)]
            yield from self._part(tasks)

    def _part(self, tasks: Sequence[TaskSummary]) -> Iterator[Replayed]:
        course = Course(self._shop, self._school)
        open_tasks: dict[str, Replayed] = {}
        for wave in waves(tasks, self._config):
            earlier = tuple(course.results[task.id].history for task in tasks if task.id in course.results)
            for task in wave.tasks:
                if task.id in self._stored and task.id not in open_tasks:
                    problem = self._designed(course, earlier, wave, task)
                    if problem is not None:
                        open_tasks[task.id] = problem
            if all(task.id in course.results for task in wave.tasks):
                driven(course.learn(wave, self._store.meta), self._episodes)
        for task in tasks:
            yield open_tasks.get(task.id) or self._compared(task.id, course.results.get(task.id))

    def _designed(
        self, course: Course, earlier: tuple[TaskHistory, ...], wave: Wave, task: TaskSummary
    ) -> Replayed | None:
        """Design a task of a wave again; return what it lacks, or None."""
        config = self._config
        bare = Design(config.bridge, self._facts.upstream, task.id, (), config.policy, config.limits)
        try:
            driven(course.design(bare, earlier, wave, task), self._episodes)
        except (_MissingError, ProviderError) as missing:
            course.results.pop(task.id, None)
            return Replayed(task.id, str(self._stored[task.id]["status"]), "", needs=str(missing))
        return None

    def _compared(self, task: str, result: TaskResult | None) -> Replayed:
        if result is None:
            return Replayed(task, "", "")
        stored = self._stored[task]
        now = json.loads(json.dumps(result.as_json()))
        return Replayed(task, str(stored["status"]), result.status, tuple(differences(stored, now)))

    def _episodes(self, batch: Batch) -> tuple[Episode, ...]:
        specs = batch_specs(batch, self._config.seed, seed_in_task=self._facts.seed_in_task)
        episodes = [self._store.get(spec.key) for spec in specs]
        missing = sum(episode is None for episode in episodes)
        if missing:
            layers = ", ".join(_shown(layer) for layer in batch.design.layers) or "the unchanged task"
            raise _MissingError(f"{missing} of {len(specs)} rollouts of {batch.stream!r} on {layers}")
        return tuple(cast("list[Episode]", episodes))

    def _checked(self, task: str, layers: Sequence[ComponentSpec]) -> tuple[ComponentSpec, ...]:
        """Say of layers what their check on the bridge said in the run, without the bridge.

        What was played had passed. What was refused before any rollout is refused in the same words. Of what the run
        never tried only the config is checked: its rollouts aren't stored anyway.
        """
        full = tuple(self._full(layer, f"layers[{index}]") for index, layer in enumerate(layers))
        if (task, layers_digest(full)) in self._played:
            return full
        for attempt in cast("list[Any]", self._stored[task]["attempts"]):
            tried = _specs(attempt["layers"])
            if (
                attempt["rejected"]
                and not attempt["validation"]["played"]
                and tried == tuple(layers)[-len(tried) :]
            ):
                raise ConfigError(attempt["rejected"])
        return full

    def _full(self, layer: ComponentSpec, where: str) -> ComponentSpec:
        found = self._plugins.find(LAYER, layer.use, where)
        found.configure(layer.config, where)
        return evolve(layer, use=found.full_name)

    def _workshop(self) -> Workshop:
        config, facts = self._config, self._facts
        return Workshop(
            objective=self._plugins.create(OBJECTIVE, config.objective, "objective"),
            designer=self._plugins.create(DESIGNER, config.designer, "designer"),
            config=config.campaign,
            limits=config.limits,
            seed=config.seed,
            tools=facts.tools,
            env_state_schema=facts.env_state_schema,
            designer_notes=facts.designer_notes,
            resumable=facts.resumable,
            layers=facts.layers,
            demonstrator=config.demonstrator,
            trajectory=self._store.trajectory,
            check=self._checked,
        )


def _config(store: Store, overrides: Sequence[str]) -> RunConfig:
    data = copy_object(store.meta("config"))
    for override in overrides:
        if override.partition("=")[0].partition(".")[0].strip() not in _ASKABLE:
            raise ConfigError(
                f"--set {override}: decides which rollouts there are; "
                f"what can be asked of stored ones is {', '.join(_ASKABLE)}"
            )
        override_key(data, override)
    config, stored = make_config(data), make_config(cast("JsonObject", store.meta("config")))
    if config.campaign.wave != stored.campaign.wave:
        raise ConfigError("--set campaign.wave: who learns from whom is part of the stored run")
    return config


def _specs(layers: object) -> tuple[ComponentSpec, ...]:
    return structure(layers, tuple[ComponentSpec, ...], "layers")


def _shown(layer: ComponentSpec) -> str:
    return f"{layer.use}({', '.join(f'{key}={value!s:.40}' for key, value in layer.config.items())})"


def _told(task: Replayed) -> JsonObject:
    return {
        "task": task.task,
        "stored": task.stored,
        "replayed": task.status or None,
        "changes": list(task.changes),
        "needs": task.needs or None,
    }
