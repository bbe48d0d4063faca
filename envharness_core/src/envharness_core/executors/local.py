"""Local: plays episodes in warm worker processes on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

import structlog
from attrs import define, field, frozen, validators

from envharness_core.episode import Episode, EpisodeSpec, Record
from envharness_core.errors import EnvHarnessError
from envharness_core.executor import Executor
from envharness_core.executors.worker import BEAT_SECONDS, GAVE_UP
from envharness_core.outcome import Outcome
from envharness_core.plugins import Plugins
from envharness_core.trajectory import TrajectoryWriter

_log = structlog.get_logger()

_IN_FLIGHT = 2  # jobs at a worker: one that it plays, one that waits in its pipe
_SILENCE = 120.0  # seconds; a worker says that it lives even while it plays, unless it is stuck in C code
_RESTARTS = 1  # how often an episode that killed its worker is played again
_PINNED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}


@frozen
class LocalConfig:
    """How many worker processes to keep.

    Args:
        workers: at least 1; None for one a CPU that this process may use.
    """

    workers: int | None = field(default=None, validator=validators.optional(validators.ge(1)))


@define
class _Worker:
    process: subprocess.Popen[bytes]
    channel: Connection
    pending: deque[EpisodeSpec] = field(factory=deque)
    heard: float = field(factory=time.monotonic)
    """When it last said anything."""


class Local(Executor[LocalConfig]):
    """Plays episodes in warm worker processes, which load the plugins that specs name.

    Results travel on a channel of their own: what a benchmark prints goes to stderr and harms nobody. A worker that
    dies is replaced; an episode that kills its worker twice is an ``env_error``. One that hangs beyond its limit on the
    clock is handed in with its steps, and its worker replaced; a worker that is silent for too long is killed.
    """

    def __init__(self, config: LocalConfig) -> None:
        super().__init__(config)
        self._count = config.workers or _cpus()
        self._workers: list[_Worker] = []
        self._deaths: dict[str, int] = {}

    def run(self, jobs: Iterator[EpisodeSpec | None], plugins: Plugins) -> Iterator[Record]:
        retry: deque[EpisodeSpec] = deque()
        more = True
        try:
            while True:
                more = self._fill(jobs, retry, plugins) if more or retry else more
                if not any(worker.pending for worker in self._workers):
                    return
                yield from self._collect(retry)
        finally:  # left early: what these still play belongs to nobody
            for worker in [worker for worker in self._workers if worker.pending]:
                self._workers.remove(worker)
                self._stop(worker)

    def close(self) -> None:
        while self._workers:
            self._stop(self._workers.pop())

    def _fill(self, jobs: Iterator[EpisodeSpec | None], retry: deque[EpisodeSpec], plugins: Plugins) -> bool:
        """Hand out jobs while there is room; return whether there may be more later."""
        while self._room():
            try:
                job = retry.popleft() if retry else next(jobs)
            except StopIteration:
                return False
            if job is None:
                return True
            worker = self._idlest(plugins)
            if not worker.pending:
                worker.heard = time.monotonic()
            worker.pending.append(job)
            try:
                worker.channel.send(job)
            except OSError:  # it died idle: its jobs come back when its channel is read
                return True
        return True

    def _room(self) -> bool:
        return len(self._workers) < self._count or any(len(w.pending) < _IN_FLIGHT for w in self._workers)

    def _collect(self, retry: deque[EpisodeSpec]) -> Iterator[Record]:
        channels = {worker.channel: worker for worker in self._workers if worker.pending}
        for ready in wait(list(channels), timeout=BEAT_SECONDS):
            worker = channels[ready]  # type: ignore[index]
            try:
                record = worker.channel.recv()
            except (EOFError, OSError):
                yield from self._buried(worker, retry)
                continue
            worker.heard = time.monotonic()
            if record is not None:
                worker.pending.popleft()
                yield record
        for worker in channels.values():
            if time.monotonic() - worker.heard > _SILENCE:
                worker.process.kill()  # its channel closes, which the next round notices

    def _buried(self, worker: _Worker, retry: deque[EpisodeSpec]) -> Iterator[Record]:
        """Replace a dead worker; its current episode is played again, once, and those behind it anyway."""
        self._workers.remove(worker)
        self._stop(worker)
        if worker.process.returncode == GAVE_UP:  # it has handed in what it played
            retry.extend(worker.pending)
            return
        current, *others = worker.pending
        retry.extend(others)
        _log.warning(
            "worker_died", exit_code=worker.process.returncode, episode=current.key, task=current.design.task
        )
        deaths = self._deaths.get(current.key, 0) + 1
        self._deaths[current.key] = deaths
        if deaths <= _RESTARTS:
            retry.append(current)
            return
        yield _lost(current, f"the worker died (exit code {worker.process.returncode}), {deaths} times")

    def _idlest(self, plugins: Plugins) -> _Worker:
        idlest = min(self._workers, key=lambda worker: len(worker.pending), default=None)
        if idlest is not None and (not idlest.pending or len(self._workers) >= self._count):
            return idlest
        worker = _start(plugins)
        self._workers.append(worker)
        return worker

    def _stop(self, worker: _Worker) -> None:
        worker.channel.close()
        if worker.pending:
            worker.process.terminate()
        try:
            worker.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()


def _cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _start(plugins: Plugins) -> _Worker:
    ours, theirs = socket.socketpair()
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - this interpreter, this package
                [sys.executable, "-m", "envharness_core.executors.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
                env={**os.environ, **_PINNED, "PYTHONPATH": paths},
            )
        except OSError as error:
            ours.close()
            raise EnvHarnessError(f"a worker process can't be started: {error}") from error
    channel = Connection(ours.detach())
    channel.send((plugins.modules, plugins.sandbox))
    return _Worker(process, channel)


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True


def _lost(spec: EpisodeSpec, error: str) -> Record:
    episode = Episode(
        key=spec.key,
        task=spec.design.task,
        stream=spec.stream,
        index=spec.index,
        outcome=Outcome.ENV_ERROR,
        verdict=None,
        steps=0,
        seconds=0.0,
        error=error,
    )
    return Record(episode, TrajectoryWriter(()).blob())
