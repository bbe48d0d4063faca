"""``envharness designer show``: what a designer would be told of a task, asking no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
from attrs import evolve

from envharness_core.campaigns.batch import Batch, Play, Rerolls, Rolled, driven, roll
from envharness_core.campaigns.facts import offers
from envharness_core.campaigns.schedule import batch_specs
from envharness_core.campaigns.task import UNLIMITED, Workshop, evidence_of
from envharness_core.campaigns.world import World, bare_design
from envharness_core.cli.logs import configure_logging
from envharness_core.cli.options import (
    clean_stdout,
    find_beside,
    json_option,
    plugin_option,
    print_json,
    set_option,
)
from envharness_core.config import RunConfig, make_config, override_key, read_config, resolve
from envharness_core.data import TaskSummary
from envharness_core.designer import Designer, Evidence
from envharness_core.env import Bridge
from envharness_core.episode import Design, Episode
from envharness_core.errors import ExecutorError, foreign, unknown
from envharness_core.executor import Executor
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import BRIDGE, DESIGNER, EXECUTOR, OBJECTIVE
from envharness_core.plugins import Plugins
from envharness_core.text import printable
from envharness_core.trajectory import Trajectory, read_trajectory

_CHARACTERS = 4  # of a token, as a rule of thumb

_Stage = Literal["diagnose", "propose"]


def _default() -> JsonObject:
    """Return a config that needs no model and no key: what is shown is the llm designer's prompt on Toy24."""
    return {
        "bridge": "toy24",
        "policy": "solver",
        "designer": {"use": "llm", "model": "none/none"},
        "executor": "inline",
    }


class NoBaselineError(Exception):
    """There is nothing to show, because no rollout was graded."""


@click.group("designer")
def command() -> None:
    """Look at designers."""


@command.command("show")
@click.argument("task")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="The run's config; without one it is Toy24, the solver, and the llm designer.",
)
@click.option(
    "--stage",
    type=click.Choice(["diagnose", "propose"]),
    default="diagnose",
    show_default=True,
    help="Before the diagnosis, or before the first proposal.",
)
@click.option(
    "--rollouts",
    type=click.IntRange(min=1, max=1000),
    help="Baseline rollouts to play; without it as many as the campaign would.",
)
@set_option
@plugin_option
@json_option
def show(
    task: str,
    config_path: Path | None,
    stage: _Stage,
    rollouts: int | None,
    overrides: tuple[str, ...],
    modules: dict[str, str],
    as_json: bool,  # noqa: FBT001
) -> None:
    """Print the designer's whole prompt for TASK, a task of any split; no model is asked.

    The baseline is played as a campaign would play it. Ends with exit code 3 where no rollout of it was graded.
    """
    configure_logging()
    config = _config(config_path, overrides)
    plugins = Plugins({**config.plugins, **modules}, sandbox=config.sandbox, settings=config.settings)
    config = resolve(config, plugins)
    try:
        with clean_stdout(as_json):
            shown = _shown(config, plugins, task, stage, rollouts or config.campaign.rollouts)
    except NoBaselineError as error:
        click.echo(f"envharness: {printable(str(error))}", err=True)
        raise click.exceptions.Exit(3) from None
    if as_json:
        tokens = len(shown) // _CHARACTERS
        print_json(
            {
                "task": task,
                "stage": stage,
                "designer": config.designer.as_json(),
                "prompt": shown,
                "characters": len(shown),
                "tokens_estimated": tokens,
            }
        )
    else:
        click.echo(printable(shown))


def _config(path: Path | None, overrides: tuple[str, ...]) -> RunConfig:
    if path is not None:
        find_beside(path.absolute().parent)
        return read_config(path, overrides)
    data = _default()
    for override in overrides:
        override_key(data, override)
    return make_config(data)


def _shown(config: RunConfig, plugins: Plugins, task: str, stage: _Stage, rollouts: int) -> str:
    found = plugins.find(DESIGNER, config.designer.use, "designer")
    designer: Designer[Any] = found.make(found.configure(config.designer.config, "designer"))
    bridge = plugins.create(BRIDGE, config.bridge, "bridge")
    try:
        summary = _task(bridge, task)
        world = World(bridge.capabilities, (summary,), bridge)
        evidence = _evidence(config, plugins, world, designer, rollouts)
        with foreign(f"designer {config.designer.use}"):
            return designer.show(evidence, stage)
    finally:
        bridge.close()


