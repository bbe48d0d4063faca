"""The summary: what a run found, from its store alone."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import Any, cast

from envharness_core.account import POLICY
from envharness_core.config import RunConfig
from envharness_core.jsondata import Json, JsonObject
from envharness_core.store import Store

_STREAMS = ("baseline", "demonstration", "smoke", "attempt", "confirm", "report", "skills", "eval")


def summarise(store: Store, config: RunConfig) -> JsonObject:
    """Return a run's summary.

    ``accepted`` counts the ``kept`` too: tasks that are in order unchanged. ``faults`` are abandoned tasks whose
    designer or objective broke. ``success_rate`` and ``in_band`` are measured on the report streams alone; their
    denominators are all tasks, and a task without an accepted stack counts as out of band after the design. Rates are
    None where nothing was rolled out. ``usage`` is what was used of models, by role.
    """
    results = store.results()
    counts = store.counts()
    statuses = Counter(cast("str", result["status"]) for result in results)
    band, measured = rate_band(config), bool(rates_before(store))
    return {
        "tasks": len(results),
        "episodes": _episodes(store),
        "success_rate": {
            "before": _mean(rates_before(store)),
            "after": _mean(rates_after(store, results)),
        },
        "in_band": {
            "before": _share(rates_before(store), band, results, measured=measured),
            "after": _share(accepted_rates(store, results), band, results, measured=measured),
        },
        "accepted": statuses["accepted"] + statuses["kept"],
        "kept": statuses["kept"],
        "abandoned": statuses["abandoned"],
        "faults": sum(bool(result["fault"]) for result in results),
        "candidates": _candidates(results),
        "rollouts": rollouts_by_stream(counts),
        "design_rollouts_per_task": _design(results),
        "sensitivity": sensitivity(store),
        "within_seed_variance": within_seed_variance(store),
        "usage": usage_by_role(store),
        "seconds": store.meta("seconds"),
    }


def usage_by_role(store: Store) -> JsonObject:
    """Return what was used of models: the policy's by the stored episodes, the others' by the last session."""
    policy = store.usage()
    others = cast("JsonObject", store.meta("usage") or {})
    return {**others, POLICY: policy} if policy else others


def rates_before(store: Store) -> dict[str, float]:
    """Return each task's success rate on the unchanged task, from the report stream."""
    return {task: wins / n for task, (wins, n) in store.rates("report before").items() if n}


def rates_after(store: Store, results: list[JsonObject]) -> dict[str, float]:
    """Return each task's success rate after the design: on its stack, or unchanged where it has none."""
    return {**rates_before(store), **accepted_rates(store, results)}


def accepted_rates(store: Store, results: list[JsonObject]) -> dict[str, float]:
    """Return the success rates of the tasks whose stack, or unchanged state, the gate accepted."""
    before = rates_before(store)
    after = {task: wins / n for task, (wins, n) in store.rates("report after").items() if n}
    kept = {str(r["task"]) for r in results if r["status"] == "kept"}
    return {**{task: rate for task, rate in before.items() if task in kept}, **after}


def sensitivity(store: Store) -> Json:
    """Compare a weaker and a stronger policy on the accepted stacks; None where that wasn't asked for.

    The margin is the mean over tasks of the difference of rates, with a 95 % interval over tasks.
    """
    weaker, stronger = store.rates("report weaker"), store.rates("report stronger")
    tasks = [task for task in weaker if task in stronger]
    if len(tasks) < 2:
        return None
    gaps = [_rate(stronger[task]) - _rate(weaker[task]) for task in tasks]
    mean = sum(gaps) / len(gaps)
    spread = sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
    half = 1.96 * spread / sqrt(len(gaps))
    return {
        "tasks": len(tasks),
        "weaker": sum(_rate(weaker[task]) for task in tasks) / len(tasks),
        "stronger": sum(_rate(stronger[task]) for task in tasks) / len(tasks),
        "margin": mean,
        "interval": [mean - half, mean + half],
    }


def within_seed_variance(store: Store) -> Json:
    """Return how much outcomes vary with the layers' seed held fixed, unbiased, averaged over stacks.

    0.25 is the most that a success rate of one half allows; 0 means that the layers' luck decides everything.
    """
    by_task: dict[str, list[float]] = {}
    for task, wins, n in store.rates_by_layer_seed("report seeds"):
        if n > 1:
            by_task.setdefault(task, []).append(wins * (n - wins) / (n * (n - 1)))
    if not by_task:
        return None
    means = [sum(values) / len(values) for values in by_task.values()]
    return {"tasks": len(means), "mean": sum(means) / len(means)}


def _episodes(store: Store) -> JsonObject:
    """Count what has a verdict, and what hasn't by its outcome: a timeout may be either."""
    total = sum(count for _, _, count in store.counts())
    excluded: JsonObject = {**store.excluded()}
    return {"graded": total - sum(store.excluded().values()), "excluded": excluded}


def rollouts_by_stream(counts: list[tuple[str, str, int]]) -> JsonObject:
    """Return how many episodes there are of each kind of stream."""
    by_stream: Counter[str] = Counter()
    for stream, _, count in counts:
        by_stream[stream.partition(" ")[0]] += count
    return {name: by_stream[name] for name in _STREAMS if by_stream[name]}


def _candidates(results: list[JsonObject]) -> JsonObject:
    tried = [attempt for result in results for attempt in cast("list[Any]", result["attempts"])]
    attempts = [
        attempt for attempt in tried if attempt["layers"] or attempt["rejected"]
    ]  # not the unchanged task
    evaluated = sum(attempt["validation"]["graded"] > 0 for attempt in attempts)
    return {"proposed": len(attempts), "evaluated": evaluated}


def _design(results: list[JsonObject]) -> JsonObject:
    spent = [cast("int", result["rollouts"]) for result in results]
    return {"mean": sum(spent) / len(spent) if spent else None, "max": max(spent, default=None)}


def rate_band(config: RunConfig) -> tuple[float, float] | None:
    """Return the band of success rates that a run's objective asks for by its keys; None where it has none.

    The band of ``step_band`` is one of steps, which are whole numbers from 1 on.
    """
    objective: Any = config.objective.config
    low, high = objective.get("low"), objective.get("high")
    if low is None or high is None or not 0 <= low < high <= 1:
        return None
    return low, high


def _share(
    rates: dict[str, float],
    band: tuple[float, float] | None,
    results: list[JsonObject],
    *,
    measured: bool,
) -> float | None:
    if band is None or not results or not measured:
        return None
    return sum(band[0] <= rate <= band[1] for rate in rates.values()) / len(results)


def _mean(rates: dict[str, float]) -> float | None:
    return sum(rates.values()) / len(rates) if rates else None


def _rate(counted: tuple[int, int]) -> float:
    wins, n = counted
    return wins / n if n else 0.0
