"""Local: plays episodes in warm worker processes on this machine."""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from collections.abc import Iterator
from typing import cast

import structlog
from attrs import field, frozen, validators

from envharness_core.episode import Episode, EpisodeSpec, Record
from envharness_core.executor import LOOK_SECONDS, Executor
from envharness_core.executors.process import WorkerProcess
from envharness_core.outcome import Outcome
from envharness_core.plugins import Plugins
from envharness_core.trajectory import TrajectoryWriter

_log = structlog.get_logger()

_IN_FLIGHT = 2  # chunks at a worker: one that it plays, one that waits in its pipe
_TOGETHER = 0.02  # seconds of play that are worth a journey
_MOST = 64  # episodes in a chunk
_SILENCE = 120.0  # seconds; a worker says that it lives even while it plays, unless it is stuck in C code
_RESTARTS = 1  # how often an episode that killed its worker is played again
_RECENT = 0.1  # the weight of an episode in the mean of how long they take


@frozen
class LocalConfig:
    """How many worker processes to keep.

    Args:
        workers: at least 1; None for one a CPU that this process may use.
    """

    workers: int | None = field(default=None, validator=validators.optional(validators.ge(1)))


class Local(Executor[LocalConfig]):
    """Plays episodes in warm worker processes, which load the plugins that specs name.

    Results travel on a channel of their own: what a benchmark prints goes to stderr and harms nobody. Short episodes
    travel several at a time. A worker that dies is replaced; an episode that kills its worker twice is an
    ``env_error``. One that hangs beyond its limit on the clock is handed in with its steps, and its worker replaced; a
    worker that is silent for too long is killed.
    """

    def __init__(self, config: LocalConfig) -> None:
        super().__init__(config)
        self._count = config.workers or _cpus()
        self._workers: list[WorkerProcess] = []
        self._selector = selectors.DefaultSelector()
        self._deaths: dict[str, int] = {}
        self._again: deque[EpisodeSpec] = deque()
        self._suspects: deque[EpisodeSpec] = deque()
        """What was on its way when a worker died: each travels alone from now on, so that the next death says who."""
        self._mean: float | None = None
        """How long an episode takes lately, in seconds; None before the first."""

    def run(self, jobs: Iterator[EpisodeSpec | None], plugins: Plugins) -> Iterator[Record]:
        more = True
        try:
            while True:
                more = self._fill(jobs, plugins, more=more)
                if not any(worker.chunks for worker in self._workers):
                    return
                yield from self._collect()
        finally:  # left early: what these still play belongs to nobody
            self._again.clear()
            self._suspects.clear()
            for worker in [worker for worker in self._workers if worker.chunks]:
                self._end(worker)

    def close(self) -> None:
        while self._workers:
            self._end(self._workers[-1])
        self._selector.close()

    def _fill(self, jobs: Iterator[EpisodeSpec | None], plugins: Plugins, *, more: bool) -> bool:
        """Hand out jobs while there is room; return whether there may be more later."""
        while self._room():
            chunk, more = self._chunk(jobs, more=more)
            if not chunk:
                return more
            self._idlest(plugins).give(chunk)
        return more

    def _room(self) -> bool:
        return len(self._workers) < self._count or any(
            len(worker.chunks) < _IN_FLIGHT for worker in self._workers
        )

    def _chunk(self, jobs: Iterator[EpisodeSpec | None], *, more: bool) -> tuple[list[EpisodeSpec], bool]:
        """Take what travels together next, and say whether there may be more later."""
        if self._suspects:
            return [self._suspects.popleft()], more
        size = 1 if self._mean is None else min(_MOST, max(1, int(_TOGETHER / max(self._mean, 1e-6))))
        chunk: list[EpisodeSpec] = []
        while len(chunk) < size:
            if self._again:
                chunk.append(self._again.popleft())
                continue
            job = next(jobs, _END) if more else _END
            if job is None or job is _END:
                return chunk, job is None
            chunk.append(cast("EpisodeSpec", job))
        return chunk, more

    def _collect(self) -> Iterator[Record]:
        """Wait for a worker to say something, and yield the records."""
        for key, _ in self._selector.select(LOOK_SECONDS):
            worker: WorkerProcess = key.data
            try:
                records = worker.take()
            except (EOFError, OSError):
                yield from self._buried(worker)
                continue
            for record in records:
                taken = record.episode.seconds
                self._mean = taken if self._mean is None else self._mean + _RECENT * (taken - self._mean)
                yield record
        for worker in self._workers:
            if worker.chunks and time.monotonic() - worker.heard > _SILENCE:
                worker.process.kill()  # its channel closes, which the next round notices

    def _buried(self, worker: WorkerProcess) -> Iterator[Record]:
        """Replace a dead worker; the episode that killed it is played again, once, and others anyway."""
        self._forget(worker)
        worker.bury()
        if worker.gave_up:
            self._again.extend(worker.pending)
            return
        current = worker.chunks[0] if worker.chunks else deque()
        self._again.extend(spec for spec in worker.pending if spec not in current)
        code = worker.process.returncode
        _log.warning("worker_died", exit_code=code, episodes=[spec.key for spec in current])
        if len(current) > 1:  # it may have been any of them
            self._suspects.extend(current)
            return
        for spec in current:
            deaths = self._deaths[spec.key] = self._deaths.get(spec.key, 0) + 1
            if deaths <= _RESTARTS:
                self._suspects.append(spec)
            else:
                yield _lost(spec, f"the worker died (exit code {code}), {deaths} times")

    def _idlest(self, plugins: Plugins) -> WorkerProcess:
        idlest = min(self._workers, key=lambda worker: len(worker.chunks), default=None)
        if idlest is not None and (not idlest.chunks or len(self._workers) >= self._count):
            return idlest
        worker = WorkerProcess.start(plugins)
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        return worker

    def _end(self, worker: WorkerProcess) -> None:
        self._forget(worker)
        worker.stop()

    def _forget(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        self._selector.unregister(worker.channel)


_END = object()


def _cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(affinity(0)) if affinity else os.cpu_count() or 1


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
