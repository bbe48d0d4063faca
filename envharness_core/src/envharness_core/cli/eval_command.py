"""``envharness eval``: whether skills help on the untouched benchmark."""

from __future__ import annotations

from pathlib import Path

import click

from envharness_core.cli.compare_command import print_comparison
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
from envharness_core.config import read_config
from envharness_core.evaluation.run import run_evaluation


@click.command("eval")
@config_argument
@click.option(
    "--run-dir",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Where the evaluation is kept; the same folder goes on with it.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    help="The folder of the campaign whose accepted stacks are learnt from.",
)
@click.option(
    "--retry-failed", is_flag=True, help="Play again what the infrastructure failed in earlier sessions."
)
@click.option("--unseal", is_flag=True, help="Score a split that evaluation.seal keeps sealed; once.")
@set_option
@json_option
def command(
    config_path: Path,
    folder: Path,
    source: Path | None,
    retry_failed: bool,  # noqa: FBT001
    unseal: bool,  # noqa: FBT001
    overrides: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
) -> None:
    """Learn skills, and score the policy of CONFIG with and without them on held-out tasks of the bare benchmark.

    Ends with exit code 0, or 3 where nothing was graded or a service failed too often. Ctrl-C as in ``envharness run``.
    """
    configure_logging(folder)
    config = read_config(config_path, overrides)
    find_beside(config_path.absolute().parent)
    with kept_what_ended(), clean_stdout(as_json), RunProgress("evaluation") as progress, draining() as stop:
        summary = run_evaluation(
            config,
            folder,
            source,
            listener=progress.update,
            stop=stop,
            retry_failed=retry_failed,
            unseal=unseal,
        )
    if as_json:
        print_json(summary)
    else:
        print_comparison(summary)
    if not any(row["graded"] for row in summary["conditions"]):  # type: ignore[union-attr, index, call-overload]
        click.echo("envharness: no attempt was graded", err=True)
        raise click.exceptions.Exit(3)
