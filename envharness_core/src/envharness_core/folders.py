"""Run folders: what is found in a place, and what may be taken away of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from attrs import asdict, frozen

from envharness_core import heartbeat, store
from envharness_core.errors import ConfigError, EnvHarnessError
from envharness_core.jsondata import JsonObject
from envharness_core.status import Status, read_status
from envharness_core.store import Store, locked

_OURS = (
    store.FILE,
    store.DRAFT,
    store.LOCK,
    heartbeat.FILE,
    f".{heartbeat.FILE}",
    "log.jsonl",
    "report.html",
)
"""How the names of files begin that runs leave in their folders."""


@frozen
class RunFolder:
    """A run folder at a glance.

    Args:
        folder: where it is.
        state: as in ``Status``; ``damaged`` where its store can't be read.
        config: bridge, policy, objective and designer, by name.
        tasks: how many it has; None where its store doesn't say.
        designed, accepted: how many of them are finished, and in order.
        episodes: how many are stored.
        size: bytes of all its files.
        modified: when its store was last written, in seconds since the epoch.
        pruned: whether its trajectories were pruned.
        problem: why it can't be read; empty for nothing.
    """

    folder: Path
    state: str
    config: JsonObject
    tasks: int | None
    designed: int
    accepted: int
    episodes: int
    size: int
    modified: float
    pruned: bool
    problem: str = ""

    def as_json(self) -> JsonObject:
        """Return it as plain data."""
        return {**asdict(self), "folder": str(self.folder), "problem": self.problem or None}


def find_runs(places: Iterable[Path]) -> list[RunFolder]:
    """Return the run folders at or below some places, by path.

    Raises:
        ConfigError: a place isn't there.
    """
    folders: dict[Path, Path] = {}
    for place in places:
        if not place.is_dir():
            raise ConfigError(f"{place}: there is no such folder")
        for path in sorted(place.rglob(store.FILE)):
            folders.setdefault(path.parent.resolve(), path.parent)
    return [_glance(folder) for folder in folders.values()]


def prune_trajectories(run: RunFolder) -> int:
    """Take a complete run's trajectories away, which are most of it; return the bytes that were freed.

    Counts, rates and results stay. What reads trajectories afterwards (verify, replay, export's steps) says so.

    Raises:
        ConfigError: the run isn't complete, or in use.
    """
    if run.state != "complete":
        raise ConfigError(f"{run.folder}: is {run.state}; a run needs its trajectories until it is complete")
    with locked(run.folder), Store.open(run.folder) as opened:
        opened.prune_trajectories()
    return run.size - _size(run.folder)


def remove_run(run: RunFolder) -> int:
    """Delete a run folder; return the bytes that were freed.

    Raises:
        ConfigError: it holds what no run makes, or is in use.
    """
    if run.state == "running":
        raise ConfigError(f"{run.folder}: left alone, because it is running")
    foreign = sorted(str(path.relative_to(run.folder)) for path in _foreign(run.folder))
    if foreign:
        raise ConfigError(
            f"{run.folder}: left alone, because it holds what no run makes: {', '.join(foreign[:5])}"
        )
    with locked(run.folder):
        shutil.rmtree(run.folder)
    return run.size


def _foreign(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_file() or not path.name.startswith(_OURS):
            yield path


def _glance(folder: Path) -> RunFolder:
    beat = heartbeat.last_beat(folder)
    size, modified = _size(folder), (folder / store.FILE).stat().st_mtime
    try:
        with Store.open(folder, read_only=True) as opened:
            return _read(opened, read_status(opened, beat), size, modified)
    except (EnvHarnessError, *store.DAMAGE) as error:
        return RunFolder(folder, "damaged", {}, None, 0, 0, 0, size, modified, False, str(error))  # noqa: FBT003


def _read(opened: Store, status: Status, size: int, modified: float) -> RunFolder:
    config = cast("dict[str, Any]", opened.meta("config") or {})
    names = ("bridge", "policy", "objective", "designer")
    return RunFolder(
        folder=opened.folder,
        state=status.state,
        config={name: config[name]["use"] for name in names if name in config},
        tasks=status.tasks,
        designed=status.designed,
        accepted=status.accepted + status.kept,
        episodes=sum(sum(outcomes.values()) for outcomes in status.episodes.values()),
        size=size,
        modified=modified,
        pruned=bool(opened.meta("pruned")),
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def age_days(run: RunFolder) -> float:
    """Return how long ago a run was last written to, in days."""
    return (time.time() - run.modified) / 86_400
