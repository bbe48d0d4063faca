"""The wire: one worker's two pipes, seen from the runner, which treats whatever comes back as a stranger's word."""

from __future__ import annotations

import math
import os
import secrets
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any

import msgspec

from envharness_core.errors import DataError, FaultKind, RulesError, SandboxError
from envharness_core.hooks import HOOKS
from envharness_core.processes import how_ended
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.deadline import BrokenWire, Deadline
from envharness_core.sandbox.faults import LONGEST
from envharness_core.text import printable

if TYPE_CHECKING:
    from envharness_core.sandbox.host import Started

_CHUNK = 1 << 16  # what a pipe holds
_IDLE = 0.05  # CPU seconds that a worker may take beyond its calls
_CRASHES = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT)  # what running out of memory in C looks like
_LINES = 1_000_000
_EPISODE = 64  # times the longest answer: what all answers of an episode may take
_TOLD_OF = (*HOOKS, "__init__", "source")
_WORKERS_OWN: tuple[FaultKind, ...] = ("compile", "contract", "raised", "memory", "timeout", "forbidden")
_GRACE = 30.0  # seconds that a worker has to lock itself down, on the busiest of machines


class Wire:
    """A worker as the runner sees it. Any fault closes it: the process is killed and reaped.

    Args:
        started: the process and its pipes, which the wire owns from now on.
        config: what the user chose.
        retire: reaps the process; returns how it ended, or None where nobody knows.
    """

    def __init__(self, started: Started, config: SandboxConfig, retire: Callable[[int], int | None]) -> None:
        self._started = started
        self._config = config
        self._retire = retire
        self._owner = os.getpid()
        self._longest = int(config.reply_mb * (1 << 20)) + 64
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(started.read, select.POLLIN)
        self._writable.register(started.write, select.POLLOUT)
        os.set_blocking(started.read, False)
        os.set_blocking(started.write, False)
        self._open = True
        self._said = 0
        self._most = math.inf
        """The CPU time that the worker may have taken when its last call had ended, at the most."""

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._started.pid

    def hello(self, kind: Any) -> Any:
        """Return what the worker says first, a message of the kind that is expected.

        Raises:
            SandboxError: it died before that, or said something else.
        """
        try:
            clock = Deadline(self.pid, _GRACE, _GRACE)
            message = msgspec.msgpack.decode(self._received(clock), type=tuple[int, kind])[1]
        except (BrokenWire, msgspec.MsgspecError) as broken:
            raise SandboxError(f"a worker of the rules sandbox didn't start: {broken}") from broken
        return message

    def ask(self, hook: str, request: p.Message, kind: type[p.M] | UnionType) -> Any:
        """Send a request and return the answer, which has the kind that was asked for.

        Args:
            hook: what the runner is about, for errors.
            request: the message.
            kind: what the answer must be, a message's type or several.

        Raises:
            DataError: the request holds what isn't data.
            RulesError: the worker said what went wrong, or it hung, died, or answered what it may not.
            SandboxError: it was lost through no fault of its own.
        """
        if os.getpid() != self._owner:
            raise SandboxError("a stack of rules can't be used on in a forked process: reset it there first")
        nonce = secrets.randbits(63) + 1
        try:
            framed = p.frame(nonce, request)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError("", f"what is inside of the rules gave what isn't data: {error}") from error
        config = self._config
        if len(framed) > config.memory_mb << 17:  # an eighth: decoded, it takes several times as much
            raise SandboxError(
                f"what the benchmark shows takes {len(framed) >> 20} MiB, too much for a sandbox with "
                f"memory_mb = {config.memory_mb}: choose more, in [sandbox] of the config"
            )
        clock = Deadline(self.pid, config.seconds, config.wall_seconds)
        try:
            self._require_idle(clock)
            self._send(framed, clock)
            answer = _wanted(_decoded(self._received(clock), nonce), kind)
        except BrokenWire as broken:
            raise self._ended(hook, broken) from None
        except BaseException:  # a fault that was told, or Ctrl-C in the middle of a frame
            self.close()
            raise
        self._most = math.inf if clock.used is None else clock.used + clock.elapsed
        return answer

    def close(self) -> int | None:
        """Kill and reap the process, release the pipes; idempotent. Return how it ended, where that is known."""
        if not self._open:
            return None
        self._let_go()
        return self._retire(self._started.pid) if os.getpid() == self._owner else None

    def _let_go(self) -> None:
        """Kill the process and release the pipes; the zygote reaps it in the end."""
        self._open = False
        started = self._started
        if os.getpid() == self._owner:
            with suppress(ProcessLookupError):
                if started.pidfd is None:  # not reaped before it is retired, so the id is still its own
                    os.kill(started.pid, signal.SIGKILL)
                else:
                    signal.pidfd_send_signal(started.pidfd, signal.SIGKILL)
        for descriptor in (started.read, started.write, started.pidfd):
            if descriptor is not None:
                os.close(descriptor)

    def __del__(self) -> None:
        # asks nothing of the zygote, which may be in the middle of an answer
        if getattr(self, "_open", False):
            with suppress(Exception):
                self._let_go()

    def _require_idle(self, clock: Deadline) -> None:
        """Refuse a worker that has used the processor between two calls."""
        if clock.used is not None and clock.used > self._most + _IDLE:
            raise BrokenWire("timeout", "it went on working after it had answered")

    def _ended(self, hook: str, broken: BrokenWire) -> RulesError | SandboxError:
        """Say how a worker broke off; closes the wire."""
        if broken.kind != "died":
            self.close()
            return RulesError(hook, broken.kind, printable(str(broken)[:LONGEST]))
        code = self._reaped()
        if code is None:
            return SandboxError("the rules sandbox broke down: its zygote has ended")
        if -code == signal.SIGXCPU:
            return RulesError(hook, "timeout", "its process used up its CPU time")
        memory = (
            f"; perhaps of memory, of which it has {self._config.memory_mb} MiB" if code in _CRASHES else ""
        )
        return RulesError(hook, "died", f"its process ended ({how_ended(code)}){memory}")

    def _reaped(self) -> int | None:
        """Close the wire to a worker that has closed its pipe; return how it ended."""
        if self._started.pidfd is not None:
            ended = select.poll()
            ended.register(self._started.pidfd, select.POLLIN)
            ended.poll(1000)
        return self.close()

    def _send(self, data: bytes, clock: Deadline) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._started.write, view) :]
            except BlockingIOError:
                clock.wait(self._writable)
            except BrokenPipeError as error:
                raise BrokenWire("died", "its process ended") from error

    def _received(self, clock: Deadline) -> memoryview:
        """Return the body of one frame, in as few reads as can be."""
        data = self._read(clock)
        while len(data) < p.LENGTH.size:
            data += self._read(clock)
        (length,) = p.LENGTH.unpack_from(data)
        self._said += length
        if length > self._longest:
            raise BrokenWire("protocol", f"an answer of {length:,} bytes; {self._longest:,} are allowed")
        if self._said > _EPISODE * self._longest:
            raise BrokenWire(
                "contract", f"what it returned in this episode takes {self._said:,} bytes, too much"
            )
        parts, missing = [data], length + p.LENGTH.size - len(data)
        while missing > 0:
            parts.append(self._read(clock))
            missing -= len(parts[-1])
        if missing < 0:
            raise BrokenWire("protocol", "it said more than it was asked")
        return memoryview(data if len(parts) == 1 else b"".join(parts))[p.LENGTH.size :]

    def _read(self, clock: Deadline) -> bytes:
        clock.wait(self._readable)
        part = os.read(self._started.read, _CHUNK)
        if not part:
            raise BrokenWire("died", "its process ended")
        return part


def _decoded(body: memoryview, nonce: int) -> p.Reply:
    try:
        repeated, answer = p.decode_reply(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BrokenWire("protocol", f"an answer that isn't one: {error}") from error
    if repeated != nonce:
        raise BrokenWire("protocol", "an answer to something that wasn't asked")
    return answer


def _wanted(answer: p.Reply, kind: type | UnionType) -> p.Reply:
    if isinstance(answer, kind):
        return answer
    if isinstance(answer, p.Fault):
        raise _told(answer)
    raise BrokenWire("protocol", f"it answered with {type(answer).__name__}")


def _told(fault: p.Fault) -> RulesError:
    """Return the fault that a worker tells of; one that can't be is its own fault."""
    known = fault.kind in _WORKERS_OWN and fault.hook in _TOLD_OF
    if not known or not (fault.line is None or 0 < fault.line <= _LINES):
        raise BrokenWire("protocol", "it told of a fault that there can't be")
    kind: Any = fault.kind
    detail, trace = printable(fault.detail[:LONGEST]), printable(fault.trace[:LONGEST])
    told = RulesError(fault.hook, kind, detail, fault.line, trace)
    told.layer = fault.layer
    return told
