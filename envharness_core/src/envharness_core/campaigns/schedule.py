"""The scheduler: drives many decision procedures over one executor and one store."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, TypeVar, cast

from attrs import define, evolve, field

from envharness_core.account import Account, Budget
from envharness_core.campaigns.batch import Ask, Batch, Play
from envharness_core.campaigns.cache import BaselineCache
from envharness_core.data import Verdict
from envharness_core.episode import Episode, EpisodeSpec, Record
from envharness_core.errors import ExecutorError, RunError, foreign
from envharness_core.executor import Executor
from envharness_core.outcome import GRADED, MAY_BE_GRADED, Outcome
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds, derive
from envharness_core.store import Store

T = TypeVar("T")

_NAP = 0.5  # seconds between two looks at whether to go on

Wanted = Batch | Ask
_Next = Callable[[], Wanted]
"""Goes on with a procedure, and returns what it wants then."""


class DrainedError(Exception):
    """A scheduler was asked to stop, and has; what had ended is stored."""


@define(eq=False)
class _Running:
    """A procedure and the batch that it waits for; None before the first."""

    play: Play[Any]
    done: Callable[[Any], None]
    batch: Batch | None = None
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
        account: what was used of models; where its budget forbids more, the same, with a word why.
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
        account: Account | None = None,
    ) -> None:
        self._store = store
        self._seed = seed
        self._seed_in_task = seed_in_task
        self._heard = heard
        self._again = again
        self._delayed: list[tuple[float, int, _Running, Batch]] = []
        self._stop = stop or Event()
        self._cache = cache
        self._urgent: deque[EpisodeSpec] = deque()
        self._later: deque[EpisodeSpec] = deque()
        self._dormant: deque[_Running] = deque()
        self._playing: dict[str, EpisodeSpec] = {}
        self._awaited: dict[str, list[_Running]] = {}
        self._ready: deque[tuple[_Running, _Next]] = deque()
        self._answers: SimpleQueue[tuple[_Running, _Next]] = SimpleQueue()
        self._asking = self._unasked = 0
        self._account = account or Account(Budget())
        self._forbidden = ""
        self._advancing = False
        self._played: set[str] = set()
        self._numbers = itertools.count()

    def start(self, play: Play[T], done: Callable[[T], None]) -> None:
        """Take on a procedure; ``done`` is called with what it returns, and may start others."""
        self._ready.append((_Running(play, done), partial(next, play)))
        self._advance()

    def run(self, executor: Executor, plugins: Plugins) -> None:
        """Play until every procedure has returned.

        Raises:
            DrainedError: it was asked to stop before that.
            RunError: the budget is spent, or a service refuses whoever asks.
            ProviderError: a service failed somebody who was asked, such as a designer.
            ExecutorError: the executor raised, answered what nobody asked, or lost episodes.
        """
        name = type(executor).__name__
        for record in _played(executor, self._jobs(), plugins):
            spec = self._playing.pop(record.episode.key, None) if isinstance(record, Record) else None
            if spec is None or not _answers(record, spec):
                raise ExecutorError(f"executor {name} yielded what it wasn't given to play: {record!r:.200}")
            if record.stop:
                raise RunError(f"stopped: {record.stop}; mend that and run again to go on")
            self._store.put(spec, record)
            self._account.played(record.episode.usage)
            if self._cache is not None:
                self._cache.put(spec, record)
            if self._again:
                self._played.add(spec.key)
            self._heard(record.episode)
            for running in self._awaited.pop(spec.key):
                running.episodes[spec.key] = record.episode
                if len(running.episodes) == len(running.keys):
                    self._complete(running)
            self._advance()
        while self._asking and not self._playing:  # what was asked is heard, as what is played is kept
            self._hear_answers(_NAP)
        queues = (self._playing, self._urgent, self._later, self._delayed, self._dormant)
        lost = sum(map(len, queues)) + self._unasked
        if lost and self._forbidden and not self._playing:
            raise RunError(f"stopped: {self._forbidden}")
        if lost and self._stop.is_set() and not self._playing:
            raise DrainedError
        if lost:
            raise ExecutorError(f"executor {name} ended with {lost} episodes not played; run again to go on")

    @property
    def _stopping(self) -> bool:
        """Whether nothing more may begin."""
        return self._stop.is_set() or bool(self._forbidden)

    def _jobs(self) -> Iterator[EpisodeSpec | None]:
        while not self._stopping:
            self._hear_answers(0.0)
            self._release_delayed()
            while self._dormant and not (self._urgent or self._later):
                running = self._dormant.popleft()
                self._look_up(running, cast("Batch", running.batch))
                self._advance()
            queue = self._urgent or self._later
            if not (queue or self._playing or self._delayed or self._asking):
                return
            if not queue and self._playing:
                yield None
                continue
            if not queue:
                self._hear_answers(self._nap())
                continue
            self._forbidden = self._account.forbids(len(self._playing))
            if self._forbidden:
                return
            spec = queue.popleft()
            self._playing[spec.key] = spec
            yield spec

    def _nap(self) -> float:
        """Return for how long there is nothing to do, in seconds, unless an answer comes in."""
        due = self._delayed[0][0] - time.monotonic() if self._delayed else _NAP
        return min(_NAP, max(0.0, due))

    def _take_on(self, running: _Running, wanted: Wanted) -> None:
        """Take on what is wanted; what may wait isn't looked at before its turn: thousands cost next to nothing."""
        if isinstance(wanted, Ask):
            self._ask(running, wanted)
            return
        running.batch = wanted
        if wanted.later:
            self._dormant.append(running)
        else:
            self._look_up(running, wanted)

    def _ask(self, running: _Running, ask: Ask) -> None:
        """Ask a question: here, or in a thread of its own where it waits for something."""
        if not ask.waits:
            self._ready.append((running, _answered(running.play, ask)))
            return
        self._forbidden = self._forbidden or self._account.spent()
        if self._stopping:
            self._unasked += 1
            return
        self._asking += 1
        work = lambda: self._answers.put((running, _answered(running.play, ask)))  # noqa: E731
        threading.Thread(target=work, name="envharness-question", daemon=True).start()

    def _hear_answers(self, patience: float) -> None:
        """Go on with the procedures whose answers have come in, waiting so many seconds for the first."""
        try:
            while True:
                self._ready.append(
                    self._answers.get(timeout=patience) if patience else self._answers.get_nowait()
                )
                self._asking -= 1
                patience = 0.0
        except Empty:
            self._advance()

    def _complete(self, running: _Running) -> None:
        """Send a procedure the episodes of its batch."""
        episodes = tuple(running.episodes[key] for key in running.keys)
        self._ready.append((running, partial(running.play.send, episodes)))

    def _look_up(self, running: _Running, batch: Batch) -> None:
        """Hand out what a batch lacks."""
        specs = self._specs(batch)
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
            self._complete(running)
        elif batch.delay > 0:
            due = time.monotonic() + batch.delay
            heapq.heappush(self._delayed, (due, next(self._numbers), running, evolve(batch, delay=0.0)))
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
        """Queue episodes; one that another procedure waits for already is played once, for both."""
        queue = self._later if running.batch is not None and running.batch.later else self._urgent
        queue.extend(spec for spec in specs if spec.key not in self._awaited)
        for spec in specs:
            self._awaited.setdefault(spec.key, []).append(running)

    def _release_delayed(self) -> None:
        """Look the batches up again that have waited long enough: somebody may have played them meanwhile."""
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            _, _, running, batch = heapq.heappop(self._delayed)
            self._look_up(running, batch)
        self._advance()

    def _advance(self) -> None:
        """Go on with every procedure that has what it waited for; a loop, so that a long resume doesn't recurse."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._ready:
                running, go_on = self._ready.popleft()
                try:
                    wanted = go_on()
                except StopIteration as stop:
                    running.done(stop.value)
                else:
                    self._take_on(running, wanted)
        finally:
            self._advancing = False

    def _specs(self, batch: Batch) -> list[EpisodeSpec]:
        return batch_specs(batch, self._seed, seed_in_task=self._seed_in_task)


def _answered(play: Play[Any], ask: Ask) -> _Next:
    """Ask, and return how the procedure goes on with the answer, or with what was raised."""
    try:
        answer = ask.call()
    except BaseException as error:  # noqa: BLE001 - raised again where it was asked
        return partial(play.throw, error)
    return partial(play.send, answer)


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
