"""A key's gate: how many calls go at once, and when none may, for all processes of this user on this machine.

What they share lies in files below the folder for temporary ones, by the digest of a key, never by the key itself:
a slot for each call in flight, which a process holds by a lock that the kernel takes back when it dies, and the time
before which nobody may go.
"""

from __future__ import annotations

import fcntl
import os
import random
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, Semaphore

from attrs import evolve, frozen

from envharness_core import waiting
from envharness_core.errors import AccessError
from envharness_llm.backoff import MINUTE, Backoff
from envharness_llm.failure import Failure

_LONGEST = 24 * 3600.0  # seconds; what would keep a gate shut for longer is a clock that was set, or nonsense
_STATE = struct.Struct("<dd")
_QUICK, _SLOW = 0.002, 0.05  # seconds between looks for a slot that another process gives back


@frozen
class _Shared:
    """What processes know of a key: when its gate opens, and when the minute began in which it is used (epoch)."""

    opens: float = 0.0
    minute: float = 0.0


class Gate:
    """Lets calls through, a number at once, and none before the time that the service named.

    Args:
        folder: where the processes that share it meet; made at first use.
        in_flight: calls at once.
    """

    def __init__(self, folder: Path, in_flight: int) -> None:
        self.folder = folder
        self._in_flight = in_flight
        self._ours = Semaphore(in_flight)
        self._search = Lock()  # one thread of a process looks for a slot, the others wait for it
        self._lock = Lock()
        self._busy = 0
        self._refusals = 0
        self._refused = float("-inf")

    @property
    def busy(self) -> int:
        """How many threads of this process have chosen this key and aren't through."""
        return self._busy

    @contextmanager
    def chosen(self) -> Iterator[None]:
        """Count as busy."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def shut(self) -> float:
        """Return the seconds until the gate opens; 0 where it is open.

        Raises:
            AccessError: the folder for temporary files can't be used.
        """
        now = time.time()
        shared = self._read()
        if now - shared.minute >= MINUTE:
            self._change(lambda it: evolve(it, minute=now) if now - it.minute >= MINUTE else it)
        left = shared.opens - now
        return left if 0 < left <= _LONGEST else 0.0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot; while it has to be waited for, the episode's clock stands still.

        Raises:
            AccessError: the folder for temporary files can't be used.
        """
        with waiting():
            self._ours.acquire()
        try:
            descriptor = self._slot()
            try:
                yield
            finally:
                _give_back(descriptor)
        finally:
            self._ours.release()

    def served(self) -> None:
        """Note that a call got through."""
        self._refusals = 0

    def refuse(self, failure: Failure, began: float, backoff: Backoff) -> float:
        """Shut the gate, because a call was refused for the rate; return for how many seconds.

        Refusals of calls that were on their way when it shut belong to that time: they can only make it longer.

        Args:
            failure: what the service said.
            began: when the call began, in seconds of ``time.monotonic()``.
            backoff: what to do where it doesn't say how long to wait.
        """
        with self._lock:
            if began >= self._refused:
                self._refusals += 1
            self._refused = time.monotonic()
            refusals = self._refusals
        now = time.time()
        minute = None
        if failure.per_minute:
            minute = MINUTE - min(MINUTE, max(0.0, now - self._read().minute))
        rest = min(_LONGEST, backoff.rest(refusals, failure.wait, minute))

        def later(shared: _Shared) -> _Shared:
            known = shared.opens if shared.opens - now <= _LONGEST else 0.0
            return evolve(shared, opens=max(known, now + rest))

        self._change(later)
        return rest

    def _count(self, change: int) -> None:
        with self._lock:
            self._busy += change

    def _slot(self) -> int:
        """Return the descriptor of a slot's file that no other process has locked."""
        pause = _QUICK
        with waiting(), self._search:
            while True:
                for number in random.sample(range(self._in_flight), self._in_flight):
                    descriptor = self._open(f"slot-{number}")
                    if _locked(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                        return descriptor
                    os.close(descriptor)
                time.sleep(pause)
                pause = min(_SLOW, pause * 2)

    def _read(self) -> _Shared:
        descriptor = self._open("state")
        try:
            _locked(descriptor, fcntl.LOCK_SH)
            return _decoded(os.pread(descriptor, _STATE.size, 0))
        finally:
            _give_back(descriptor)

    def _change(self, change: Callable[[_Shared], _Shared]) -> None:
        descriptor = self._open("state")
        try:
            _locked(descriptor, fcntl.LOCK_EX)
            changed = change(_decoded(os.pread(descriptor, _STATE.size, 0)))
            os.pwrite(descriptor, _STATE.pack(changed.opens, changed.minute), 0)
        finally:
            _give_back(descriptor)

    def _open(self, name: str) -> int:
        """Open a file that lives as long as the machine is up, or until somebody tidies temporary files."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            try:
                return os.open(self.folder / name, flags, 0o600)
            except FileNotFoundError:
                for folder in reversed((self.folder, *self.folder.parents)):
                    folder.mkdir(mode=0o700, exist_ok=True)
                return os.open(self.folder / name, flags, 0o600)
        except OSError as error:
            raise AccessError(
                f"{self.folder}: calls can't be counted there ({error.strerror}); make room, or name another folder "
                "for temporary files in TMPDIR"
            ) from error


def find_gate(digest: str, in_flight: int) -> Gate:
    """Return the gate of a key: whoever in this process uses the same one meets at the same gate.

    Raises:
        AccessError: the folder for temporary files can't be used.
    """
    folder = _private() / "keys" / digest
    place = os.getpid(), folder, in_flight  # a forked process has none of its parent's threads
    with _FINDING:
        if place not in _GATES:
            _GATES[place] = Gate(folder, in_flight)
        return _GATES[place]


# A key's limit holds for the process, whichever of its clients asks: nobody could pass these on to all of them.
_GATES: dict[tuple[int, Path, int], Gate] = {}
_FINDING = Lock()


def _private() -> Path:
    """Return this user's folder for temporary files, which nobody else may write to."""
    folder = Path(tempfile.gettempdir()) / f"envharness-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise AccessError(
            f"{folder}: can't be made ({error.strerror}); name another folder for temporary files in TMPDIR"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise AccessError(
            f"{folder}: is open to others, or somebody else's, so calls can't be counted there; remove it, or name "
            "another folder for temporary files in TMPDIR"
        )
    return folder


def _locked(descriptor: int, how: int) -> bool:
    """Lock an open file; False where another process has it and nobody wants to wait."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    return True


def _give_back(descriptor: int) -> None:
    """Unlock a file and close it; a child that was forked meanwhile would keep a lock that is only closed."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _decoded(raw: bytes) -> _Shared:
    return _Shared(*_STATE.unpack(raw)) if len(raw) == _STATE.size else _Shared()