def _task(bridge: Bridge, name: str) -> TaskSummary:
    """Return a task of whichever split has it.

    Raises:
        ConfigError: none has.
    """
    known = {task.id: task for split in bridge.splits for task in bridge.list_tasks(split)}
    if name not in known:
        raise unknown("task", name, known)
    return known[name]


def _evidence(
    config: RunConfig, plugins: Plugins, world: World, designer: Designer[Any], rollouts: int
) -> Evidence:
    """Play a baseline and return what a campaign would show its designer of it."""
    task = world.tasks[0]
    base = bare_design(config, world, task.id)
    with _Table(config, plugins, world) as table:
        played = table.rolled(roll(base, "baseline", Rolled(), rollouts, Rerolls(config.campaign.rerolls)))
        if not played.graded:
            raise NoBaselineError(_excluded(played))
        shown = table.rolled(_demonstrated(config, base, played.graded))
        shop = _workshop(config, plugins, world, designer, table)
    budget = UNLIMITED if config.campaign.budget is None else config.campaign.budget - len(played.played)
    return evidence_of(shop, task, base, played.graded, shown.graded, budget=budget)


def _demonstrated(config: RunConfig, base: Design, baseline: tuple[Episode, ...]) -> Play[Rolled]:
    """Have the demonstrator play until it wins, as a campaign does."""
    rolled = Rolled()
    if config.demonstrator is None or any(episode.success for episode in baseline):
        return rolled
    design = evolve(base, policy=config.demonstrator)
    for _ in range(config.campaign.demonstrations):
        rolled = yield from roll(design, "demonstration", rolled, 1, Rerolls(config.campaign.rerolls))
        if rolled.graded and rolled.graded[-1].success:
            break
    return rolled


class _Table:
    """Plays batches at once, and keeps what was played."""

    def __init__(self, config: RunConfig, plugins: Plugins, world: World) -> None:
        self._config = config
        self._plugins = plugins
        self._seed_in_task = world.capabilities.seed_in_task
        self._executor: Executor = plugins.create(EXECUTOR, config.executor, "executor")
        self._blobs: dict[str, bytes] = {}

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.close()

    def rolled(self, play: Play[Rolled]) -> Rolled:
        """Play all that a procedure asks for."""
        return driven(play, self._episodes)

    def trajectory(self, episode: Episode) -> Trajectory:
        """Return what happened in an episode that was played."""
        return read_trajectory(self._blobs[episode.key])

    def _episodes(self, batch: Batch) -> tuple[Episode, ...]:
        specs = batch_specs(batch, self._config.seed, seed_in_task=self._seed_in_task)
        with foreign(f"executor {self._config.executor.use}", ExecutorError):
            records = list(self._executor.run(iter(specs), self._plugins))
        self._blobs |= {record.episode.key: record.blob for record in records}
        return tuple(sorted((record.episode for record in records), key=lambda episode: episode.index))


def _workshop(
    config: RunConfig, plugins: Plugins, world: World, designer: Designer[Any], table: _Table
) -> Workshop:
    return Workshop(
        objective=plugins.create(OBJECTIVE, config.objective, "objective"),
        designer=designer,
        config=config.campaign,
        limits=config.limits,
        seed=config.seed,
        tools=tuple(world.bridge.tools()),
        env_state_schema=world.bridge.env_state_schema,
        designer_notes=world.bridge.designer_notes,
        resumable=world.capabilities.resumable,
        layers=offers(plugins),
        demonstrator=config.demonstrator,
        trajectory=table.trajectory,
        check=lambda _, layers: tuple(layers),  # nothing is proposed
    )


def _excluded(played: Rolled) -> str:
    first = next((episode for episode in played.excluded), None)
    said = "" if first is None else f"; the first: {first.outcome}: {first.error}"
    return f"no rollout of the baseline was graded{said}"
