"""The scheduler: drives many decision procedures over one executor and one store."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any, TypeVar

from attrs import define, field

from envharness_core.campaigns.batch import Batch, Play
from envharness_core.campaigns.cache import BaselineCache
from envharness_core.data import Verdict
from envharness_core.episode import Episode, EpisodeSpec, Record
from envharness_core.errors import ExecutorError, foreign
from envharness_core.executor import Executor
from envharness_core.outcome import GRADED, MAY_BE_GRADED, Outcome
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds, derive
from envharness_core.store import Store

T = TypeVar("T")

_NAP = 0.5  # seconds between two looks at whether to go on


class DrainedError(Exception):
    """A scheduler was asked to stop, and has; what had ended is stored."""


@define(eq=False)
class _Running:
    """A procedure and the batch that it waits for."""

    play: Play[Any]
    done: Callable[[Any], None]
    batch: Batch
    keys: tuple[str, ...] = ()
    episodes: dict[str, Episode] = field(factory=dict)


class Scheduler:
    """Plays what procedures yield, urgent batches first, so that no worker waits for another task's batch.

    An episode that the store has is never played again; one that is played is kept before anybody hears of it.

    Args:
        seed: the run's.
        seed_in_task: what the bridge's capabilities say.
        heard: called with each episode that was played, not taken from the store.
        again: the outcomes with which a stored episode is played again after all.
        cache: where other runs' baselines are, and this one's go.
        stop: once set, nothing more is handed out, and ``run`` ends when what is being played has ended.
    """

    def __init__(
        self,
        store: Store,
        seed: int,
        *,
        seed_in_task: bool,
        heard: Callable[[Episode], None] = lambda _: None,
        again: tuple[Outcome, ...] = (),
        stop: Event | None = None,
        cache: BaselineCache | None = None,
    ) -> None:
        self._store = store
        self._seed = seed
        self._seed_in_task = seed_in_task
        self._heard = heard
        self._again = again
        self._delayed: list[tuple[float, int, _Running]] = []
        self._stop = stop or Event()
        self._cache = cache
        self._urgent: deque[tuple[EpisodeSpec, _Running]] = deque()
        self._later: deque[tuple[EpisodeSpec, _Running]] = deque()
        self._dormant: deque[_Running] = deque()
        self._playing: dict[str, tuple[EpisodeSpec, _Running]] = {}
        self._ready: deque[_Running] = deque()
        self._advancing = False
        self._played: set[str] = set()
        self._numbers = itertools.count()

    def start(self, play: Play[T], done: Callable[[T], None]) -> None:
        """Take on a procedure; ``done`` is called with what it returns, and may start others."""
        try:
            batch = next(play)
        except StopIteration as stop:
            done(stop.value)
            return
        self._enqueue(_Running(play, done, batch))
        self._advance()

    def run(self, executor: Executor, plugins: Plugins) -> None:
        """Play until every procedure has returned.

        Raises:
            DrainedError: it was asked to stop before that.
            ExecutorError: the executor raised, answered what nobody asked, or lost episodes.
        """
        name = type(executor).__name__
        for record in _played(executor, self._jobs(), plugins):
            known = self._playing.pop(record.episode.key, None) if isinstance(record, Record) else None
            if known is None or not _answers(record, known[0]):
                raise ExecutorError(f"executor {name} yielded what it wasn't given to play: {record!r:.200}")
            spec, running = known
            self._store.put(spec, record)
            if self._cache is not None:
                self._cache.put(spec, record)
            if self._again:
                self._played.add(spec.key)
            self._heard(record.episode)
            running.episodes[record.episode.key] = record.episode
            if len(running.episodes) == len(running.keys):
                self._ready.append(running)
                self._advance()
        queues = (self._playing, self._urgent, self._later, self._delayed, self._dormant)
        lost = sum(map(len, queues))
        if lost and self._stop.is_set() and not self._playing:
            raise DrainedError
        if lost:
            raise ExecutorError(f"executor {name} ended with {lost} episodes not played; run again to go on")

    def _jobs(self) -> Iterator[EpisodeSpec | None]:
        while not self._stop.is_set():
            self._release_delayed()
            while self._dormant and not (self._urgent or self._later):
                self._look_up(self._dormant.popleft())
                self._advance()
            queue = self._urgent or self._later
            if not (queue or self._playing or self._delayed):
                return
            if not queue and self._playing:
                yield None
                continue
            if not queue:
                time.sleep(min(_NAP, max(0.0, self._delayed[0][0] - time.monotonic())))
                continue
            spec, running = queue.popleft()
            self._playing[spec.key] = (spec, running)
            yield spec

    def _enqueue(self, running: _Running) -> None:
        """Take on a batch; one that may wait isn't looked at before its turn: thousands cost next to nothing."""
        if running.batch.later:
            self._dormant.append(running)
        else:
            self._look_up(running)

    def _look_up(self, running: _Running) -> None:
        """Hand out what a batch lacks."""
        specs = self._specs(running.batch)
        running.keys = tuple(spec.key for spec in specs)
        running.episodes = {}
        missing = []
        for key, spec in zip(running.keys, specs, strict=True):
            known = self._known(spec)
            if known is None:
                missing.append(spec)
            else:
                running.episodes[key] = known
        if not missing:
            self._ready.append(running)
        elif running.batch.delay > 0:
            due = time.monotonic() + running.batch.delay
            heapq.heappush(self._delayed, (due, next(self._numbers), running))
        else:
            self._hand_out(running, missing)

    def _known(self, spec: EpisodeSpec) -> Episode | None:
        """Return a stored episode that need not be played again."""
        known = self._store.get(spec.key)
        shared = self._cache.get(spec) if known is None and self._cache is not None else None
        if shared is not None:
            self._store.put(spec, shared)
            return shared.episode
        return (
            None
            if known is not None and known.outcome in self._again and spec.key not in self._played
            else known
        )

    def _hand_out(self, running: _Running, specs: Sequence[EpisodeSpec]) -> None:
        queue = self._later if running.batch.later else self._urgent
        queue.extend((spec, running) for spec in specs)

    def _release_delayed(self) -> None:
        """Hand out the batches that have waited long enough."""
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            running = heapq.heappop(self._delayed)[2]
            missing = [spec for spec in self._specs(running.batch) if spec.key not in running.episodes]
            self._hand_out(running, missing)

    def _advance(self) -> None:
        """Go on with every procedure whose batch is complete; a loop, so that a long resume doesn't recurse."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._ready:
                running = self._ready.popleft()
                episodes = tuple(running.episodes[key] for key in running.keys)
                try:
                    running.batch = running.play.send(episodes)
                except StopIteration as stop:
                    running.done(stop.value)
                else:
                    self._enqueue(running)
        finally:
            self._advancing = False

    def _specs(self, batch: Batch) -> list[EpisodeSpec]:
        return batch_specs(batch, self._seed, seed_in_task=self._seed_in_task)


def batch_specs(batch: Batch, seed: int, *, seed_in_task: bool) -> list[EpisodeSpec]:
    """Return the episodes that a batch of a run asks for, with the seeds that the run's gives them."""
    specs = []
    for index in batch.indices:
        task = batch.design.task
        seeds = Seeds.of(
            seed, task, batch.stream, index, world=_world(batch.stream), seed_in_task=seed_in_task
        )
        if batch.share > 1:
            group = derive("shared", seed, task, batch.stream, index // batch.share)
            seeds = Seeds(seeds.env, group, seeds.policy)
        specs.append(EpisodeSpec(batch.design, batch.stream, index, seeds))
    return specs


def _world(stream: str) -> str:
    """Return the stream from which an episode has its world's seed: an attempt is paired with its baseline."""
    name, _, rest = stream.partition(" ")
    if name != "attempt":
        return stream
    _, of, number = rest.partition(" of round ")
    return f"baseline{of}{number}"


def _answers(record: Record, spec: EpisodeSpec) -> bool:
    """Say whether a record is one of a spec's episode, with an outcome and a verdict that go together."""
    episode = record.episode
    place = (episode.task, episode.stream, episode.index)
    outcome, verdict = episode.outcome, episode.verdict
    sound = isinstance(outcome, Outcome) and (verdict is None or isinstance(verdict, Verdict))
    agree = (
        (verdict is None) if outcome not in MAY_BE_GRADED else (verdict is not None or outcome not in GRADED)
    )
    return place == (spec.design.task, spec.stream, spec.index) and sound and agree


def _played(executor: Executor, jobs: Iterator[EpisodeSpec | None], plugins: Plugins) -> Iterator[Record]:
    """Run an executor; what its code raises names it."""
    with foreign(f"executor {type(executor).__name__}", ExecutorError):
        records = iter(executor.run(jobs, plugins))
    while True:
        with foreign(f"executor {type(executor).__name__}", ExecutorError):
            record = next(records, None)
        if record is None:
            return
        yield record
