"""``envharness compare``: what evaluations found, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from envharness_core.cli.options import json_option, print_json
from envharness_core.cli.tables import console, usage_words
from envharness_core.evaluation.compare import compare_evaluations
from envharness_core.jsondata import JsonObject


@click.command("compare")
@click.argument("folders", metavar="RUN_DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
def command(folders: tuple[Path, ...], as_json: bool) -> None:  # noqa: FBT001
    """Print what evaluations found: each condition, and paired differences with their intervals.

    Of several folders, the conditions of the others are compared with those of the same name of the first.
    """
    comparison = compare_evaluations(folders)
    if as_json:
        print_json(comparison)
    else:
        print_comparison(comparison)


def print_comparison(comparison: JsonObject) -> None:
    """Print conditions as a table, and differences as sentences."""
    told: Any = comparison
    table = Table(title=_title(told), title_justify="left")
    for heading in (
        "condition",
        "success rate",
        "over runs",
        "steps on success",
        "tokens",
        "attempts",
        "skills",
    ):
        table.add_column(heading)
    for row in told["conditions"]:
        table.add_row(
            row["condition"],
            _number(row["success_rate"], ".3f"),
            f"± {_number(row['deviation'], '.3f')}" if row["deviation"] is not None else "one run",
            _number(row["steps_on_success"], ".1f"),
            _number(row["tokens"], ",.0f"),
            f"{row['graded']}" + (f", {row['missing']} missing" if row["missing"] else ""),
            _skills(row["learnt"]),
        )
    console().print(table)
    for pair in told["comparisons"]:
        click.echo(pair["sentence"])
    for role, used in told.get("usage", {}).items():
        click.echo(f"used by the {role}: {usage_words(used)}")
    for row in told["conditions"]:
        for problem in row["learnt"].get("problems", []):
            click.echo(f"{row['condition']}: an extractor broke: {problem}", err=True)


def _title(told: Any) -> str:
    if told["kind"] != "evaluation":
        return f"{told['upstream']}, evaluations side by side"
    known = told["overlap"]
    also = f"; {known} of them were learnt from, and their own skills withheld" if known else ""
    return f"{told['upstream']}, split {told['split']}: {told['tasks']} tasks, {told['runs']} runs{also}"


def _skills(learnt: Any) -> str:
    if "rollouts" not in learnt and not learnt.get("skills"):
        return "none"
    if "rollouts" not in learnt:
        return f"{learnt['skills']}, given"
    return f"{learnt['skills']} of {learnt['rollouts']} rollouts in {learnt['environments']} environments"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
