"""``envharness verify``: proof that no layer manufactured a success."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

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
from envharness_core.verify_jobs import cpus, verify_jobs

_LISTED = 20
"""Disagreements that are printed."""


@click.command("verify")
@folder_argument
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at most; by default one a CPU.")
@plugin_option
@json_option
def command(folder: Path, jobs: int | None, modules: dict[str, str], as_json: bool) -> None:  # noqa: FBT001
    """Replay what reached the bridges in RUN_DIR on bare bridges, and compare the verdicts.

    Modules that the run's config named are looked for in this folder and on PYTHONPATH. Ends with exit code 1 where one
    disagrees, or is missing from a complete run; what can't be replayed, because its bridge fails or shows something
    else now, is not comparable, and with 3 where that holds of all.
    """
    find_beside(Path.cwd())
    with opened(folder) as store, clean_stdout(as_json):
        config = make_config(cast("JsonObject", store.meta("config")))
        plugins = Plugins({**config.plugins, **modules}, sandbox=config.sandbox)
        for name in plugins.modules:
            plugins.load(name)
        found = verify_jobs(store, plugins, jobs or cpus())
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(
            f"{found.episodes} episodes: {found.agreed} agreed, {found.disagreed} disagreed, "
            f"{found.not_comparable} not comparable, {found.ungraded} ungraded"
            + (f"; {found.missing} missing" if found.missing else "")
        )
        if found.reason:
            click.echo(printable(f"  not comparable: {found.reason}"))
        for item in found.disagreements[:_LISTED]:
            click.echo(printable(f"  {item.key} ({item.task}): {item.detail}"))
        if len(found.disagreements) > _LISTED:
            click.echo(f"  and {len(found.disagreements) - _LISTED} more: --json lists all")
    if found.disagreed or found.missing:
        raise click.exceptions.Exit(1)
    if found.not_comparable and found.reason and not found.agreed:
        raise click.exceptions.Exit(3)
