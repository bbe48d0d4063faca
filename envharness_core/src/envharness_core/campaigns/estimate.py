"""Estimates: what a run would take, before it begins; nothing is written."""

from __future__ import annotations

from math import ceil
from typing import Any

import attrs
from attrs import frozen

from envharness_core.campaigns.batch import Batch
from envharness_core.campaigns.reporting import report_rollouts
from envharness_core.campaigns.schedule import batch_specs
from envharness_core.campaigns.world import World, bare_design, check_fit, look_at
from envharness_core.config import RunConfig, resolve
from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.errors import ExecutorError, RunError, foreign
from envharness_core.executor import Executor
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import EXECUTOR, OBJECTIVE
from envharness_core.objective import Decision, Objective
from envharness_core.outcome import Outcome
from envharness_core.plugins import Plugins
from envharness_core.verify_jobs import cpus

_RATES = 20  # made-up success rates, from 0 to 1, that an objective is asked about
_SHORT = 1.0  # seconds of probing, below which it says more about starting up than about episodes
_MORE = 10
_LONGEST = 1000  # rollouts of an attempt, after which nobody goes on asking


@frozen
class Bounds:
    """The least and the most of something."""

    least: float
    most: float

    def times(self, factor: float) -> Bounds:
        """Return both, multiplied."""
        return Bounds(self.least * factor, self.most * factor)


@frozen
class Estimate:
    """What a run would take.

    Args:
        tasks: how many.
        design: rollouts a task for its design: at least its baseline, at most every attempt to its end.
        report: rollouts a task for the report.
        workers: how many episodes are played at a time.
        probed: the episodes that were played to measure.
    """

    tasks: int
    design: Bounds
    report: Bounds
    workers: int
    probed: tuple[Episode, ...]

    @property
    def rollouts(self) -> Bounds:
        """All rollouts; what makes up for failed ones isn't among them."""
        return Bounds(self.design.least + self.report.least, self.design.most + self.report.most).times(
            self.tasks
        )

    @property
    def seconds(self) -> Bounds | None:
        """How long it would take, in seconds; None where nothing was played."""
        if not self.probed:
            return None
        return self.rollouts.times(_mean([episode.seconds for episode in self.probed]) / self.workers)

    @property
    def usage(self) -> dict[str, Bounds]:
        """What it would use of what the probed episodes used, such as tokens."""
        keys = dict.fromkeys(
            key
            for episode in self.probed
            for key, value in episode.usage.items()
            if type(value) in (int, float)
        )
        return {
            key: self.rollouts.times(_mean([_number(episode.usage.get(key)) for episode in self.probed]))
            for key in keys
        }

    def as_json(self) -> JsonObject:
        """Return the estimate as plain data."""
        measured: Json = None
        if self.probed:
            measured = {
                "episodes": len(self.probed),
                "graded": sum(episode.graded for episode in self.probed),
                "seconds": round(_mean([episode.seconds for episode in self.probed]), 6),
            }
        seconds = self.seconds
        return {
            "tasks": self.tasks,
            "rollouts": _whole(self.rollouts),
            "design_rollouts_per_task": _whole(self.design),
            "report_rollouts_per_task": _whole(self.report),
            "workers": self.workers,
            "measured": measured,
            "seconds": None
            if seconds is None
            else {name: round(x, 1) for name, x in attrs.asdict(seconds).items()},
            "usage": {key: _whole(bounds) for key, bounds in self.usage.items()},
        }


def estimate_run(config: RunConfig, probe: int = 2, plugins: Plugins | None = None) -> Estimate:
    """Check a config as a run would, and estimate what it would take.

    Args:
        config: the run's.
        probe: how many rollouts of unchanged tasks are played to measure, and ten times as many where they take no
            second; 0 plays nothing.
        plugins: instead of those that the config names.

    Raises:
        ConfigError: the config is wrong.
        PluginError: a plugin that it names is broken.
        ExecutorError: the executor broke.
        RunError: a service refuses whoever asks.
    """
    plugins = (plugins or Plugins(config.plugins, sandbox=config.sandbox)).working_in(None, config.settings)
    config = resolve(config, plugins)
    world = look_at(config, plugins)
    try:
        check_fit(config, plugins, world)
        return Estimate(
            tasks=len(world.tasks),
            design=_design(config, plugins.create(OBJECTIVE, config.objective, "objective")),
            report=Bounds(config.report.rollouts, report_rollouts(config.report, accepted=True)),
            workers=_workers(config, plugins),
            probed=_played(config, plugins, world, probe) if probe else (),
        )
    finally:
        world.bridge.close()


