"""An evaluation: banks are learnt, then the untouched benchmark is played under each condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any, cast

from attrs import evolve

from envharness_core.account import Account
from envharness_core.campaigns.batch import Play, Rerolls, Rolled, roll
from envharness_core.campaigns.changes import require_same_world
from envharness_core.campaigns.holding import Listener, Progress, Sitting, answer, holding
from envharness_core.campaigns.learning import Learnt, School, learn, school_of
from envharness_core.campaigns.schedule import Scheduler
from envharness_core.campaigns.summary import rollouts_by_stream, usage_by_role
from envharness_core.campaigns.watch import Watch
from envharness_core.campaigns.world import World, bare_design, check_fit, check_learning, look_at
from envharness_core.config import RunConfig, resolve
from envharness_core.converter import structure, unstructure
from envharness_core.data import TaskSummary
from envharness_core.episode import Episode
from envharness_core.errors import ConfigError
from envharness_core.evaluation.plan import Environment, Plan, make_plan
from envharness_core.evaluation.scores import Attempts, comparisons
from envharness_core.evaluation.seal import break_seal, log_scores, require_unscored
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import EXECUTOR
from envharness_core.plugins import Plugins
from envharness_core.skills.bank import SkillBank
from envharness_core.store import Store
from envharness_core.warn import note


def run_evaluation(
    config: RunConfig,
    folder: Path,
    source: Path | None = None,
    plugins: Plugins | None = None,
    listener: Listener = lambda _: None,
    *,
    stop: Event | None = None,
    retry_failed: bool = False,
    unseal: bool = False,
) -> JsonObject:
    """Evaluate skills in a folder of its own, going on where an earlier session stopped; return the summary.

    Args:
        config: what to evaluate: bridge, policy, extractor, and how.
        folder: the evaluation's run folder.
        source: the folder of the campaign whose accepted stacks the condition ``reshaped`` learns on; ``original``
            then learns on the same tasks, untouched.
        plugins: instead of those that the config names.
        listener: called with the progress after each episode.
        stop: once set, no further episode is begun; those that are being played are kept when they end.
        retry_failed: play episodes again that the infrastructure failed in earlier sessions.
        unseal: whether a split that is sealed may be scored now.

    Raises:
        DrainedError: ``stop`` was set before it was complete.
        RunError: the infrastructure failed too often, the budget is spent, or a service refuses whoever asks.
        ConfigError: the config is wrong, the folder holds something else, or the split is sealed.
        PluginError: a plugin that the config names is broken.
    """
    account = Account(config.budget)
    plugins = (plugins or Plugins(config.plugins, sandbox=config.sandbox)).working_in(
        folder, config.settings, account.charge
    )
    config = resolve(config, plugins)
    world = look_at(config, plugins)
    try:
        check_fit(config, plugins, world)
        check_learning(config, plugins)
        plan = make_plan(config, world, source)
        known, _ = answer(plan.identity(), folder)
        require_same_world(folder, world.upstream, plan.held_out)
        if known is None or retry_failed:
            seal = _unsealed(plan, world, folder, unseal=unseal)
            sitting = Sitting(account, listener, stop or Event(), retry_failed=retry_failed)
            with holding(folder, lambda: plan.facts(plugins, world), sitting) as (store, sitting):
                if seal is not None:
                    break_seal(seal, plan.sealed(world.upstream), folder)
                known = _Evaluation(plan, plugins, world, store, sitting).play()
        _log_scores(plan, world, known)
        return known
    finally:
        world.bridge.close()


def _log_scores(plan: Plan, world: World, summary: JsonObject) -> None:
    """Log what the scoring of a sealed split came to, also where an earlier session was killed before it did."""
    seal = plan.config.evaluation.seal
    if seal is not None and Path(seal).exists():
        rows = cast("list[Any]", summary["conditions"])
        rates = {row["condition"]: row["success_rate"] for row in rows}
        log_scores(Path(seal), plan.sealed(world.upstream), rates)


def _unsealed(plan: Plan, world: World, folder: Path, *, unseal: bool) -> Path | None:
    """Return the log of the held-out split's seal, where it has one that may be broken now."""
    seal = plan.config.evaluation.seal
    if seal is None:
        if unseal:
            raise ConfigError("--unseal: the config names no evaluation.seal, so there is nothing to unseal")
        return None
    if not unseal:
        raise ConfigError(
            f"evaluation.seal: the split {plan.config.evaluation.split!r} is sealed: it is scored once, at the end; "
            "say --unseal when everything else is settled, and evaluate on another split until then"
        )
    require_unscored(Path(seal), plan.sealed(world.upstream), folder)
    return Path(seal)


