"""``envharness skills``: what a bank holds, and what it would give."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from envharness_core.cli.options import (
    clean_stdout,
    component,
    json_option,
    plugin_option,
    print_json,
    settings_option,
)
from envharness_core.cli.tables import console
from envharness_core.converter import unstructure
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EMBEDDER
from envharness_core.plugins import Plugins
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.embedder import Embedder
from envharness_core.skills.retrieval import Match
from envharness_core.skills.skill import Skill
from envharness_core.text import printable


@click.command("skills")
@click.argument("path", metavar="BANK", type=click.Path(path_type=Path))
@click.option("--query", default=None, metavar="TEXT", help="What is searched for, such as a task's text.")
@click.option("--exclude", default=None, metavar="TASK", help="Leave out what was learnt on this task.")
@click.option("--condition", default=None, help="Only what was learnt in this condition.")
@click.option("--top", default=None, type=click.IntRange(min=1), metavar="K", help="How many; 3 of a search.")
@click.option("--threshold", default=0.0, type=float, help="How well a skill must fit, from 0 to 1.")
@click.option("--diversity", default=0.0, type=float, help="How much to avoid the same advice twice, 0 to 1.")
@click.option("--embedder", default=None, metavar="NAME", help="Compare meanings with this embedder.")
@plugin_option
@settings_option
@json_option
def command(
    path: Path,
    query: str | None,
    exclude: str | None,
    condition: str | None,
    top: int | None,
    threshold: float,
    diversity: float,
    embedder: str | None,
    modules: dict[str, str],
    settings: dict[str, JsonObject],
    as_json: bool,  # noqa: FBT001
) -> None:
    """List the skills of BANK, a file of JSON lines, or with --query search it as a task would."""
    if query is None and embedder is not None:
        raise ConfigError("--embedder: compares skills with a query; add --query TEXT")
    bank = SkillBank.read(path)
    for problem in bank.problems:
        click.echo(printable(f"skipped: {problem}"), err=True)
    with clean_stdout(as_json):
        made = None if embedder is None else _made(embedder, Plugins(modules, settings=settings))
        matches = bank.retrieve(
            query or "",
            top or (len(bank) if query is None else 3),
            exclude_task=exclude,
            embedder=made,
            threshold=threshold,
            diversity=diversity,
            condition=condition,
        )
    _show(matches, bank, searched=query is not None, as_json=as_json)


def _made(text: str, plugins: Plugins) -> Embedder:
    return plugins.create(EMBEDDER, component(text, "--embedder"), "--embedder")


def _show(matches: list[Match], bank: SkillBank, *, searched: bool, as_json: bool) -> None:
    if as_json:
        rows: list[JsonObject] = [
            {**_row(match.skill), **({"score": round(match.score, 4)} if searched else {})}
            for match in matches
        ]
        print_json({"skills": [*rows], "problems": [*bank.problems]})
        return
    table = Table(*(["fit"] if searched else []), "skill", "learnt on", "by", "rollouts")
    for match in matches:
        skill, origin = match.skill, match.skill.provenance
        place = f"{origin.task} ({origin.condition}{', ' + origin.stack[:8] if origin.stack else ''})"
        fit = [f"{match.score:.2f}"] if searched else []
        table.add_row(
            *fit, printable(skill.text), printable(place), printable(origin.extractor), f"{skill.support}"
        )
    console().print(table)
    click.echo(f"{len(matches)} of {len(bank)} skills")


def _row(skill: Skill) -> JsonObject:
    return {
        "id": skill.id,
        "title": skill.title,
        "description": skill.description,
        "content": skill.content,
        "provenance": unstructure(skill.provenance),
    }
