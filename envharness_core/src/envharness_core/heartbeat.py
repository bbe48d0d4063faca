"""The heartbeat of a run: a small file by which others tell a running session from a dead one."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from attrs import frozen

from envharness_core.jsondata import JsonObject
from envharness_core.warn import warn

FILE = "heartbeat.json"
_EVERY = 2.0  # seconds
_STALE = 20.0  # seconds without a beat, after which nobody is there


@frozen
class Beat:
    """What a session last said of itself.

    Args:
        pid, host: who it is.
        time: when it said so, in seconds since the epoch.
        progress: how far it is, as ``Progress`` has it; empty before its first episode.
    """

    pid: int
    host: str
    time: float
    progress: JsonObject

    @property
    def age(self) -> float:
        """Seconds since then."""
        return max(0.0, time.time() - self.time)

    @property
    def alive(self) -> bool:
        """Whether the session is still there: it spoke lately and, on this host, its process exists."""
        if self.age > _STALE:
            return False
        return self.host != socket.gethostname() or _exists(self.pid)


class Heartbeat:
    """Beats every two seconds, from a thread of its own, for as long as it is entered; then the file goes.

    A file that stays behind is that of a session which was killed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._progress: JsonObject = {}
        self._over = Event()
        self._thread = Thread(target=self._beat_on, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._beat()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def note(self, progress: JsonObject) -> None:
        """Say how far the session is, from the next beat on."""
        self._progress = progress

    def _beat_on(self) -> None:
        while not self._over.wait(_EVERY):
            self._beat()

    def _beat(self) -> None:
        beat = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "time": round(time.time(), 3),
            "progress": self._progress,
        }
        draft = self._path.with_name(f".{FILE}.new")
        try:
            draft.write_text(json.dumps(beat), encoding="utf-8")
            draft.replace(self._path)
        except OSError as error:  # a full disk: the run has more important things to fail at
            warn("heartbeat_failed", error=str(error))


def last_beat(folder: Path) -> Beat | None:
    """Return a run folder's last heartbeat; None where its last session ended in order, or the file is damaged."""
    try:
        data: Any = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return Beat(int(data["pid"]), str(data["host"]), float(data["time"]), dict(data["progress"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
