"""The host: the runner's side of the sandbox, which starts the zygote and has it fork workers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import weakref
from contextlib import ExitStack, suppress
from functools import cache, partial

import msgspec
from attrs import define

from envharness_core.errors import ConfigError, SandboxError
from envharness_core.processes import import_paths
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.orders import (
    WARM,
    Order,
    Refused,
    Retire,
    Retired,
    Spawn,
    Spawned,
    decode_answer,
)
from envharness_core.sandbox.wire import Wire
from envharness_core.warn import warn

_START_SECONDS = 60.0
_ANSWER_SECONDS = 15.0
_RESTARTS = 2
_KEPT = ("LD_LIBRARY_PATH", "PYTHONHOME")  # without which some interpreters don't start
_MOST = 1 << 16


@define
class Started:
    """A worker process: its id, its pidfd where there are such, and the runner's ends of its two pipes."""

    pid: int
    pidfd: int | None
    read: int
    write: int


class Sandbox:
    """The sandbox of this process: one zygote, started on first use and again if it dies, for all episodes.

    Args:
        config: what the user chose.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self._zygote: _Zygote | None = None
        self._lock = threading.Lock()
        self._trusted = False
        _ALL.add(self)

    def require(self) -> None:
        """Find out, once, whether the sandbox holds what was chosen.

        Raises:
            ConfigError: it doesn't; says what is missing and what to do.
        """
        if self._trusted:
            return
        if os.name != "posix":
            raise ConfigError(f"rules as source code need Linux; {_ADVICE}")
        try:
            self.worker().close()
        except SandboxError as error:
            raise ConfigError(str(error)) from error
        self._trusted = True
        if not self.config.locked:
            warn("sandbox_not_locked", mode=self.config.mode, advice="chosen by the user")

    def worker(self) -> Wire:
        """Fork a worker and return the wire to it.

        Raises:
            SandboxError: it can't be forked, or can't lock itself down.
        """
        wire = self._wire(self._order())
        try:
            hello = wire.hello(p.Ready | p.Unlocked)
        except SandboxError:
            wire.close()
            raise
        if isinstance(hello, p.Unlocked):
            wire.close()
            raise SandboxError(
                f"rules as source code are refused, because the sandbox doesn't hold here: {hello.missing}; "
                f"{_ADVICE}"
            )
        return wire

    def probe(self) -> list[tuple[str, bool, str]]:
        """Try what holds on this machine: ``(what, holds, detail)`` each.

        Raises:
            SandboxError: the zygote can't be started.
        """
        from envharness_core.sandbox.probe import Report

        wire = self._wire(self._order(probe=True))
        try:
            found: Report = wire.hello(Report)
            return found.parts
        finally:
            wire.close()

    def close(self) -> None:
        """End the zygote, and with it every worker; another is started when one is needed."""
        with self._lock:
            self._end()

    def _order(self, *, probe: bool = False) -> Spawn:
        config = self.config
        memory, reply = config.memory_mb << 20, int(config.reply_mb * (1 << 20))
        return Spawn(memory, reply, config.seconds, config.locked, probe)

    def _wire(self, order: Spawn) -> Wire:
        with self._lock:
            for attempt in range(_RESTARTS + 1):
                try:
                    zygote = self._living()
                    started = zygote.spawn(order)
                except (OSError, EOFError, msgspec.MsgspecError) as error:
                    self._end()
                    if attempt == _RESTARTS:
                        raise SandboxError(f"the rules sandbox can't be started: {error}") from error
                    warn("zygote_restarted", cause=str(error) or type(error).__name__)
                else:
                    return Wire(started, self.config, partial(self._retired, zygote))
        raise AssertionError("unreachable")

    def _retired(self, zygote: _Zygote, pid: int) -> int | None:
        """Reap a worker; None where the zygote that forked it has gone."""
        with self._lock:
            if zygote is not self._zygote:
                return None
            try:
                return zygote.retire(pid)
            except (OSError, EOFError, msgspec.MsgspecError):
                self._end()
                return None

    def _living(self) -> _Zygote:
        if self._zygote is not None and self._zygote.closed:  # in the middle of an answer
            self._zygote = None
        if self._zygote is None:
            self._zygote = _Zygote()
        return self._zygote

    def _end(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _forget(self) -> None:
        """Let go of everything after a fork: the zygote is the parent's."""
        self._lock = threading.Lock()
        if self._zygote is not None:
            self._zygote.abandon()
            self._zygote = None


