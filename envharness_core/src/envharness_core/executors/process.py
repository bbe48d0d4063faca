"""A worker process, seen from the executor that keeps it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import deque
from multiprocessing.connection import Connection

from attrs import define, field

from envharness_core.episode import EpisodeSpec, Record
from envharness_core.errors import EnvHarnessError
from envharness_core.executors.worker import GAVE_UP
from envharness_core.plugins import Plugins
from envharness_core.processes import import_paths

_PINNED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
_PATIENCE = 2.0  # seconds


@define(eq=False)
class WorkerProcess:
    """A worker, its channel, and what it was given: chunks of episodes, the first of which it plays."""

    process: subprocess.Popen[bytes]
    channel: Connection
    chunks: deque[deque[EpisodeSpec]] = field(factory=deque)
    heard: float = field(factory=time.monotonic)
    """When it last said anything, or was given something while it had nothing to do."""

    @classmethod
    def start(cls, plugins: Plugins) -> WorkerProcess:
        """Start a process with these plugins.

        Raises:
            EnvHarnessError: there can't be another one.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
                    [sys.executable, "-m", "envharness_core.executors.worker", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
                    env={**os.environ, **_PINNED, "PYTHONPATH": import_paths()},
                )
            except OSError as error:
                ours.close()
                raise EnvHarnessError(f"a worker process can't be started: {error}") from error
        channel = Connection(ours.detach())
        channel.send((plugins.modules, plugins.sandbox, plugins.settings, plugins.folder))
        return cls(process, channel)

    @property
    def pending(self) -> list[EpisodeSpec]:
        """The episodes that haven't come back, in order."""
        return [spec for chunk in self.chunks for spec in chunk]

    @property
    def gave_up(self) -> bool:
        """Whether it ended because an episode hung, which it has handed in."""
        return self.process.returncode == GAVE_UP

    def give(self, specs: list[EpisodeSpec]) -> None:
        """Hand over episodes; where it has died, they come back when its channel is read."""
        if not self.chunks:
            self.heard = time.monotonic()
        self.chunks.append(deque(specs))
        try:
            self.channel.send(specs)
        except OSError:
            return

    def take(self) -> list[Record]:
        """Return what it has to say: records, or nothing but that it lives.

        Raises:
            EOFError, OSError: it has died.
        """
        records: list[Record] = self.channel.recv()
        self.heard = time.monotonic()
        for _ in records:
            self.chunks[0].popleft()
            if not self.chunks[0]:
                self.chunks.popleft()
        return records

    def stop(self) -> None:
        """End the process and wait for its end; one that has nothing to do ends by itself."""
        self.channel.close()
        if self.chunks:
            self.process.terminate()
        self.bury()

    def bury(self) -> None:
        """Wait for the end of a process that has closed its channel, or was told to end."""
        self.channel.close()
        try:
            self.process.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
