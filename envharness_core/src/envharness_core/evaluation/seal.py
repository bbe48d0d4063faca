"""The seal: a split that is scored once, and a log of who scored it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from envharness_core.errors import ConfigError
from envharness_core.jsondata import Json, JsonObject


@frozen
class Sealed:
    """A split that is sealed, and a scoring of it.

    Args:
        upstream: the benchmark and its version.
        split: the split's name.
        tasks: its task ids.
        scoring: the content hash of all that decides the scores: policy, skills, seed and runs.
    """

    upstream: str
    split: str
    tasks: tuple[str, ...]
    scoring: str

    def shares(self, entry: JsonObject) -> bool:
        """Say whether an entry of the log is about tasks that this one is about too."""
        told = entry.get("tasks")
        same = entry.get("upstream") == self.upstream
        return same and isinstance(told, list) and not set(self.tasks).isdisjoint(map(str, told))


def require_unscored(path: Path, sealed: Sealed, folder: Path) -> None:
    """Refuse to score a split a second time; nothing is written. Going on in the same folder is no second time.

    Raises:
        ConfigError: some of its tasks were scored before, in another folder or as another scoring; or the log can't
            be read.
    """
    if path.exists():
        with _held(path) as log:
            _is_open(path, log.read(), sealed, folder)


def break_seal(path: Path, sealed: Sealed, folder: Path) -> None:
    """Log that a split is about to be scored, once.

    Raises:
        ConfigError: as ``require_unscored``; or the log can't be written.
    """
    with _held(path) as log:
        if _is_open(path, log.read(), sealed, folder):
            return
        _append(
            log,
            {
                "opened": datetime.now(UTC).isoformat(timespec="seconds"),
                "upstream": sealed.upstream,
                "split": sealed.split,
                "tasks": [*sealed.tasks],
                "scoring": sealed.scoring,
                "folder": str(folder.resolve()),
            },
        )


def log_scores(path: Path, sealed: Sealed, scores: JsonObject) -> None:
    """Log what a scoring came to, once.

    Raises:
        ConfigError: the log can't be read or written.
    """
    with _held(path) as log:
        entries = _entries(path, log.read())
        if any("scores" in entry and entry.get("scoring") == sealed.scoring for entry in entries):
            return
        _append(
            log,
            {
                "scored": datetime.now(UTC).isoformat(timespec="seconds"),
                "scoring": sealed.scoring,
                "scores": scores,
            },
        )


def _is_open(path: Path, text: str, sealed: Sealed, folder: Path) -> bool:
    """Say whether this very scoring has been opened in this folder; refuse where another one has."""
    for entry in _entries(path, text):
        if not sealed.shares(entry):
            continue
        if entry.get("scoring") == sealed.scoring and entry.get("folder") == str(folder.resolve()):
            return True
        how = (
            "in another folder"
            if entry.get("scoring") == sealed.scoring
            else ("with another policy, other skills or another seed")
        )
        raise ConfigError(
            f"evaluation.seal: {path}: tasks of this split were scored already, {how}: on {entry.get('opened')} in "
            f"{entry.get('folder')}; choose between variants on another split: what a test split says holds only the "
            "first time"
        )
    return False


@contextmanager
def _held(path: Path) -> Iterator[Any]:
    """Hold the log for reading and appending."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"evaluation.seal: {path}: {error.strerror or error}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def _entries(path: Path, text: str) -> list[JsonObject]:
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ConfigError(
                f"evaluation.seal: {path}:{number}: not a line of this log, which nothing else should write to: {error}"
            ) from error
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


def _append(log: Any, entry: dict[str, Json]) -> None:
    log.write(json.dumps(entry, ensure_ascii=False) + "\n")
    log.flush()
