"""The knobs of ``catalog``: which layers it may put on a task, at which magnitudes, and what a model sees of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from attrs import frozen

from envharness_core.data import Action
from envharness_core.designers.rate_model import Vector
from envharness_core.jsondata import JsonObject
from envharness_core.spec import ComponentSpec

STREAK = 2
"""Faults in a row at most, so that trying again always helps."""
SLACKS = (1 / 3, 2 / 3, 1.0, 5 / 3, 8 / 3)
"""Steps beyond the shortest way that a tight budget leaves, as shares of that way."""
_TIGHTNESS = (1.0, 1.0, 0.7, 0.7, 0.4)
_FAULTY = (0, 1)
"""The slacks at which faults are offered: where many steps are to spare, trying again undoes them."""
RATES = (0.08, 0.12, 0.16, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4)
USES = (0, 2)
"""How often the tools that a winner can do without may be used."""
PREFIXES = 2
"""How many lengths of a winning prefix are offered."""


@frozen
class Knobs:
    """One setting of all knobs; the default leaves a task as it is.

    Args:
        prefix: how many steps of the scaffold, from 0 to ``PREFIXES``.
        slack: an index into ``SLACKS``, or None for no tighter budget.
        rate: the fault rate.
        closed: the index of a choice that is closed, or None.
        spare: how often the tools that a winner can do without may be used, or None for as often as one likes.
        forget: whether the history is hidden.
    """

    prefix: int = 0
    slack: int | None = None
    rate: float = 0.0
    closed: int | None = None
    spare: int | None = None
    forget: bool = False

    @property
    def key(self) -> str:
        """A name for this setting, the same in every task."""
        return f"{self.prefix},{self.slack},{self.rate},{self.closed},{self.spare},{self.forget}"


@frozen
class Bench:
    """What the knobs turn on one task.

    Args:
        way: the shortest winning way, empty where none is known.
        spare: tools that a winner can do without.
        history: keys of the observation's data that hold a history.
        choices: all (tool, argument, value) that schemas enumerate.
        avoidable: indices of the choices that some winner did without.
        steps: the step limit.
    """

    way: tuple[Action, ...]
    spare: tuple[str, ...]
    history: tuple[str, ...]
    choices: tuple[tuple[str, str, Any], ...]
    avoidable: tuple[int, ...]
    steps: int

    def prefix(self, knobs: Knobs) -> int:
        """Return how many actions the scaffold replays; at least one is left to the agent."""
        return min(len(self.way) - 1, round(len(self.way) * knobs.prefix / (PREFIXES + 1))) if self.way else 0

    def need(self, knobs: Knobs) -> int:
        """Return how many steps the rest of the shortest way takes."""
        return max(1, len(self.way) - self.prefix(knobs))

    def budget(self, knobs: Knobs) -> int:
        """Return how many steps the agent has."""
        if knobs.slack is None:
            return self.steps
        slack = max(1, round(len(self.way) * SLACKS[knobs.slack]))
        return min(self.steps, self.need(knobs) + slack)

    def settings(self) -> Iterator[Knobs]:
        """Yield every setting that makes sense on this task, the unchanged one included."""
        yield Knobs()
        prefixes = range(PREFIXES + 1 if len(self.way) > PREFIXES else len(self.way) or 1)
        for prefix in prefixes:
            for structure in self._structures(prefix):
                if structure != Knobs():
                    yield structure

    def _structures(self, prefix: int) -> Iterator[Knobs]:
        """Yield settings with at most one hardener each: a model can tell their effects apart, and so can a reader."""
        yield Knobs(prefix)
        if self.way:
            yield from (Knobs(prefix, slack=index) for index in range(len(SLACKS)))
            yield from (Knobs(prefix, slack=slack, rate=rate) for slack in _FAULTY for rate in RATES)
        if self.spare and self.need(Knobs(prefix)) > 1:
            yield from (Knobs(prefix, spare=uses) for uses in USES)
        if self.history:
            yield Knobs(prefix, forget=True)
        yield from (Knobs(prefix, closed=index) for index in self.avoidable)

    def features(self, knobs: Knobs) -> Vector:
        """Return a setting as numbers: intercept, prefix levels, fault rate, tightness, spare, forget, choices."""
        levels = [float(knobs.prefix > level) for level in range(PREFIXES)]
        tight = 0.0 if knobs.slack is None else _TIGHTNESS[knobs.slack]
        rate = knobs.rate if knobs.slack else 0.0
        spare = 0.0 if knobs.spare is None else 1.0 if knobs.spare == 0 else 0.5
        closed = [float(knobs.closed == index) for index in range(len(self.choices))]
        return (1.0, *levels, rate, tight, spare, float(knobs.forget), *closed)

    def ceiling(self, knobs: Knobs) -> float:
        """Return the share of episodes in which faults leave enough steps for the shortest way."""
        if not knobs.rate:
            return 1.0
        return through(knobs.rate, STREAK, self.budget(knobs), self.need(knobs))

    def layers(self, knobs: Knobs) -> tuple[ComponentSpec, ...]:
        """Return the layers of a setting, innermost first."""
        return tuple(self._layers(knobs))

    def _layers(self, knobs: Knobs) -> Iterator[ComponentSpec]:
        prefix = self.prefix(knobs)
        if prefix:
            actions: list[JsonObject] = [
                {"name": action.name, "kwargs": action.kwargs} for action in self.way[:prefix]
            ]
            yield ComponentSpec("core/setup", {"actions": list(actions)})
        if knobs.closed is not None:
            tool, argument, value = self.choices[knobs.closed]
            yield ComponentSpec("core/closed", {"tool": tool, "where": {argument: value}})
        if knobs.spare is not None:
            uses = knobs.spare
            yield from (ComponentSpec("core/closed", {"tool": tool, "uses": uses}) for tool in self.spare)
        if knobs.rate:
            yield ComponentSpec("core/faults", {"rate": knobs.rate, "streak": STREAK})
        if knobs.forget:
            yield from (ComponentSpec("core/short_memory", {"key": key, "keep": 0}) for key in self.history)
        if knobs.slack is not None:
            yield ComponentSpec("core/budget", {"steps": self.budget(knobs)})


def describe(bench: Bench, knobs: Knobs) -> str:
    """Say in words what a setting does."""
    parts = []
    if knobs.prefix:
        parts.append(f"starts after {bench.prefix(knobs)} of the {len(bench.way)} actions of a winner")
    if knobs.slack is not None:
        parts.append(f"leaves {bench.budget(knobs)} steps")
    if knobs.rate:
        parts.append(f"lets {knobs.rate:.0%} of steps fail, recoverably")
    if knobs.closed is not None:
        tool, argument, value = bench.choices[knobs.closed]
        parts.append(f"closes {tool} with {argument} {value!r}, which a winner did without")
    if knobs.spare is not None:
        limit = f"after {knobs.spare} uses" if knobs.spare else "altogether"
        parts.append(f"closes {', '.join(bench.spare)} {limit}, which the shortest way does without")
    if knobs.forget:
        parts.append(f"hides {', '.join(bench.history)}")
    return "; ".join(parts) or "unchanged"


@lru_cache(maxsize=4096)
def through(rate: float, streak: int, budget: int, need: int) -> float:
    """Return the chance that at least ``need`` of ``budget`` steps go through.

    Each step fails with chance ``rate``, but never more than ``streak`` in a row.
    """
    rows = {0: 1.0}
    chances: dict[tuple[int, int], float] = {(0, row): share for row, share in rows.items()}
    for _ in range(budget):
        after: dict[tuple[int, int], float] = {}
        for (done, row), share in chances.items():
            fails = rate if row < streak else 0.0
            passed = (min(need, done + 1), 0)
            after[passed] = after.get(passed, 0.0) + share * (1 - fails)
            if fails:
                failed = (done, row + 1)
                after[failed] = after.get(failed, 0.0) + share * fails
        chances = after
    return sum(share for (done, _), share in chances.items() if done >= need)
