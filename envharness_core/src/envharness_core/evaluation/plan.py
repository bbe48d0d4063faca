"""The plan of an evaluation: which tasks, which environments to learn from, and what decides its scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from attrs import frozen

from envharness_core.campaigns.facts import first_facts
from envharness_core.campaigns.world import World, select_tasks
from envharness_core.config import RunConfig, make_config
from envharness_core.converter import structure, unstructure
from envharness_core.data import TaskSummary
from envharness_core.errors import ConfigError
from envharness_core.evaluation.seal import Sealed
from envharness_core.jsondata import JsonObject, copy_object, digest
from envharness_core.plugins import Plugins
from envharness_core.skills.bank import SkillBank
from envharness_core.spec import ComponentSpec
from envharness_core.store import Store

KIND = "evaluation"
"""What a store's ``kind`` says; a campaign's has none."""

_LEARNT = ("original", "reshaped")


@frozen
class Environment:
    """A task to learn from, with the stack that a campaign accepted for it; without a campaign, none."""

    task: TaskSummary
    layers: tuple[ComponentSpec, ...]


@frozen
class Plan:
    """What an evaluation is about.

    Args:
        config: the run's, resolved.
        held_out: the tasks that are scored.
        environments: what the learnt conditions learn from, the same tasks for each.
        banks: the banks that are given rather than learnt, by condition.
    """

    config: RunConfig
    held_out: tuple[TaskSummary, ...]
    environments: tuple[Environment, ...]
    banks: Mapping[str, SkillBank]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, in the config's order."""
        return self.config.evaluation.conditions

    @property
    def learnt(self) -> tuple[str, ...]:
        """The conditions whose skills are learnt here."""
        return tuple(name for name in self.conditions if name in _LEARNT)

    def stack(self, condition: str, environment: Environment) -> tuple[ComponentSpec, ...]:
        """Return the layers under which an environment is played to learn from."""
        return environment.layers if condition == "reshaped" else ()

    def identity(self) -> JsonObject:
        """Return what decides the scores."""
        config = self.config
        told: Any = config.as_json()
        wanted = ("bridge", "policy", "seed", "limits", "plugins", "extractor", "embedder", "skills")
        evaluation = {key: value for key, value in told["evaluation"].items() if key not in ("seal", "banks")}
        return {
            "kind": KIND,
            **{key: told[key] for key in wanted},
            "evaluation": evaluation,
            "environments": {
                place.task.id: digest([layer.as_json() for layer in place.layers])
                for place in self.environments
            },
            "banks": {
                name: digest([unstructure(skill) for skill in bank]) for name, bank in self.banks.items()
            },
        }

    def sealed(self, upstream: str) -> Sealed:
        """Return what a seal's log is told."""
        tasks = tuple(task.id for task in self.held_out)
        return Sealed(upstream, self.config.evaluation.split, tasks, digest(self.identity()))

    def facts(self, plugins: Plugins, world: World) -> JsonObject:
        """Return what the store of a new evaluation begins with."""
        facts: Any = first_facts(self.config, plugins, world)
        facts["world"]["tasks"] = [unstructure(task) for task in self.held_out]
        return {
            **facts,
            "kind": KIND,
            "identity": self.identity(),
            "environments": [
                {"task": place.task.id, "layers": [layer.as_json() for layer in place.layers]}
                for place in self.environments
            ],
        }


def make_plan(config: RunConfig, world: World, source: Path | None) -> Plan:
    """Find what an evaluation needs.

    Args:
        config: the run's, resolved.
        world: its world.
        source: the folder of the campaign whose accepted stacks are learnt from.

    Raises:
        ConfigError: a bank, the campaign or a task isn't there, or doesn't fit.
    """
    evaluation = config.evaluation
    held_out = select_tasks(world.bridge, evaluation.tasks, "evaluation")
    banks = {
        name: _read(name, Path(evaluation.banks[name]))
        for name in evaluation.conditions
        if name in evaluation.banks
    }
    learns = any(name in _LEARNT for name in evaluation.conditions)
    if "reshaped" in evaluation.conditions and source is None:
        raise ConfigError(
            "evaluation.conditions: 'reshaped' learns on the stacks that a campaign accepted: name its folder with "
            "--from, or leave the condition out"
        )
    environments: tuple[Environment, ...] = ()
    if learns:
        environments = (
            tuple(Environment(task, ()) for task in world.tasks)
            if source is None
            else _accepted(config, world, source)
        )
    return Plan(config, held_out, environments, banks)


def _read(condition: str, path: Path) -> SkillBank:
    """Read a bank that is given; one that can't be read as a whole would be scored as another one."""
    bank = SkillBank.read(path)
    if bank.problems:
        raise ConfigError(f"evaluation.banks.{condition}: mend or take out: {'; '.join(bank.problems)}")
    return bank


def _accepted(config: RunConfig, world: World, source: Path) -> tuple[Environment, ...]:
    """Return the tasks that a campaign on the same benchmark has accepted stacks for."""
    with Store.open(source, read_only=True) as store:
        store.require_campaign()
        campaign = make_config(copy_object(store.meta("config")))
        results = store.results()
        complete = store.meta("summary") is not None
    if not complete:
        raise ConfigError(f"--from {source}: the campaign isn't complete; go on with it first")
    if campaign.bridge != config.bridge:
        raise ConfigError(
            f"--from {source}: is about {campaign.bridge.use} with another config than this evaluation's "
            f"{config.bridge.use}"
        )
    known = {task.id: task for task in world.bridge.list_tasks(campaign.tasks.split, None)}
    environments = [
        Environment(
            known[task], structure(cast("Any", result)["layers"], tuple[ComponentSpec, ...], "layers")
        )
        for result in results
        if result["status"] == "accepted" and (task := str(result["task"])) in known
    ]
    if not environments:
        raise ConfigError(
            f"--from {source}: the campaign has accepted no stack, so there is nothing to learn from"
        )
    return tuple(environments)
