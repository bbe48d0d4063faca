"""Scores: what a policy achieved under each condition, from the store of an evaluation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, cast

from attrs import Factory, frozen

from envharness_core.account import tokens_of
from envharness_core.episode import Episode
from envharness_core.evaluation.statistics import Difference, paired, spread
from envharness_core.jsondata import Json, JsonObject


@frozen
class Attempts:
    """What a condition's attempts came to: for each run, the attempt that counts of each task that has one.

    Args:
        name: the condition.
        tasks: how many tasks were to be attempted.
        runs: for each run, the graded attempt of each task; tasks whose attempts all failed in the infrastructure are
            missing.
        learnt: what the condition's skills were learnt from.
    """

    name: str
    tasks: int
    runs: tuple[Mapping[str, Episode], ...]
    learnt: JsonObject = Factory(dict)

    @property
    def scores(self) -> dict[str, list[float]]:
        """For each task, whether its graded attempts succeeded, run by run."""
        scores: dict[str, list[float]] = {}
        for run in self.runs:
            for task, episode in run.items():
                scores.setdefault(task, []).append(float(episode.success))
        return scores

    def as_json(self) -> JsonObject:
        """Return the condition's figures as plain data; see ``docs/skills.md``."""
        rates = [spread([float(episode.success) for episode in run.values()])[0] for run in self.runs if run]
        mean, deviation = spread(rates) if rates else (None, None)
        episodes = [episode for run in self.runs for episode in run.values()]
        steps = [float(episode.steps) for episode in episodes if episode.success]
        costs = [float(cast("Any", episode.usage.get("cost_usd", 0.0))) for episode in episodes]
        return {
            "condition": self.name,
            "tasks": self.tasks,
            "graded": len(episodes),
            "missing": self.tasks * len(self.runs) - len(episodes),
            "success_rate": mean,
            "deviation": deviation,
            "runs": cast("Json", rates),
            "steps_on_success": spread(steps)[0] if steps else None,
            "tokens": _mean_or_none([tokens_of(episode.usage) for episode in episodes]),
            "cost_usd": fsum(costs),
            "learnt": self.learnt,
        }


def comparisons(conditions: Sequence[Attempts]) -> list[JsonObject]:
    """Compare each condition with the first one, and each learnt one with those before it."""
    return [compared(one, other) for place, one in enumerate(conditions) for other in conditions[:place]]


def compared(one: Attempts, other: Attempts) -> JsonObject:
    """Return the paired difference of two conditions as plain data."""
    difference = paired(one.scores, other.scores)
    told: JsonObject = {"condition": one.name, "over": other.name}
    if difference is None:
        return {
            **told,
            "tasks": 0,
            "finding": None,
            "sentence": f"{one.name} and {other.name} share no graded task.",
        }
    untested = [
        item.name for item in (one, other) if "rollouts" in item.learnt and not item.learnt["equipped_tasks"]
    ]
    note = (
        f" No task was given a skill under {' and '.join(untested)}: nothing was tested." if untested else ""
    )
    return {**told, **_figures(difference), "sentence": difference.sentence(one.name, other.name) + note}


def _figures(difference: Difference) -> JsonObject:
    return {
        "tasks": difference.tasks,
        "difference": difference.mean,
        "low": difference.low,
        "high": difference.high,
        "p": difference.p,
        "finding": difference.finding,
    }


def _mean_or_none(values: Sequence[float]) -> float | None:
    used = [value for value in values if value]
    return sum(used) / len(values) if used else None
