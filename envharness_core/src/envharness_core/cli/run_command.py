"""``envharness run``: a campaign, from a config file to a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from envharness_core.campaigns.run import run_campaign
from envharness_core.cli.options import (
    clean_stdout,
    config_argument,
    configure_logging,
    find_beside,
    json_option,
    print_json,
    set_option,
)
from envharness_core.cli.progress import RunProgress
from envharness_core.cli.tables import print_summary
from envharness_core.config import read_config


@click.command("run")
@config_argument
@click.option(
    "--run-dir",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    help="Where the run is kept; the same folder goes on with it.",
)
@set_option
@json_option
def command(config_path: Path, folder: Path, overrides: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """Run the campaign of CONFIG in a folder, or go on with it.

    Ends with exit code 0, or 3 where no episode was graded, or candidates were proposed and none could be evaluated.
    """
    configure_logging()
    config = read_config(config_path, overrides)
    find_beside(config_path.absolute().parent)
    try:
        with clean_stdout(as_json), RunProgress() as progress:
            summary = run_campaign(config, folder, listener=progress.update)
    except KeyboardInterrupt:
        click.echo("interrupted; what had ended is kept: run the same command to go on", err=True)
        raise click.exceptions.Exit(130) from None
    if as_json:
        print_json(summary)
    else:
        print_summary(summary, folder)
    problem = _fruitless(summary)
    if problem:
        click.echo(f"envharness: {problem}; see `envharness report --tasks {folder}`", err=True)
        raise click.exceptions.Exit(3)


def _fruitless(summary: Any) -> str:
    if not summary["episodes"]["graded"]:
        return "no episode was graded"
    if summary["faults"] and summary["faults"] == summary["tasks"]:
        return "every task was lost to a broken designer or objective"
    candidates = summary["candidates"]
    if candidates["proposed"] and not candidates["evaluated"]:
        return f"0 candidates evaluated, {candidates['proposed']} proposed"
    return ""
