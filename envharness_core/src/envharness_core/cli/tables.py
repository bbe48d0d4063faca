"""Tables and a histogram for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column, Table

from envharness_core.jsondata import JsonObject

if TYPE_CHECKING:
    from envharness_core.campaigns.estimate import Estimate

BINS = 10
_WIDTH = 40


def console(width: int = 120) -> Console:
    """Return a console for stdout; wide enough for a table where there is no terminal."""
    plain = Console(markup=False, emoji=False, highlight=False)
    return plain if plain.is_terminal else Console(markup=False, emoji=False, highlight=False, width=width)


def task_column(width: int | None = None) -> Column:
    """Return a column for tasks' ids, which are there to be copied: never cut, on one line where there is no width."""
    return Column("task", no_wrap=width is None, overflow="fold", max_width=width)


def print_summary(summary: JsonObject, folder: Path) -> None:
    """Print a run's summary."""
    data: Any = summary
    table = Table(title=f"run {folder}", show_header=False, title_justify="left")
    kept = f" ({data['kept']} of them unchanged)" if data["kept"] else ""
    table.add_row(
        "tasks", f"{data['tasks']}: {data['accepted']} accepted{kept}, {data['abandoned']} abandoned"
    )
    excluded = ", ".join(f"{count} {name}" for name, count in data["episodes"]["excluded"].items())
    table.add_row("episodes", f"{data['episodes']['graded']} graded, excluded: {excluded or 'none'}")
    table.add_row("rollouts", ", ".join(f"{name} {count}" for name, count in data["rollouts"].items()))
    for name, words in (("success_rate", "mean success rate"), ("in_band", "tasks in band, of all tasks")):
        pair = data[name]
        table.add_row(words, f"{_share(pair['before'])} before, {_share(pair['after'])} after")
    if data["faults"]:
        table.add_row("tasks lost to a broken designer or objective", str(data["faults"]))
    spent = data["design_rollouts_per_task"]
    if spent["mean"] is not None:
        table.add_row("design rollouts a task", f"{spent['mean']:.1f} on average, {spent['max']} at most")
    if data["sensitivity"]:
        gap = data["sensitivity"]
        low, high = gap["interval"]
        table.add_row(
            "stronger minus weaker policy",
            f"{gap['margin']:+.2f} (95 % interval {low:+.2f} to {high:+.2f}; "
            f"{gap['weaker']:.2f} and {gap['stronger']:.2f} on {gap['tasks']} stacks)",
        )
    if data["within_seed_variance"]:
        within = data["within_seed_variance"]
        table.add_row(
            "variance with the layers' seed fixed",
            f"{within['mean']:.3f} of at most 0.25, on {within['tasks']} stacks",
        )
    for role, used in data["usage"].items():
        table.add_row(f"used by the {role}", usage_words(used))
    table.add_row("seconds", f"{data['seconds']}")
    console().print(table)


def usage_words(used: Any) -> str:
    """Say what was used of models."""
    tokens = used.get("input_tokens", 0) + used.get("output_tokens", 0)
    parts = [f"{used.get('calls', 0):,} calls", f"{tokens:,} tokens"]
    if used.get("unpriced_calls"):
        parts.append(f"{used['unpriced_calls']:,} of them at an unknown price")
    if "cost_usd" in used:
        parts.append(f"{used['cost_usd']:.4f} USD")
    return ", ".join(parts)


def print_estimate(estimate: Estimate) -> None:
    """Print what a run would take."""
    told: Any = estimate.as_json()
    table = Table(title="dry run: nothing was written", show_header=False, title_justify="left")
    table.add_row("tasks", f"{told['tasks']}")
    for name, words in (
        ("design_rollouts_per_task", "design rollouts a task"),
        ("report_rollouts_per_task", "report rollouts a task"),
        ("rollouts", "rollouts in all"),
    ):
        table.add_row(words, _between(told[name]))
    if told["measured"]:
        seconds, episodes, graded = (told["measured"][name] for name in ("seconds", "episodes", "graded"))
        table.add_row("measured", f"{seconds:.3g} s an episode, over {episodes} episodes, {graded} graded")
        table.add_row("time", f"{_between(told['seconds'])} s with {told['workers']} at a time")
    for name, bounds in told["usage"].items():
        table.add_row(name, _between(bounds))
    console().print(table)


def _between(bounds: Any) -> str:
    low, high = bounds["least"], bounds["most"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def histogram(rates: list[float], misses: int = 0) -> list[str]:
    """Draw success rates as lines of a text histogram, ten bins from 0 to 1, each without its upper end but the last.

    Args:
        rates: one a task, in [0, 1].
        misses: tasks without a rate, on a line of their own.
    """
    counts = [0] * BINS
    for rate in rates:
        counts[min(BINS - 1, int(rate * BINS + 1e-9))] += 1
    widest = max(*counts, misses, 1)
    lines = [
        f"{index / BINS:.1f} to {(index + 1) / BINS:.1f} {_bar(count, widest)} {count}"
        for index, count in enumerate(counts)
    ]
    return [*lines, f"none accepted {_bar(misses, widest)} {misses}"] if misses else lines


def _bar(count: int, widest: int) -> str:
    return "#" * round(_WIDTH * count / widest)


def _share(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.1%}"