def longest_attempt(objective: Objective[Any]) -> int:
    """Return how many rollouts an objective asks for at most, confirmation included, over made-up success rates."""
    return max(_asked(objective, number / _RATES) for number in range(_RATES + 1))


def _design(config: RunConfig, objective: Objective[Any]) -> Bounds:
    campaign = config.campaign
    smoke = campaign.attempts * campaign.rounds
    first = campaign.rollouts + (campaign.demonstrations if config.demonstrator is not None else 0)
    most = campaign.rounds * (
        first + (campaign.attempts + 1) * longest_attempt(objective)
    )  # and the unchanged task
    if campaign.budget is not None:
        most = min(most, campaign.budget)
    return Bounds(campaign.rollouts, most + smoke)


def _asked(objective: Objective[Any], rate: float) -> int:
    with foreign(type(objective).__name__):
        baseline = _made_up(rate, 10)
        attempt = _rolled(lambda played: objective.judge(baseline, played), rate)
        decision = objective.judge(baseline, attempt).decision
        if decision is not Decision.ACCEPT:
            return len(attempt)
        return len(attempt) + len(_rolled(lambda played: objective.confirm(baseline, attempt, played), rate))


def _rolled(judge: Any, rate: float) -> tuple[Episode, ...]:
    """Return the rollouts after which an objective has made up its mind."""
    played: tuple[Episode, ...] = ()
    while len(played) < _LONGEST:
        judgement = judge(played)
        if judgement.decision is not Decision.MORE:
            break
        played = _made_up(rate, len(played) + max(1, judgement.rollouts))
    return played


def _made_up(rate: float, count: int) -> tuple[Episode, ...]:
    """Make rollouts whose successes are spread as evenly as a rate allows."""
    return tuple(
        Episode(
            key=f"{index}",
            task="made up",
            stream="made up",
            index=index,
            outcome=Outcome.COMPLETED,
            verdict=Verdict(success, float(success)),
            steps=1,
            seconds=0.0,
        )
        for index, success in enumerate(
            int((i + 1) * rate + 1e-9) > int(i * rate + 1e-9) for i in range(count)
        )
    )


def _workers(config: RunConfig, plugins: Plugins) -> int:
    """Return how many episodes an executor plays at a time.

    That is its config's ``workers`` (None is one a CPU) or ``threads``; one where it has neither.
    """
    settings = plugins.find(EXECUTOR, config.executor.use, "executor").configure(
        config.executor.config, "executor"
    )
    workers = getattr(settings, "workers", getattr(settings, "threads", 1))
    return cpus() if workers is None else int(workers)


def _played(config: RunConfig, plugins: Plugins, world: World, count: int) -> tuple[Episode, ...]:
    """Play so many unchanged tasks, and the same again and again where starting up outweighs such short ones."""
    executor = plugins.create(EXECUTOR, config.executor, "executor")
    try:
        with foreign(f"executor {config.executor.use}", ExecutorError):
            played = _probed(executor, config, plugins, world, count, range(count))
            if sum(episode.seconds for episode in played) < _SHORT:
                played = _probed(executor, config, plugins, world, count, range(count, count * _MORE))
    finally:
        executor.close()
    return played


def _probed(
    executor: Executor, config: RunConfig, plugins: Plugins, world: World, count: int, indices: range
) -> tuple[Episode, ...]:
    specs = []
    for index in indices:
        task = world.tasks[index % min(count, len(world.tasks))]
        batch = Batch(bare_design(config, world, task.id), "probe", (index,))
        specs += batch_specs(batch, config.seed, seed_in_task=world.capabilities.seed_in_task)
    records = list(executor.run(iter(specs), plugins))
    refused = next((record.stop for record in records if record.stop), "")
    if refused:
        raise RunError(f"nothing can be measured: {refused}")
    return tuple(sorted((record.episode for record in records), key=lambda episode: episode.index))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _whole(bounds: Bounds) -> JsonObject:
    return {"least": ceil(bounds.least), "most": ceil(bounds.most)}
