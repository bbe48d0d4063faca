"""A whole campaign: tasks in waves, then the report's own rollouts, in one run folder."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import cast

import structlog
from attrs import asdict, evolve, frozen

from envharness_core.campaigns.batch import Batch, Play
from envharness_core.campaigns.cache import BaselineCache
from envharness_core.campaigns.changes import require_same, write_down
from envharness_core.campaigns.facts import first_facts, offers
from envharness_core.campaigns.result import TaskResult
from envharness_core.campaigns.schedule import Scheduler
from envharness_core.campaigns.summary import summarise
from envharness_core.campaigns.task import Workshop, design_task
from envharness_core.campaigns.world import World, bare_design, check_fit, look_at
from envharness_core.config import ReportConfig, RunConfig, resolve
from envharness_core.designer import TaskHistory
from envharness_core.episode import Design, Episode
from envharness_core.errors import ConfigError, RunError
from envharness_core.heartbeat import Heartbeat
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import DESIGNER, EXECUTOR, OBJECTIVE
from envharness_core.objective import Decision
from envharness_core.outcome import INFRASTRUCTURE, Outcome
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.store import Store, locked
from envharness_core.warn import note

_log = structlog.get_logger()

_NOTE_SECONDS = 2.0
_ENOUGH = 20  # episodes, before a share of failures says anything

Listener = Callable[["Progress"], None]


@frozen
class Progress:
    """How far a run is; sent after each episode that was played.

    Args:
        tasks: tasks of the run.
        designed: how many of them are finished but for the report.
        accepted: how many of these have a stack or are in order as they are.
        episodes: episodes played in this session.
        excluded: how many of these carry no verdict.
        expected: about how many the session will play; grows more exact as it goes on.
        seconds: since the session began.
    """

    tasks: int
    designed: int
    accepted: int
    episodes: int
    excluded: int
    expected: int
    seconds: float


def run_campaign(
    config: RunConfig,
    folder: Path,
    plugins: Plugins | None = None,
    listener: Listener = lambda _: None,
    *,
    stop: Event | None = None,
    retry_failed: bool = False,
    accept: Sequence[str] = (),
) -> JsonObject:
    """Run a campaign in a folder, going on where an earlier session stopped; return its summary.

    Nothing is written before the whole config has been checked. A complete run is answered from its store.

    Args:
        config: what to run.
        folder: the run folder.
        plugins: instead of those that the config names.
        listener: called with the progress after each episode.
        stop: once set, no further episode is begun; those that are being played are kept when they end.
        retry_failed: play episodes again that the infrastructure failed in earlier sessions.
        accept: keys of the config that may differ from the folder's: see ``campaigns.changes.HARMLESS``.

    Raises:
        DrainedError: ``stop`` was set before the run was complete.
        RunError: the infrastructure failed too often; says how often.
        ConfigError: the config is wrong, the folder holds something else or another config's run, or it is in use.
        PluginError: a plugin that the config names is broken.
    """
    plugins = plugins or Plugins(config.plugins, sandbox=config.sandbox)
    config = resolve(config, plugins)
    world = look_at(config, plugins)
    try:
        check_fit(config, plugins, world)
        known, changed = _answer(config, folder, accept)
        if known is not None and not retry_failed and not changed:
            return known
        with ExitStack() as held:
            store, heart = held.enter_context(_held(config, folder, plugins, world))
            if changed:
                write_down(config, store)
            cache = None if config.cache is None else BaselineCache(Path(config.cache), plugins)
            if cache is not None:
                held.callback(cache.close)
            session = Session(
                _heard_by(heart, listener), stop or Event(), INFRASTRUCTURE if retry_failed else (), cache
            )
            return _Run(config, plugins, world, store, session).play()
    finally:
        world.bridge.close()


@contextmanager
def _held(
    config: RunConfig, folder: Path, plugins: Plugins, world: World
) -> Iterator[tuple[Store, Heartbeat]]:
    """Hold a run folder for a session: its lock, its store, and a heart that beats."""
    Store.prepare(folder)
    with locked(folder), _store(config, folder, plugins, world) as store, Heartbeat(folder) as heart:
        yield store, heart


def _answer(config: RunConfig, folder: Path, accept: Sequence[str]) -> tuple[JsonObject | None, bool]:
    """Return the summary of a complete run, which needs no right to write, and whether accepted changes wait.

    Raises:
        ConfigError: the folder holds another config's run.
    """
    if not Store.exists(folder):
        return None, False
    with Store.open(folder, read_only=True) as store:
        changed = require_same(config, folder, store, accept)
        return cast("JsonObject | None", store.meta("summary")), changed


def _store(config: RunConfig, folder: Path, plugins: Plugins, world: World) -> Store:
    if Store.exists(folder):
        store = Store.open(folder)
        if store.meta("pruned"):
            store.close()
            raise ConfigError(
                f"{folder}: its trajectories were pruned, so nothing more can be designed in it"
            )
        return store
    return Store.create(folder, first_facts(config, plugins, world))


def _heard_by(heart: Heartbeat, listener: Listener) -> Listener:
    """Return a listener that lets others hear too."""

    def hear(progress: Progress) -> None:
        heart.note(asdict(progress))
        listener(progress)

    return hear


@frozen
class Session:
    """What a session of a run is given: whom to tell, when to stop, which outcomes to play again, and the cache."""

    listener: Listener
    stop: Event
    again: tuple[Outcome, ...]
    cache: BaselineCache | None = None


class _Run:
    """A session of a run."""

    def __init__(
        self, config: RunConfig, plugins: Plugins, world: World, store: Store, session: Session
    ) -> None:
        self._config = config
        self._plugins = plugins
        self._world = world
        self._store = store
        self._listener = session.listener
        self._failures: Counter[str] = Counter()
        self._first_failure = ""
        self._began = self._noted = time.monotonic()
        self._earlier = cast("float", store.meta("seconds") or 0.0)
        self._results: dict[str, TaskResult] = {}
        self._waiting = list(world.tasks)
        self._open = 0
        self._episodes = self._design_episodes = self._excluded = 0
        self._scheduler = Scheduler(
            store,
            config.seed,
            seed_in_task=world.capabilities.seed_in_task,
            heard=self._heard,
            again=session.again,
            stop=session.stop,
            cache=session.cache,
        )
        self._shop = self._workshop()

    def play(self) -> JsonObject:
        """Play everything that is missing, and return the summary."""
        executor = self._plugins.create(EXECUTOR, self._config.executor, "executor")
        note("session_began", tasks=len(self._world.tasks), upstream=self._world.upstream)
        try:
            self._next_wave()
            self._scheduler.run(executor, self._plugins)
        finally:
            executor.close()
            self._note_time()
            note(
                "session_ended", episodes=self._episodes, excluded=self._excluded, designed=len(self._results)
            )
        summary = summarise(self._store, self._config)
        self._store.set_meta("summary", summary)
        return summary

    def _note_time(self) -> None:
        """Add this session's time to the run's, now and then, so that a killed session's isn't lost."""
        self._noted = time.monotonic()
        self._store.set_meta("seconds", round(self._earlier + self._noted - self._began, 1))

    def _workshop(self) -> Workshop:
        config, bridge = self._config, self._world.bridge
        return Workshop(
            objective=self._plugins.create(OBJECTIVE, config.objective, "objective"),
            designer=self._plugins.create(DESIGNER, config.designer, "designer"),
            config=config.campaign,
            limits=config.limits,
            seed=config.seed,
            tools=tuple(bridge.tools()),
            env_state_schema=bridge.env_state_schema,
            layers=offers(self._plugins),
            demonstrator=config.demonstrator,
            trajectory=self._store.trajectory,
            check=self._check,
        )

    def _check(self, layers: Sequence[ComponentSpec]) -> tuple[ComponentSpec, ...]:
        with build_stack(self._plugins, self._config.bridge, layers) as stack:
            stack.check()
            return stack.layers

    def _next_wave(self) -> None:
        wave = self._waiting[: self._config.campaign.wave]
        del self._waiting[: len(wave)]
        earlier = self._histories()
        self._open = len(wave)
        for task in wave:
            bare = bare_design(self._config, self._world, task.id)
            self._scheduler.start(
                design_task(self._shop, task, bare, earlier),
                lambda result, bare=bare: self._designed(result, bare),  # type: ignore[misc]
            )

    def _histories(self) -> tuple[TaskHistory, ...]:
        return tuple(self._results[task.id].history for task in self._world.tasks if task.id in self._results)

    def _designed(self, result: TaskResult, bare: Design) -> None:
        self._results[bare.task] = result
        position = [task.id for task in self._world.tasks].index(bare.task)
        self._store.put_result(bare.task, position, result.as_json())
        log_design(result)
        for play in report_plays(self._config, result, bare):
            self._scheduler.start(play, lambda _: None)
        self._open -= 1
        if self._open == 0 and self._waiting:
            self._next_wave()

    def _heard(self, episode: Episode) -> None:
        self._episodes += 1
        if not episode.graded:
            self._excluded += 1
            self._note_failure(episode)
            _log.warning(
                "episode_excluded",
                task=episode.task,
                episode=episode.key,
                stream=episode.stream,
                index=episode.index,
                outcome=str(episode.outcome),
                error=episode.error,
            )
        if time.monotonic() - self._noted > _NOTE_SECONDS:
            self._note_time()
        self._design_episodes += not episode.stream.startswith("report")
        done = len(self._results)
        self._listener(
            Progress(
                tasks=len(self._world.tasks),
                designed=done,
                accepted=sum(result.in_order for result in self._results.values()),
                episodes=self._episodes,
                excluded=self._excluded,
                expected=max(self._episodes, self._expected()),
                seconds=time.monotonic() - self._began,
            )
        )

    def _note_failure(self, episode: Episode) -> None:
        """Count what the infrastructure failed; too much of it ends the session.

        Raises:
            RunError: it is too much.
        """
        if episode.outcome not in INFRASTRUCTURE:
            return
        self._failures[str(episode.outcome)] += 1
        self._first_failure = self._first_failure or episode.error
        failed, most = self._failures.total(), self._config.campaign.max_excluded
        if self._episodes >= _ENOUGH and failed > most * self._episodes:
            counted = ", ".join(f"{count} {outcome}" for outcome, count in self._failures.items())
            raise RunError(
                f"stopped: {failed} of this session's {self._episodes} episodes failed ({counted}), more than "
                f"campaign.max_excluded = {most:g} allows; the first: {self._first_failure or 'no word'}"
            )

    def _expected(self) -> int:
        """Estimate how many episodes the session plays, from the tasks that are designed so far."""
        tasks, done = len(self._world.tasks), max(1, len(self._results))
        accepted = sum(result.status == "accepted" for result in self._results.values()) / done
        report = self._config.report
        full, bare = (report_rollouts(report, accepted=accepted) for accepted in (True, False))
        return int(tasks * (self._design_episodes / done + accepted * full + (1 - accepted) * bare))


def log_design(result: TaskResult) -> None:
    """Log what became of a task and of each of its candidates."""
    task = result.history.task.id
    for attempt in result.history.attempts:
        candidate = attempt.candidate.key
        if attempt.rejected and attempt.decision is Decision.REJECT:
            _log.warning("candidate_rejected", task=task, candidate=candidate, reason=attempt.rejected)
        else:
            reason = attempt.rejected or (attempt.judgement.reason if attempt.judgement else "")
            decision = attempt.decision.name.lower()
            note("candidate_judged", task=task, candidate=candidate, decision=decision, reason=reason)
    note("task_designed", task=task, status=result.status, reason=result.reason, rollouts=result.rollouts)


def report_rollouts(report: ReportConfig, *, accepted: bool) -> int:
    """Return how many rollouts of the ``report`` streams a task takes."""
    if not accepted:
        return report.rollouts
    compared = sum(policy is not None for policy in (report.weaker, report.stronger))
    return 2 * report.rollouts + compared * report.sensitivity + report.layer_seeds * report.per_seed


def report_plays(config: RunConfig, result: TaskResult, bare: Design) -> list[Play[None]]:
    """Return the rollouts of the ``report`` streams for a designed task: none of them selects anything."""
    report = config.report
    after = bare.under(result.layers)
    plays = []
    if report.rollouts:
        plays.append(_rollouts(bare, "report before", report.rollouts))
        if result.status == "accepted":
            plays.append(_rollouts(after, "report after", report.rollouts))
    if result.status != "accepted":
        return plays
    for name, policy in (("weaker", report.weaker), ("stronger", report.stronger)):
        if policy is not None:
            other = evolve(after, policy=policy)
            plays.append(_rollouts(other, f"report {name}", report.sensitivity))
    if report.layer_seeds:
        count = report.layer_seeds * report.per_seed
        plays.append(_rollouts(after, "report seeds", count, share=report.per_seed))
    return plays


def _rollouts(design: Design, stream: str, count: int, share: int = 1) -> Play[None]:
    yield Batch(design, stream, tuple(range(count)), later=True, share=share)
