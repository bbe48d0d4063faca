"""``envharness replay``: a run's decisions, made again from what it stored."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from envharness_core.campaigns.replay import Replay, Replayed, replay_run
from envharness_core.cli.options import (
    clean_stdout,
    find_beside,
    folder_argument,
    json_option,
    opened,
    plugin_option,
    print_json,
)
from envharness_core.config import make_config
from envharness_core.jsondata import JsonObject
from envharness_core.plugins import Plugins
from envharness_core.text import printable

_SHOWN = 6  # changes of a task


@click.command("replay")
@folder_argument
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="A.B=VALUE",
    help="What if: another key of objective, designer or campaign; repeatable.",
)
@plugin_option
@json_option
def command(folder: Path, overrides: tuple[str, ...], modules: dict[str, str], as_json: bool) -> None:  # noqa: FBT001
    """Make the decisions of the run in RUN_DIR again from its stored episodes: no benchmark, no policy, no rollouts.

    Ends with exit code 1 where something else is decided, or for other reasons. With --set, which asks what other
    settings would have decided, differences are the answer, and it ends with 0.
    """
    find_beside(Path.cwd())
    with opened(folder) as store, clean_stdout(as_json):
        config = make_config(cast("JsonObject", store.meta("config")))
        plugins = Plugins({**config.plugins, **modules}, sandbox=config.sandbox)
        replay = replay_run(store, plugins, overrides)
    if as_json:
        print_json(replay.as_json())
    else:
        _print(replay)
    if not overrides and not replay.same:
        raise click.exceptions.Exit(1)


def _print(replay: Replay) -> None:
    for task in replay.tasks:
        if not task.same:
            _print_task(task)
    told = replay.as_json()
    accepted = cast("dict[str, int]", told["accepted"])
    same, different, waiting = told["same"], len(cast("list[object]", told["different"])), told["open"]
    click.echo(
        f"{told['tasks']} tasks: {same} decided the same, {different} otherwise, "
        f"{len(cast('list[object]', waiting))} need rollouts that aren't stored; "
        f"accepted: {accepted['stored']} in the run, {accepted['replayed']} now"
        + (f"; {replay.unfinished} not finished in the run" if replay.unfinished else "")
    )


def _print_task(task: Replayed) -> None:
    if task.needs:
        click.echo(printable(f"{task.task}: {task.stored} in the run; to go on now it needs {task.needs}"))
        return
    click.echo(printable(f"{task.task}: {task.stored} in the run, {task.status} now"))
    for change in task.changes[:_SHOWN]:
        click.echo(printable(f"    {change:.300}"))
    if len(task.changes) > _SHOWN:
        click.echo(f"    and {len(task.changes) - _SHOWN} more")
