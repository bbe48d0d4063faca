"""A child process that serves a benchmark's runtime: one request, one answer, and whatever it does stays there."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from envharness_core.errors import BridgeError
from envharness_core.jsondata import JsonObject
from envharness_core.processes import how_ended, import_paths
from envharness_core.redaction import without_secrets
from envharness_core.text import printable

FRAME = struct.Struct("<BQ")
"""What precedes a message: its kind, and how many bytes follow."""

DONE, RAISED = 0, 1
"""The kinds of an answer: what was asked for, or the words of an exception."""

_CHUNK = 1 << 20
_PATIENCE = 2.0  # seconds that a child has to end by itself
_WORDS = 2000  # characters
_LONGEST = 1e6  # seconds
_MOST_SAID = 1 << 20  # bytes of its output that are kept


class Child:
    """A process, and the channel to it. One thread at a time may ask.

    What it prints goes neither to the channel nor to the terminal; the end of it is quoted if the process dies. The
    process ends with its owner, however that ends.

    Args:
        target: ``module:function`` that is called there with the options, and returns a function from a request's
            bytes to its answer's.
        options: what the target is called with.
        seconds: how long the process may take to start.
        largest: how many bytes an answer may have.
        environment: variables to set, beside those of this process that aren't called as secrets are.

    Raises:
        BridgeError: it can't be started.
    """

    def __init__(
        self,
        target: str,
        options: JsonObject,
        *,
        seconds: float = 60.0,
        largest: int = 64 << 20,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._target = target
        self._largest = largest
        self._owner = os.getpid()
        ours, theirs = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the finalizer
        fcntl.fcntl(self._said, fcntl.F_SETFL, fcntl.fcntl(self._said, fcntl.F_GETFL) | os.O_APPEND)
        with theirs:
            try:
                self._process = _started(theirs, self._said, target, environment or {})
            except OSError as error:
                ours.close()
                self._said.close()
                raise BridgeError(f"a process for {target} can't be started: {error}") from error
        self._channel = ours
        self._end = weakref.finalize(self, _ended, self._owner, self._process, ours, self._said)
        try:
            self.ask(json.dumps(options).encode(), seconds)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked; after a fork only the process that started it can."""
        return self._end.alive and os.getpid() == self._owner and self._process.poll() is None

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Send a request and return its answer.

        Args:
            request: what the other side understands.
            seconds: how long it may take; a process that takes longer is ended.

        Raises:
            BridgeError: the other side raised, in which case it lives on; or it died, hung, or answered nonsense, in
                which case it is closed.
        """
        if not self._end.alive:
            raise BridgeError(f"{self._target}: its process was closed")
        if os.getpid() != self._owner:
            raise BridgeError(
                f"{self._target}: another process, of which this one was forked, owns its process"
            )
        self._forget_words()
        deadline = time.monotonic() + min(seconds, _LONGEST)
        try:
            self._send(FRAME.pack(DONE, len(request)) + request, deadline)
            kind, length = self._checked(self._received(FRAME.size, deadline))
            answer = self._received(length, deadline)
        except TimeoutError as late:
            self.close()
            raise BridgeError(f"{self._target}: no answer within {seconds:g} seconds") from late
        except OSError as error:
            raise BridgeError(f"{self._target}: {self._death()}") from error
        except _BrokenError as error:
            self.close()
            raise BridgeError(f"{self._target}: {error}") from error
        except BaseException:  # Ctrl-C: an answer that nobody reads would be taken for the next one's
            self.close()
            raise
        if kind == RAISED:
            raise BridgeError(f"{self._target}: {printable(answer.decode(errors='replace'))}")
        return answer

    def close(self) -> None:
        """End the process and wait for its end; idempotent. After a fork it only lets go of it."""
        self._end()

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._channel.settimeout(_left(deadline))
            view = view[self._channel.send(view) :]

    def _received(self, length: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            self._channel.settimeout(_left(deadline))
            part = self._channel.recv(min(_CHUNK, length - len(parts)))
            if not part:
                raise ConnectionError("its process closed the channel")
            parts += part
        return bytes(parts)

    def _checked(self, head: bytes) -> tuple[int, int]:
        kind, length = FRAME.unpack(head)
        if kind not in (DONE, RAISED) or length > self._largest:
            raise _BrokenError(f"answered with {length:,} bytes; {self._largest:,} are allowed")
        return kind, length

    def _forget_words(self) -> None:
        if os.fstat(self._said.fileno()).st_size > _MOST_SAID:
            os.ftruncate(self._said.fileno(), 0)

    def _death(self) -> str:
        """Say how the process ended, and close it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        words = _last_words(self._said)
        self.close()
        return f"its process ended ({how_ended(self._process.returncode)}){': ' + words if words else ''}"


class _BrokenError(Exception):
    """What came isn't an answer."""


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _started(
    theirs: socket.socket, said: IO[bytes], target: str, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - this interpreter, this package
        [sys.executable, "-P", "-m", "envharness_core.child_main", str(theirs.fileno()), target],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        env={
            **without_secrets(os.environ),
            "PYTHONHASHSEED": "0",
            **environment,
            "PYTHONPATH": import_paths(),
        },
    )


def _ended(owner: int, process: subprocess.Popen[bytes], channel: socket.socket, said: IO[bytes]) -> None:
    channel.close()
    if os.getpid() != owner:  # forked: the process is its parent's, who goes on with it
        process.returncode = 0
        said.close()
        return
    try:
        process.wait(timeout=_PATIENCE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
    said.close()


def _last_words(said: IO[bytes]) -> str:
    said.seek(max(0, os.fstat(said.fileno()).st_size - _WORDS))
    return printable(said.read().decode(errors="replace").strip().rpartition("\n")[2])