@cache
def shared(config: SandboxConfig) -> Sandbox:
    """Return this process's sandbox for a config: the one thing that is process-wide, because a zygote is."""
    return Sandbox(config)


class _Zygote:
    """A running zygote, and the control socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _launched(theirs)
        self._control = ours
        ours.settimeout(_START_SECONDS)
        self._finalizer = weakref.finalize(self, _ended, self._process, ours)
        try:
            greeting = ours.recv(len(WARM))
        except OSError as error:
            raise SandboxError(f"the zygote didn't start: {error}") from error
        if greeting != WARM:
            raise SandboxError(f"the zygote didn't start: {self._last_words()}")
        ours.settimeout(_ANSWER_SECONDS)

    def spawn(self, order: Spawn) -> Started:
        """Fork a worker with two new pipes."""
        with ExitStack() as ours, ExitStack() as theirs:
            request, to_worker = _pipe(theirs, ours)
            reply, from_worker = _pipe(theirs, ours, turned=True)
            answer, descriptors = self._asked(order, [request, reply])
            if not isinstance(answer, Spawned):
                reason = answer.reason if isinstance(answer, Refused) else "it gave a wrong answer"
                raise SandboxError(f"the rules sandbox: {reason}")
            if not descriptors and hasattr(os, "pidfd_open"):
                raise SandboxError("the rules sandbox: no descriptor is left for another worker")
            ours.pop_all()
            return Started(answer.pid, descriptors[0] if descriptors else None, from_worker, to_worker)

    def retire(self, pid: int) -> int:
        """Reap a worker and return how it ended."""
        answer, _ = self._asked(Retire(pid), [])
        return answer.code if isinstance(answer, Retired) else 1

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return not self._finalizer.alive

    def close(self) -> None:
        """End the process; idempotent."""
        self._finalizer()

    def abandon(self) -> None:
        """Let go of the process without ending it."""
        self._finalizer.detach()
        self._control.close()
        self._process.returncode = 0  # another process's child: nothing to wait for
        if self._process.stderr:
            self._process.stderr.close()

    def _asked(self, order: Order, descriptors: list[int]) -> tuple[Spawned | Retired | Refused, list[int]]:
        try:
            socket.send_fds(self._control, [p.encode(order)], descriptors)
            message, received, _, _ = socket.recv_fds(self._control, _MOST, 1)
        except BaseException:  # Ctrl-C too: an answer that nobody reads would be taken for the next one's
            self.close()
            raise
        if not message:
            raise EOFError("the zygote has died")
        try:
            return decode_answer(message), received
        except msgspec.MsgspecError:
            for descriptor in received:
                os.close(descriptor)
            raise

    def _last_words(self) -> str:
        self._process.wait(timeout=_ANSWER_SECONDS)
        said = self._process.stderr.read().decode(errors="replace") if self._process.stderr else ""
        return said.strip().rpartition("\n")[2] or f"exit code {self._process.returncode}"


def _pipe(theirs: ExitStack, ours: ExitStack, *, turned: bool = False) -> tuple[int, int]:
    """Make a pipe whose ends are closed with the stacks; return the worker's end and the runner's.

    Raises:
        SandboxError: no descriptor is left.
    """
    try:
        read, write = os.pipe()
    except OSError as error:
        raise SandboxError(f"the rules sandbox: no pipe can be made: {error.strerror}") from error
    worker, runner = (write, read) if turned else (read, write)
    theirs.callback(os.close, worker)
    ours.callback(os.close, runner)
    return worker, runner


def _launched(control: socket.socket) -> subprocess.Popen[bytes]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    descriptor = control.fileno()
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, this package
            [sys.executable, "-P", "-B", "-c", _PROGRAM, str(descriptor)],
            pass_fds=[descriptor],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={
                **kept,
                "PATH": os.defpath,
                "LC_ALL": "C.UTF-8",
                "PYTHONHASHSEED": "0",
                "PYTHONPATH": import_paths(),
            },
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(f"the zygote can't be started: {error}") from error


def _ended(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr:
        process.stderr.close()


_PROGRAM = "import sys; from envharness_core.sandbox.zygote import main; main(int(sys.argv[1]))"
_ADVICE = (
    "run on Linux 5.13 or newer with seccomp and Landlock (envharness doctor says what is missing), "
    'or choose sandbox = "process", which keeps only the process wall'
)
_ALL: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _after_fork() -> None:
    for sandbox in list(_ALL):
        sandbox._forget()


with suppress(AttributeError):  # where there is no fork
    os.register_at_fork(after_in_child=_after_fork)
