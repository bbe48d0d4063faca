"""``envharness export``: a run's episodes as JSON lines, or its accepted stacks as a benchmark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from envharness_core.cli.options import folder_argument, opened
from envharness_core.store import Store
from envharness_core.whole_file import whole_file


@click.command("export")
@folder_argument
@click.option("--out", type=click.Path(path_type=Path), help="Write there instead of to stdout.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl"]),
    default="jsonl",
    show_default=True,
    help="One episode a line.",
)
@click.option(
    "--stacks",
    type=click.Path(path_type=Path),
    help="Write the accepted stacks as a reshaped benchmark, a file that ends in .json, and no episodes.",
)
def command(folder: Path, out: Path | None, form: str, stacks: Path | None) -> None:
    """Write what the run in RUN_DIR played, an episode a line, with secrets redacted.

    Ends with exit code 1 where an episode is damaged and was left out.
    """
    del form  # there is one
    if stacks is not None:
        _export_stacks(folder, stacks, out)
        return
    with opened(folder) as store, _written(out) as file:
        count, damaged = _export_lines(store, file)
    if out is not None:
        click.echo(f"{out}: {count} episodes")
    if damaged:
        raise click.exceptions.Exit(1)


def _export_lines(store: Store, file: BinaryIO) -> tuple[int, int]:
    from envharness_core.export import Damaged, export_lines

    count = damaged = 0
    for line in export_lines(store):
        if isinstance(line, Damaged):
            damaged += 1
            click.echo(f"envharness: left out episode {line.key}: {line.problem}", err=True)
        else:
            count += 1
            file.write(line)
    return count, damaged


def _export_stacks(folder: Path, path: Path, out: Path | None) -> None:
    from envharness_core.campaigns.reshape import reshape
    from envharness_core.errors import ConfigError
    from envharness_core.reshaped import SUFFIX, write_reshaped

    if out is not None:
        raise ConfigError("--out: --stacks names its file itself; give one of them")
    if path.suffix != SUFFIX:
        raise ConfigError(
            f"--stacks {path}: its name must end in {SUFFIX}, by which it is told from a bridge"
        )
    with opened(folder) as store:
        made = reshape(store)
    write_reshaped(path, made)
    click.echo(f"{path}: {len(made.tasks)} tasks")


@contextmanager
def _written(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file that appears whole, or stdout."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as file:
        yield file
