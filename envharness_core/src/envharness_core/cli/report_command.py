"""``envharness report``: what a run found, as tables and histograms, or as a web page."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import Any, cast

import click
from rich.table import Table

from envharness_core.api import report_html
from envharness_core.campaigns.summary import accepted_rates, rate_band, rates_before, summarise
from envharness_core.cli.options import folder_argument, json_option, opened, print_json
from envharness_core.cli.tables import console, histogram, print_summary, task_column
from envharness_core.config import RunConfig, make_config
from envharness_core.jsondata import Json, JsonObject
from envharness_core.page.write import MEGABYTES

_PAPER_ROLLOUTS = 10


@click.command("report")
@folder_argument
@click.option("--tasks", "per_task", is_flag=True, help="Also print what was tried on each task.")
@click.option(
    "--html", "page", metavar="FILE", type=click.Path(path_type=Path), help="Write a web page instead."
)
@click.option(
    "--megabytes",
    type=click.FloatRange(min=0),
    default=MEGABYTES,
    show_default=True,
    help="With --html: what the rollouts in it may take together.",
)
@json_option
def command(
    folder: Path,
    per_task: bool,  # noqa: FBT001
    page: Path | None,
    megabytes: float,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Print what the run in RUN_DIR found so far."""
    if page is not None:
        _write_page(folder, page, megabytes, as_json=as_json)
        return
    with opened(folder) as store:
        store.require_campaign()
        config = make_config(cast("JsonObject", store.meta("config")))
        summary, results = summarise(store, config), store.results()
        before, after = rates_before(store), accepted_rates(store, results)
        if as_json:
            report: JsonObject = {
                **summary,
                "before": cast("Json", before),
                "after": cast("Json", after),
                "results": cast("Json", results),
            }
            print_json(report)
            return
        if store.meta("summary") is None:
            click.echo(
                f"not complete: these are the tasks that are designed so far; see envharness status {folder}"
            )
        print_summary(summary, folder)
        _print_histograms(before, after, len(results), config)
        _print_outcomes(results)
        if per_task:
            _print_tasks(results)


def _write_page(folder: Path, page: Path, megabytes: float, *, as_json: bool) -> None:
    written: Any = report_html(folder, page, megabytes=megabytes)
    if as_json:
        print_json(written)
        return
    left = f", {written['left_out']:,} more found no room (--megabytes)" if written["left_out"] else ""
    damaged = f", {len(written['damaged'])} can't be read" if written["damaged"] else ""
    click.echo(
        f"wrote {page} ({written['bytes'] / 1e6:.1f} MB; {written['episodes']:,} of {written['of']:,} "
        f"rollouts to page through{left}{damaged})"
    )


def _print_histograms(
    before: dict[str, float], after: dict[str, float], tasks: int, config: RunConfig
) -> None:
    out = console()
    for title, rates, misses in (
        ("success rates before, one a task", before, 0),
        ("success rates after, on accepted stacks", after, tasks - len(after)),
    ):
        if rates or misses:
            out.print(f"\n{title} (n = {config.report.rollouts} rollouts each)")
            out.print("\n".join(histogram(list(rates.values()), misses)))
    band = rate_band(config)
    if not after or band is None:
        return
    low, high = band
    shown = sum(_chance(rate, low, high) for rate in after.values()) / tasks
    ceiling = _chance(0.5, low, high)
    out.print(
        f"\nread off {_PAPER_ROLLOUTS} rollouts a task instead, as the paper does, {shown:.1%} of all tasks would be "
        f"expected in [{low:g}, {high:g}]; its ceiling, every task at exactly 0.5, is {ceiling:.1%}",
        highlight=False,
    )


def _chance(rate: float, low: float, high: float) -> float:
    """Return the chance that ten rollouts at a true rate show a share in [low, high]."""
    n = _PAPER_ROLLOUTS
    return sum(
        comb(n, wins) * rate**wins * (1 - rate) ** (n - wins)
        for wins in range(n + 1)
        if low - 1e-9 <= wins / n <= high + 1e-9
    )


def _print_outcomes(results: list[JsonObject]) -> None:
    reasons: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for result in cast("list[Any]", results):
        if result["status"] == "abandoned":
            reasons[result["reason"]] = reasons.get(result["reason"], 0) + 1
        else:
            used = sorted({layer["use"] for layer in result["layers"]}) or ["unchanged"]
            name = " + ".join(used)
            kinds[name] = kinds.get(name, 0) + 1
    for title, rows in (("accepted", kinds), ("abandoned", reasons)):
        if rows:
            table = Table(
                "tasks", "what" if title == "accepted" else "why", title=title, title_justify="left"
            )
            for name, count in sorted(rows.items(), key=lambda item: -item[1]):
                table.add_row(str(count), name)
            console().print(table)


def _print_tasks(results: list[JsonObject]) -> None:
    table = Table(
        task_column(40), "status", "baseline", "tried", "last word", title="tasks", title_justify="left"
    )
    for result in cast("list[Any]", results):
        base = result["baseline"]
        tried = "\n".join(_attempt(attempt) for attempt in result["attempts"])
        table.add_row(
            result["task"],
            result["status"],
            f"{base['successes']} of {base['graded']}",
            tried or "nothing",
            result["reason"],
        )
    console().print(table)


def _attempt(attempt: Any) -> str:
    layers = " + ".join(_layer(layer) for layer in attempt["layers"]) or "unchanged"
    counted = attempt["validation"]
    why = f" ({attempt['rejected']})" if attempt["rejected"] else ""
    return f"{layers}: {counted['successes']} of {counted['graded']}, {attempt['decision']}{why}"


def _layer(layer: Any) -> str:
    name = layer["use"].rpartition("/")[2]
    if name == "setup":
        return f"setup({len(layer['actions'])} actions)"
    inside = ", ".join(
        f"{key}={value}" for key, value in layer.items() if key not in ("use", "reason", "text")
    )
    return f"{name}({inside})"