class _Evaluation:
    """A session of an evaluation."""

    def __init__(self, plan: Plan, plugins: Plugins, world: World, store: Store, sitting: Sitting) -> None:
        self._plan = plan
        self._config = plan.config
        self._plugins = plugins
        self._world = world
        self._store = store
        self._account = sitting.account
        self._listener = sitting.listener
        self._scores = Counter[str]()
        self._watch = Watch(store, plan.config.campaign.max_excluded)
        self._school: School = school_of(plan.config, plugins, store, world.bridge.tools())
        self._learnt: dict[str, dict[str, Learnt]] = {name: {} for name in plan.learnt}
        self._facts: dict[str, JsonObject] = {}
        self._runs = {
            name: tuple[dict[str, Episode], ...]({} for _ in self._seasons) for name in plan.conditions
        }
        self._scheduler = Scheduler(
            store,
            plan.config.seed,
            seed_in_task=world.capabilities.seed_in_task,
            heard=self._heard,
            again=sitting.again,
            stop=sitting.stop,
            account=sitting.account,
        )

    def play(self) -> JsonObject:
        """Play everything that is missing, and return the summary."""
        executor = self._plugins.create(EXECUTOR, self._config.executor, "executor")
        note("evaluation_began", tasks=len(self._plan.held_out), conditions=list(self._plan.conditions))
        try:
            with self._watch:
                for name in self._plan.conditions:
                    self._begin(name)
                self._scheduler.run(executor, self._plugins)
        finally:
            executor.close()
            self._school.close()
            self._store.set_meta("usage", self._account.totals())
        summary = self._summary()
        self._store.set_meta("summary", summary)
        return summary

    def _begin(self, condition: str) -> None:
        """Learn a condition's skills where they aren't given, then attempt the held-out tasks with them."""
        if condition not in self._plan.learnt:
            self._attempt(condition, self._plan.banks.get(condition, SkillBank()))
            return
        for environment in self._plan.environments:
            self._scheduler.start(
                self._lesson(condition, environment),
                lambda learnt, place=environment: self._heard_lesson(condition, place, learnt),  # type: ignore[misc]
            )

    def _lesson(self, condition: str, environment: Environment) -> Play[Learnt]:
        """Roll an environment out and have skills made of it; what an earlier session was told isn't asked again."""
        kept = self._store.meta(_place(condition, environment))
        if kept is not None:
            known = structure(kept, Learnt, _place(condition, environment))
            self._account.charge_again(known.usage)
            return known
        layers = self._plan.stack(condition, environment)
        design = bare_design(self._config, self._world, environment.task.id).under(layers)
        rolled = yield from roll(design, "skills", Rolled(), self._config.skills.rollouts, self._rerolls)
        learnt = yield from learn(self._school, environment.task, condition, layers, rolled.graded)
        self._store.set_meta(_place(condition, environment), unstructure(learnt))
        return learnt

    def _heard_lesson(self, condition: str, environment: Environment, learnt: Learnt) -> None:
        lessons = self._learnt[condition]
        lessons[environment.task.id] = learnt
        if len(lessons) < len(self._plan.environments):
            return
        ordered = [lessons[place.task.id] for place in self._plan.environments]
        found = [skill for lesson in ordered for skill in lesson.skills]
        bank = self._school.bank(found)
        bank.write(self._store.folder / f"bank-{condition}.jsonl")
        self._facts[condition] = {
            "environments": len(ordered),
            "rollouts": sum(lesson.rollouts for lesson in ordered),
            "successes": sum(lesson.successes for lesson in ordered),
            "repetitions": len(found) - len(bank),
            "problems": [
                f"{place.task.id}: {lesson.problem}"
                for place, lesson in zip(self._plan.environments, ordered, strict=True)
                if lesson.problem
            ],
        }
        self._attempt(condition, bank)

    def _attempt(self, condition: str, bank: SkillBank) -> None:
        """Attempt each held-out task once a run, with the skills that the bank has for it."""
        told = {task.id: self._school.chosen(bank, task) for task in self._plan.held_out}
        self._facts.setdefault(condition, {}).update(
            {"skills": len(bank), "equipped_tasks": sum(map(bool, told.values()))}
        )
        for season in self._seasons:
            for task in self._plan.held_out:
                self._scheduler.start(
                    self._attempted(task, told[task.id], season),
                    lambda rolled, task=task, season=season: self._scored(  # type: ignore[misc]
                        condition, task, season, rolled
                    ),
                )

    def _attempted(self, task: TaskSummary, skills: tuple[str, ...], season: int) -> Play[Rolled]:
        design = evolve(bare_design(self._config, self._world, task.id), skills=skills)
        return (yield from roll(design, f"eval {season}", Rolled(), 1, self._rerolls))

    def _scored(self, condition: str, task: TaskSummary, season: int, rolled: Rolled) -> None:
        if rolled.graded:
            self._runs[condition][season][task.id] = rolled.graded[0]
            self._scores.update(scored=1, succeeded=rolled.graded[0].success)

    def _heard(self, episode: Episode) -> None:
        self._watch.heard(episode)
        attempts = len(self._plan.conditions) * len(self._plan.held_out) * len(self._seasons)
        lessons = len(self._plan.learnt) * len(self._plan.environments) * self._config.skills.rollouts
        self._listener(
            Progress(
                tasks=attempts,
                designed=self._scores["scored"],
                accepted=self._scores["succeeded"],
                episodes=self._watch.episodes,
                excluded=self._watch.excluded,
                expected=max(self._watch.episodes, attempts + lessons),
                seconds=self._watch.seconds,
            )
        )

    def _summary(self) -> JsonObject:
        attempts = [
            Attempts(name, len(self._plan.held_out), self._runs[name], self._facts[name])
            for name in self._plan.conditions
        ]
        learnt_from = {place.task.id for place in self._plan.environments}
        counts = self._store.counts()
        excluded = self._store.excluded()
        self._store.set_meta("attempts", _keys(attempts))
        return {
            "kind": "evaluation",
            "upstream": self._world.upstream,
            "split": self._config.evaluation.split,
            "tasks": len(self._plan.held_out),
            "overlap": sum(task.id in learnt_from for task in self._plan.held_out),
            "runs": len(self._seasons),
            "conditions": [cast("Json", item.as_json()) for item in attempts],
            "comparisons": cast("Json", comparisons(attempts)),
            "episodes": {
                "graded": sum(count for _, _, count in counts) - sum(excluded.values()),
                "excluded": cast("Json", excluded),
            },
            "rollouts": rollouts_by_stream(counts),
            "usage": usage_by_role(self._store),
            "seconds": self._store.meta("seconds"),
        }

    @property
    def _seasons(self) -> range:
        return range(self._config.evaluation.runs)

    @property
    def _rerolls(self) -> Rerolls:
        return Rerolls(self._config.campaign.rerolls, self._config.campaign.backoff)


def _place(condition: str, environment: Environment) -> str:
    """Return where the store keeps what an environment taught."""
    return f"learnt {condition} {environment.task.id}"


def _keys(attempts: Sequence[Attempts]) -> Json:
    """Return which episode counts for each condition, run and task."""
    return {item.name: [{task: run[task].key for task in run} for run in item.runs] for item in attempts}
