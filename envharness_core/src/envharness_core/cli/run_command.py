"""``envharness run``: a campaign, from a config file to a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from envharness_core.campaigns.changes import HARMLESS
from envharness_core.campaigns.estimate import estimate_run
from envharness_core.campaigns.run import run_campaign
from envharness_core.cli.interrupts import draining, kept_what_ended
from envharness_core.cli.logs import configure_logging
from envharness_core.cli.options import (
    clean_stdout,
    config_argument,
    find_beside,
    json_option,
    print_json,
    set_option,
)
from envharness_core.cli.progress import RunProgress
from envharness_core.cli.tables import print_estimate, print_summary
from envharness_core.config import RunConfig, read_config
from envharness_core.errors import ConfigError


@click.command("run")
@config_argument
@click.option(
    "--run-dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Where the run is kept; the same folder goes on with it. Needed but for a dry run.",
)
@click.option(
    "--retry-failed", is_flag=True, help="Play again what the infrastructure failed in earlier sessions."
)
@click.option(
    "--accept-changes",
    "accept",
    multiple=True,
    metavar="KEY",
    help=f"Go on although this key of the config differs: {', '.join(HARMLESS)}; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Estimate rollouts and time, and write nothing.")
@click.option(
    "--probe",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Rollouts that a dry run plays to measure; 0 plays nothing and gives rollouts only.",
)
@set_option
@json_option
def command(
    config_path: Path,
    folder: Path | None,
    retry_failed: bool,  # noqa: FBT001
    accept: tuple[str, ...],
    dry_run: bool,  # noqa: FBT001
    probe: int,
    overrides: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
) -> None:
    """Run the campaign of CONFIG in a folder, or go on with it.

    The first Ctrl-C lets what is being played end, a second one stops at once; either way the same command goes on.
    Ends with exit code 0, or 3 where no episode was graded, candidates were proposed and none could be evaluated, or
    the infrastructure failed too often.
    """
    if folder is None and not dry_run:
        raise ConfigError("--run-dir: where is the run to be kept?")
    configure_logging(None if dry_run else folder)
    config = read_config(config_path, overrides)
    find_beside(config_path.absolute().parent)
    if folder is None or dry_run:
        _estimate(config, probe, as_json=as_json)
    else:
        _run(config, folder, accept, retry_failed=retry_failed, as_json=as_json)


def _run(
    config: RunConfig, folder: Path, accept: tuple[str, ...], *, retry_failed: bool, as_json: bool
) -> None:
    with kept_what_ended(), clean_stdout(as_json), RunProgress() as progress, draining() as stop:
        summary = run_campaign(
            config, folder, listener=progress.update, stop=stop, retry_failed=retry_failed, accept=accept
        )
    if as_json:
        print_json(summary)
    else:
        print_summary(summary, folder)
    problem = _fruitless(summary)
    if problem:
        click.echo(f"envharness: {problem}; see `envharness report --tasks {folder}`", err=True)
        raise click.exceptions.Exit(3)


def _estimate(config: RunConfig, probe: int, *, as_json: bool) -> None:
    with clean_stdout(as_json):
        estimate = estimate_run(config, probe)
    if as_json:
        print_json(estimate.as_json())
    else:
        print_estimate(estimate)
    if estimate.probed and not any(episode.graded for episode in estimate.probed):
        first = estimate.probed[0]
        click.echo(
            f"envharness: no probed episode was graded; the first: {first.outcome}: {first.error}", err=True
        )
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
