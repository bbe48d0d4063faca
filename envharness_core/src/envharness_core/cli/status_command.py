"""``envharness status``: how far a run is, from another terminal."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
from rich.table import Table

from envharness_core.cli.options import folder_argument, json_option, opened, print_json
from envharness_core.cli.tables import console
from envharness_core.heartbeat import last_beat
from envharness_core.status import Status, read_status

_PAUSE = 2.0  # seconds
_WORDS = {
    "running": "running",
    "stale": "stale: its session was killed or hangs; the same `envharness {}` goes on with it",
    "stopped": "stopped before its end; the same `envharness {}` goes on with it",
    "complete": "complete",
}


@click.command("status")
@folder_argument
@click.option("--watch", is_flag=True, help="Look again every two seconds until no session is at work.")
@json_option
def command(folder: Path, watch: bool, as_json: bool) -> None:  # noqa: FBT001
    """Show how far the run in RUN_DIR is; it is only read, and a running session notices nothing."""
    status = _looked(folder)
    while watch and status.state == "running":
        _show(folder, status, as_json=as_json, watch=True)
        time.sleep(_PAUSE)
        status = _looked(folder)
    _show(folder, status, as_json=as_json, watch=watch)


def _looked(folder: Path) -> Status:
    beat = last_beat(folder)
    with opened(folder) as store:
        return read_status(store, beat)


def _show(folder: Path, status: Status, *, as_json: bool, watch: bool) -> None:
    if as_json and watch:
        click.echo(json.dumps(status.as_json()))  # an object a line
    elif as_json:
        print_json(status.as_json())
    else:
        if watch and console().is_terminal:
            click.clear()
        console().print(_table(folder, status))


def _table(folder: Path, status: Status) -> Table:
    table = Table(title=f"run {folder}", show_header=False, title_justify="left")
    table.add_row("state", _WORDS[status.state].format("eval" if status.kind == "evaluation" else "run"))
    if status.session is not None:
        pid, host, age = status.session.values()
        table.add_row("session", f"process {pid} on {host}, last sign of life {age} s ago")
    total = "" if status.tasks is None else f" of {status.tasks}"
    kept = f" and {status.kept} kept unchanged" if status.kept else ""
    if status.kind == "campaign":
        table.add_row(
            "tasks designed",
            f"{status.designed}{total}: {status.accepted} accepted{kept}, {status.abandoned} abandoned",
        )
    for stream, outcomes in status.episodes.items():
        table.add_row(
            f"{stream} episodes", ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        )
    table.add_row("excluded", f"{status.excluded} episodes without a verdict")
    if status.rate is not None:
        left = "" if status.left is None else f", about {status.left:.0f} s left"
        table.add_row("pace", f"{status.rate:.3g} episodes a second{left}")
    return table
