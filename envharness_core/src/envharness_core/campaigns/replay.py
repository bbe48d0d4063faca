"""Replay: a stored campaign's decisions made again from its stored episodes, without env, policy or executor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from attrs import evolve, frozen

from envharness_core.campaigns.batch import Batch, Play
from envharness_core.campaigns.facts import Facts, read_facts
from envharness_core.campaigns.result import TaskResult
from envharness_core.campaigns.schedule import batch_specs
from envharness_core.campaigns.task import Workshop, design_task
from envharness_core.config import RunConfig, make_config, override_key
from envharness_core.converter import structure
from envharness_core.designer import TaskHistory
from envharness_core.differences import differences
from envharness_core.episode import Design, Episode
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.jsondata import JsonObject, copy_object
from envharness_core.kinds import DESIGNER, LAYER, OBJECTIVE
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec, layers_digest
from envharness_core.store import Store

_ASKABLE = ("objective", "designer", "campaign")


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
    if store.meta("pruned"):
        raise CheckpointError(f"{store.folder}: its trajectories were pruned, and designers read them")
    config = _config(store, overrides)
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

    def run(self) -> Iterator[Replayed]:
        """Yield what became of each task, in the run's order; of an undecided one only its id."""
        for part in self._facts.parts:
            histories: list[TaskHistory] = []
            for start in range(0, len(part), self._config.campaign.wave):
                earlier = tuple(histories)
                for task in part[start : start + self._config.campaign.wave]:
                    if task not in self._stored:
                        yield Replayed(task, "", "")
                        continue
                    replayed, result = self._designed(task, earlier)
                    histories += [] if result is None else [result.history]
                    yield replayed

    def _designed(self, task: str, earlier: tuple[TaskHistory, ...]) -> tuple[Replayed, TaskResult | None]:
        stored = self._stored[task]
        status = str(stored["status"])
        summary = next(item for item in self._facts.tasks if item.id == task)
        config = self._config
        bare = Design(config.bridge, self._facts.upstream, task, (), config.policy, config.limits)
        shop = evolve(self._shop, check=lambda layers: self._checked(task, layers))
        try:
            result = self._driven(design_task(shop, summary, bare, earlier))
        except _MissingError as missing:
            return Replayed(task, status, "", needs=str(missing)), None
        now = json.loads(json.dumps(result.as_json()))
        changes = tuple(differences(stored, now))
        return Replayed(task, status, result.status, changes), result

    def _driven(self, play: Play[TaskResult]) -> TaskResult:
        try:
            batch = next(play)
            while True:
                batch = play.send(self._episodes(batch))
        except StopIteration as stop:
            return cast("TaskResult", stop.value)
        finally:
            play.close()

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
            layers=facts.layers,
            demonstrator=config.demonstrator,
            trajectory=self._store.trajectory,
            check=lambda layers: tuple(layers),
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
