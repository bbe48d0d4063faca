"""``envharness skills``: lists and searches a bank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from envharness_core.cli.skills_command import command
from envharness_core.errors import ConfigError
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.skill import Provenance, Skill


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    skills = [
        Skill(
            "Undo early", "When stuck in a game.", "Undo.", Provenance("a", "reshaped", "9" * 32, ("1", "2"))
        ),
        Skill("Sort tables", "When asked for the cheapest.", "Sort.", Provenance("b", trajectories=("3",))),
    ]
    path = tmp_path / "bank.jsonl"
    SkillBank(skills).write(path)
    with path.open("a") as file:
        file.write('{"torn')
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=True)


def test_it_lists_all_with_where_each_was_learnt_and_says_what_was_skipped(bank: Path) -> None:
    done = run(bank)
    assert done.exit_code == 0
    for words in ("Undo early", "Sort tables", "a (reshaped, 99999999)", "b (original)", "2 of 2 skills"):
        assert words in done.stdout
    assert "bank.jsonl:3: not JSON, or torn" in done.stderr


def test_it_searches_as_a_task_would(bank: Path) -> None:
    found = json.loads(run(bank, "--query", "the cheapest tent", "--json").stdout)
    assert [row["title"] for row in found["skills"]] == ["Sort tables", "Undo early"]
    assert found["skills"][0]["score"] > 0.1 > found["skills"][1]["score"]
    assert found["skills"][1]["provenance"]["trajectories"] == ["1", "2"]
    assert len(found["problems"]) == 1
    for option in (["--exclude", "b"], ["--condition", "reshaped"]):
        row = json.loads(run(bank, "--query", "the cheapest tent", "--json", *option).stdout)["skills"]
        assert [item["title"] for item in row] == ["Undo early"]
    assert "1 of 2 skills" in run(bank, "--query", "cheapest", "--top", 1).stdout
    assert "1 of 2 skills" in run(bank, "--query", "cheapest", "--threshold", 0.1).stdout


def test_it_compares_meanings_with_a_plugins_embedder(
    bank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_vectors.py").write_text(
        "from envharness_core import Component, Embedder, hookimpl\n"
        "class Length(Embedder):\n"
        "    model, width = 'length', 2\n"
        "    def embed(self, texts):\n"
        "        print('embedding')\n"
        "        return [[1.0, float('Sort' in text)] for text in texts]\n"
        "@hookimpl\n"
        "def envharness_embedders():\n"
        "    yield Component('length', Length)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = bank.read_bytes()
    arguments = ("--query", "Sort", "--embedder", "mine/length", "--plugin", "mine=my_vectors", "--json")
    found = json.loads(run(bank, *arguments).stdout)["skills"]
    assert [(row["title"], row["score"]) for row in found] == [("Sort tables", 1.0), ("Undo early", 0.7071)]
    assert bank.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--embedder", "x"), "add --query"),
        (("--query", "x", "--embedder", "x"), "embedder"),
        (("--query", "x", "--threshold", "2"), "threshold: must be"),
    ],
)
def test_what_is_wrong_is_said(bank: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run(bank, *arguments)
    assert isinstance(done.exception, ConfigError)
    assert said in str(done.exception)
