"""``envharness tasks``: what there is to play."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from envharness_core.cli.options import clean_stdout, component, json_option, plugin_option, print_json
from envharness_core.cli.tables import console, task_column
from envharness_core.converter import unstructure
from envharness_core.data import TaskSummary
from envharness_core.errors import BridgeError, ConfigError, foreign
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import BRIDGE
from envharness_core.plugins import Plugins
from envharness_core.reshaped import is_reshaped, read_reshaped
from envharness_core.spec import ComponentSpec
from envharness_core.text import printable

_WIDE = 200
"""Columns where there is no terminal: ids may be long."""


@click.command("tasks")
@click.argument("bridge")
@click.option("--split", default=None, help="One split instead of all.")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="The first so many of each split.")
@plugin_option
@json_option
def command(
    bridge: str,
    split: str | None,
    limit: int | None,
    modules: dict[str, str],
    as_json: bool,  # noqa: FBT001
) -> None:
    """List the tasks of BRIDGE: a name, {use = "name", option = value}, or a reshaped benchmark's file.json."""
    if is_reshaped(bridge):
        _list_reshaped(Path(bridge), split, limit, Plugins(modules), as_json=as_json)
        return
    spec = component(bridge, "bridge")
    with (
        clean_stdout(as_json),
        foreign(f"bridge {spec.use}", BridgeError),
        Plugins(modules).create(BRIDGE, spec, "bridge") as made,
    ):
        if split is not None:
            try:
                made.check_split(split)
            except ConfigError as error:
                raise ConfigError(f"--split: {error}") from error
        splits = made.splits if split is None else (split,)
        tasks = [task for name in splits for task in made.list_tasks(name, limit)]
    if as_json:
        print_json([_row(task) for task in tasks])
        return
    table = Table(task_column(), "split", "summary", "metadata")
    for task in tasks:
        details = ", ".join(f"{key} {value}" for key, value in task.metadata.items())
        table.add_row(task.id, task.split, task.summary, details)
    console(width=_WIDE).print(table)
    click.echo(f"{len(tasks)} tasks")


def _list_reshaped(
    path: Path, split: str | None, limit: int | None, plugins: Plugins, *, as_json: bool
) -> None:
    if split is not None:
        raise ConfigError("--split: a reshaped benchmark has none")
    with clean_stdout(as_json):
        tasks = read_reshaped(path, plugins).tasks[:limit]
    if as_json:
        print_json([unstructure(task) for task in tasks])
        return
    table = Table(task_column(), "layers", "successes of rollouts")
    for task in tasks:
        rates = [
            f"{name} {rate['successes']}/{rate['graded']}"
            for name, rate in task.metrics.items()
            if isinstance(rate, dict)
        ]
        layers = "\n".join(_told(layer) for layer in task.layers) or "none: in order as it is"
        table.add_row(task.id, layers, "\n".join(rates))
    console().print(table)
    click.echo(f"{len(tasks)} tasks")


def _told(layer: ComponentSpec) -> str:
    inside = ", ".join(f"{key}={value!s:.60}" for key, value in layer.config.items())
    return printable(f"{layer.use}({inside})")


def _row(task: TaskSummary) -> JsonObject:
    return {"id": task.id, "split": task.split, "summary": task.summary, "metadata": task.metadata}
