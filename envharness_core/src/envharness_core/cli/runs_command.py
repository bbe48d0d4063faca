"""``envharness runs``: run folders, listed, pruned and merged."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import click
from rich.table import Table

from envharness_core.cli.options import json_option, print_json
from envharness_core.cli.tables import console, print_summary
from envharness_core.errors import ConfigError
from envharness_core.folders import RunFolder, age_days, find_runs, prune_trajectories, remove_run
from envharness_core.jsondata import Json
from envharness_core.text import printable

_UNITS = {"d": 1.0, "h": 1 / 24, "m": 1 / 1440, "w": 7.0}
_places = click.argument(
    "places", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


class _ListsByDefault(click.Group):
    """A group that lists where no command of its own is named."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["list", *args]
        return super().resolve_command(ctx, args)


@click.group(
    "runs",
    cls=_ListsByDefault,
    context_settings={"ignore_unknown_options": True},
    help="List the run folders at or below FOLDER..., or prune or merge some: envharness runs FOLDER... [--json].",
)
def command() -> None:
    """Say nothing; a subcommand does the work."""


@command.command("list")
@_places
@json_option
def list_runs(places: tuple[Path, ...], as_json: bool) -> None:  # noqa: FBT001
    """List the run folders at or below FOLDER...; runs FOLDER... is short for it."""
    runs = find_runs(places)
    if as_json:
        print_json([run.as_json() for run in runs])
        return
    table = Table("run", "what", "tasks", "accepted", "episodes", "size", "state")
    for run in runs:
        what = ", ".join(str(name).removeprefix("core/") for name in run.config.values())
        tasks = f"{run.designed}" if run.tasks is None else f"{run.designed} of {run.tasks}"
        state = run.state + (", pruned" if run.pruned else "")
        counts = (tasks, str(run.accepted), str(run.episodes), _size(run.size))
        table.add_row(printable(str(run.folder)), what, *counts, state)
    console().print(table)
    for run in runs:
        if run.problem:
            click.echo(f"envharness: {printable(run.problem)}", err=True)
    click.echo(f"{len(runs)} runs, {_size(sum(run.size for run in runs))}")


def _days(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([dhmw])", value)
    if found is None:
        raise click.BadParameter("expected a number and d, h, m or w, such as 30d")
    return float(found[1]) * _UNITS[found[2]]


@command.command("prune")
@_places
@click.option(
    "--older-than", "days", callback=_days, metavar="TIME", help="Last written so long ago: 30d, 12h, 2w."
)
@click.option("--match", "pattern", metavar="GLOB", help="Folders whose name matches, such as 'try-*'.")
@click.option("--folders", is_flag=True, help="Delete whole folders instead of trajectories only.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def prune(
    places: tuple[Path, ...],
    days: float | None,
    pattern: str | None,
    folders: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
) -> None:
    """Take away the trajectories of complete runs at or below FOLDER..., or whole runs; never of one that is running.

    Ends with exit code 1 where one of them was left alone.
    """
    if days is None and pattern is None:
        raise ConfigError("prune: say which runs, with --older-than, --match or both")
    chosen = [
        run for run in find_runs(places) if _is_chosen(run, days, pattern) and (folders or not run.pruned)
    ]
    act: Callable[[RunFolder], int] = remove_run if folders else prune_trajectories
    what = "delete" if folders else "prune the trajectories of"
    for run in chosen:
        click.echo(f"{'would ' if dry_run else ''}{what} {run.folder}: {run.state}, {_size(run.size)}")
    if dry_run or not chosen:
        click.echo(f"{len(chosen)} runs")
        return
    if not yes:
        click.confirm(f"{what} {len(chosen)} runs?", abort=True)
    freed = refused = 0
    for run in chosen:
        try:
            freed += act(run)
        except ConfigError as error:
            refused += 1
            click.echo(f"envharness: {error}", err=True)
    click.echo(f"{len(chosen) - refused} runs, {_size(freed)} freed")
    if refused:
        raise click.exceptions.Exit(1)


@command.command("merge")
@_places
@click.option("--into", required=True, type=click.Path(path_type=Path), help="The new run folder.")
@json_option
def merge(places: tuple[Path, ...], into: Path, as_json: bool) -> None:  # noqa: FBT001
    """Make one run of complete runs that differ only in their tasks; they stay as they are."""
    from envharness_core.campaigns.merge import merge_runs

    summary = merge_runs(list(places), into)
    if as_json:
        print_json(cast("Json", summary))
    else:
        print_summary(summary, into)


def _is_chosen(run: RunFolder, days: float | None, pattern: str | None) -> bool:
    old = days is None or age_days(run) > days
    return old and (pattern is None or fnmatch.fnmatchcase(run.folder.resolve().name, pattern))


def _size(count: int) -> str:
    size, units = float(count), ["B", "kB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"
