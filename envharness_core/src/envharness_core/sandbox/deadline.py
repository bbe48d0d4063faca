"""Deadlines of calls to a worker, by its own CPU time and by the clock."""

from __future__ import annotations

import select
import time
from pathlib import Path

from envharness_core.errors import FaultKind, SandboxError


class BrokenWire(Exception):  # noqa: N818 - not an error of anybody's yet
    """A worker with which it can't go on, for the reason that a fault's kind names."""

    def __init__(self, kind: FaultKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Deadline:
    """How long a call may take: so many CPU seconds of the worker's, and so many on the clock.

    A busy machine, where a worker hardly gets to run, costs it nothing: only its own time counts. A worker that waits
    for something else than the processor is given up after as many seconds on the clock.

    Args:
        pid: the worker.
        seconds: of the processor.
        wall_seconds: on the clock.
    """

    __slots__ = ("_began", "_pid", "_seconds", "_wall", "used")

    def __init__(self, pid: int, seconds: float, wall_seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._wall = wall_seconds
        self._began = time.monotonic()
        self.used = cpu_seconds(pid)
        """The worker's CPU time when the call began; None where that can't be asked."""

    @property
    def elapsed(self) -> float:
        """Seconds on the clock since the call began."""
        return time.monotonic() - self._began

    def wait(self, ready: select.poll) -> None:
        """Wait until a pipe is ready.

        Raises:
            BrokenWire: the time is over.
        """
        left = self._seconds - self.elapsed
        if left > 0 and ready.poll(left * 1000):
            return
        while True:
            try:
                patience = self._patience()
            except (BrokenWire, SandboxError):
                if ready.poll(0):  # the answer came while this was found out
                    return
                raise
            if ready.poll(patience * 1000):
                return

    def _patience(self) -> float:
        """Return for how many seconds more there may be reason to wait.

        Raises:
            BrokenWire: there is none.
            SandboxError: the worker hardly got to run.
        """
        now = cpu_seconds(self._pid)
        used = self.elapsed if now is None or self.used is None else now - self.used
        if used >= self._seconds:
            raise BrokenWire("timeout", f"it took longer than the {self._seconds:g} CPU seconds of a call")
        if self.elapsed >= self._wall:
            raise SandboxError(
                f"this machine is too busy: a call of rules had {used:.2g} of {self._seconds:g} CPU seconds within "
                f"{self._wall:g} seconds (sandbox.wall_seconds)"
            )
        if _sleeps(self._pid):
            raise BrokenWire("timeout", "it waits for something that doesn't come")
        return min(self._seconds - used, 0.1)


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process; None where that can't be asked."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK of linux/posix-timers.h
    except OSError:
        return None


def _sleeps(pid: int) -> bool:
    """Say whether a process sleeps, twice in a row: one that only gets no processor time is runnable."""
    for _ in range(2):
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:  # no such place here: the clock decides
            return False
        if state != b"S":
            return False
        time.sleep(0.005)
    return True
