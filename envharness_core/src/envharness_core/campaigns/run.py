"""A whole campaign: tasks in waves, then the report's own rollouts, in one run folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Event

import structlog

from envharness_core.account import Account
from envharness_core.campaigns.cache import BaselineCache
from envharness_core.campaigns.changes import require_same_world, write_down
from envharness_core.campaigns.course import Course, Wave, place, waves
from envharness_core.campaigns.facts import first_facts, offers
from envharness_core.campaigns.holding import Listener, Progress, Sitting, answer, holding
from envharness_core.campaigns.learning import school_of
from envharness_core.campaigns.reporting import report_plays, report_rollouts
from envharness_core.campaigns.result import TaskResult
from envharness_core.campaigns.schedule import Scheduler
from envharness_core.campaigns.summary import summarise
from envharness_core.campaigns.task import Workshop
from envharness_core.campaigns.watch import Watch
from envharness_core.campaigns.world import World, bare_design, check_fit, check_learning, look_at
from envharness_core.config import RunConfig, resolve
from envharness_core.designer import TaskHistory
from envharness_core.episode import Design, Episode
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import DESIGNER, EXECUTOR, OBJECTIVE
from envharness_core.objective import Decision
from envharness_core.plugins import Plugins
from envharness_core.skills.bank import SkillBank
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.store import Store
from envharness_core.warn import note

_log = structlog.get_logger()


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
    account = Account(config.budget)
    plugins = plugins.working_in(folder, config.settings, account.charge)
    config = resolve(config, plugins)
    world = look_at(config, plugins)
    try:
        check_fit(config, plugins, world)
        if config.skills.coevolve:
            check_learning(config, plugins)
        known, changed = answer(config.identity(), folder, accept)
        require_same_world(folder, world.upstream, world.tasks, accept)
        if known is not None and not retry_failed and not changed:
            return known
        sitting = Sitting(account, listener, stop or Event(), retry_failed=retry_failed)
        with holding(folder, lambda: first_facts(config, plugins, world), sitting) as (store, sitting):
            if changed:
                write_down(config, store)
            with (
                nullcontext() if config.cache is None else BaselineCache(Path(config.cache), plugins) as cache
            ):
                return _Run(config, plugins, world, store, sitting, cache).play()
    finally:
        world.bridge.close()


BANK = "skills.jsonl"
"""The bank that a run leaves in its folder, where its policy learnt from task to task."""


class _Run:
    """A session of a run."""

    def __init__(
        self,
        config: RunConfig,
        plugins: Plugins,
        world: World,
        store: Store,
        sitting: Sitting,
        cache: BaselineCache | None,
    ) -> None:
        self._config = config
        self._plugins = plugins
        self._world = world
        self._store = store
        self._listener = sitting.listener
        self._watch = Watch(store, config.campaign.max_excluded)
        self._waves = deque(waves(world.tasks, config))
        self._open = 0
        self._account = sitting.account
        self._design_episodes = 0
        self._scheduler = Scheduler(
            store,
            config.seed,
            seed_in_task=world.capabilities.seed_in_task,
            heard=self._heard,
            again=sitting.again,
            stop=sitting.stop,
            cache=cache,
            account=sitting.account,
        )
        school = school_of(config, plugins, store, world.bridge.tools()) if config.skills.coevolve else None
        self._course = Course(self._workshop(), school, sitting.account.charge_again)

    def play(self) -> JsonObject:
        """Play everything that is missing, and return the summary."""
        executor = self._plugins.create(EXECUTOR, self._config.executor, "executor")
        note("session_began", tasks=len(self._world.tasks), upstream=self._world.upstream)
        try:
            with self._watch:
                self._next_wave()
                self._scheduler.run(executor, self._plugins)
        finally:
            executor.close()
            self._course.close()
            self._store.set_meta("usage", self._account.totals())
            note(
                "session_ended",
                episodes=self._watch.episodes,
                excluded=self._watch.excluded,
                designed=len(self._course.results),
            )
        if self._config.skills.coevolve:
            SkillBank(self._course.skills).write(self._store.folder / BANK)
        summary = summarise(self._store, self._config)
        self._store.set_meta("summary", summary)
        return summary

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
            designer_notes=bridge.designer_notes,
            resumable=self._world.capabilities.resumable,
            layers=offers(self._plugins),
            demonstrator=config.demonstrator,
            trajectory=self._store.trajectory,
            check=self._check,
        )

    def _check(self, task: str, layers: Sequence[ComponentSpec]) -> tuple[ComponentSpec, ...]:
        with build_stack(self._plugins, self._config.bridge, layers) as stack:
            stack.check()
            return stack.layers

    def _next_wave(self) -> None:
        if not self._waves:
            return
        wave = self._waves.popleft()
        earlier = self._histories()
        self._open = len(wave.tasks)
        for task in wave.tasks:
            bare = bare_design(self._config, self._world, task.id)
            self._scheduler.start(
                self._course.design(bare, earlier, wave, task),
                lambda result, bare=bare: self._designed(result, bare, wave),  # type: ignore[misc]
            )

    def _histories(self) -> tuple[TaskHistory, ...]:
        results = self._course.results
        return tuple(results[task.id].history for task in self._world.tasks if task.id in results)

    def _designed(self, result: TaskResult, bare: Design, wave: Wave) -> None:
        position = [task.id for task in self._world.tasks].index(bare.task)
        self._store.put_result(bare.task, position, result.as_json())
        log_design(result)
        if wave.last or result.status != "accepted":
            for play in report_plays(self._config, result, self._course.under(bare, bare.task)):
                self._scheduler.start(play, lambda _: None)
        self._open -= 1
        if self._open == 0:
            self._scheduler.start(
                self._course.learn(wave, self._store.meta), lambda lessons: self._learnt(wave, lessons)
            )

    def _learnt(self, wave: Wave, lessons: list[Json]) -> None:
        """Keep what a wave taught, and begin the next one."""
        if self._config.skills.coevolve:
            self._store.set_meta(place(wave), lessons)
            note("skills_learnt", wave=wave.number, skills=len(self._course.skills))
        self._next_wave()

    def _heard(self, episode: Episode) -> None:
        self._watch.heard(episode)
        self._design_episodes += not episode.stream.startswith("report")
        results = self._course.results
        self._listener(
            Progress(
                tasks=len(self._world.tasks),
                designed=len(results),
                accepted=sum(result.in_order for result in results.values()),
                episodes=self._watch.episodes,
                excluded=self._watch.excluded,
                expected=max(self._watch.episodes, self._expected()),
                seconds=self._watch.seconds,
            )
        )

    def _expected(self) -> int:
        """Estimate how many episodes the session plays, from the tasks that are designed so far."""
        tasks, done = len(self._world.tasks), max(1, len(self._course.results))
        accepted = sum(result.status == "accepted" for result in self._course.results.values()) / done
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
