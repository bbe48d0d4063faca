"""What the benchmarks share: figures with targets, how they are printed, and sides that are timed in turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Literal

from attrs import field, frozen

from envharness_core.jsondata import JsonObject


@frozen
class Figure:
    """A measured figure, and the target that it has if it has one.

    Args:
        name: in the tables and in JSON.
        value: what was measured; of timed blocks the median.
        unit: what the value is in; empty for a share.
        target: what it may be at most, or at least.
        bound: which of the two.
        least: the same of each side's fastest block, where blocks were timed.
    """

    name: str
    value: float
    unit: str = ""
    target: float | None = None
    bound: Literal["<=", ">="] = field(default="<=", kw_only=True)
    least: float | None = field(default=None, kw_only=True)

    @property
    def met(self) -> bool | None:
        """Whether the figure is within its target; None where it has none."""
        if self.target is None:
            return None
        return self.value <= self.target if self.bound == "<=" else self.value >= self.target

    def as_json(self) -> JsonObject:
        """Return the figure as plain data, without its name."""
        least: JsonObject = {} if self.least is None else {"least": self.least}
        target: JsonObject = {"target": self.target, "bound": self.bound, "met": self.met}
        return {"value": self.value, **least, "unit": self.unit, **target}

    def line(self) -> str:
        """Return the figure as a line of the table."""
        least = "" if self.least is None else f"{self.least:.2f}"
        target = "" if self.target is None else f"{self.bound} {self.target:g}"
        verdict = {None: "", True: "met", False: "missed"}[self.met]
        return f"{self.name:36}{self.value:10.3f}{least:>10}  {target:>8}  {verdict:6}  {self.unit}".rstrip()


def figures_json(figures: Iterable[Figure]) -> JsonObject:
    """Return figures as plain data, by name."""
    return {figure.name: figure.as_json() for figure in figures}


def show(figures: Iterable[Figure], *, as_json: bool = False) -> None:
    """Print a table of the figures, or one JSON object."""
    if as_json:
        print(json.dumps(figures_json(figures), indent=2))
        return
    print(f"{'figure':36}{'value':>10}{'least':>10}  {'target':>8}  {'':6}  unit")
    for figure in figures:
        print(figure.line())


def alternating(blocks: int, *sides: Callable[[], float]) -> tuple[list[float], ...]:
    """Run the sides in turn, so many blocks, and return the seconds that each block of each side reports."""
    for side in sides:
        side()  # warm
    times: tuple[list[float], ...] = tuple([] for _ in sides)
    for _ in range(blocks):
        for side, taken in zip(sides, times, strict=True):
            taken.append(side())
    return times
