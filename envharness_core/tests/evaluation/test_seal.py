"""A sealed split is scored when that is said, once, and logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from paid_evaluations import by_name, config  # type: ignore[import-not-found]

from envharness_core import evaluate
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject


class TestSeal:
    def sealed(self, tmp_path: Path, **changes: Any) -> JsonObject:
        evaluation = {"conditions": ["none"], "limit": 4, "runs": 1, "seal": str(tmp_path / "seal.jsonl")}
        told: JsonObject = config(evaluation=evaluation, **changes)
        return told

    def test_it_is_scored_only_when_that_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"is sealed.*--unseal"):
            evaluate(self.sealed(tmp_path), tmp_path / "e")
        assert not (tmp_path / "e").exists()
        assert not (tmp_path / "seal.jsonl").exists()

    def test_it_is_scored_once_and_logged(self, tmp_path: Path) -> None:
        summary = evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True)
        opened, scored = map(json.loads, (tmp_path / "seal.jsonl").read_text().splitlines())
        assert opened["split"] == "test"
        assert len(opened["tasks"]) == 4
        assert scored["scores"] == {"none": by_name(summary)["none"]["success_rate"]}
        assert scored["scoring"] == opened["scoring"]
        assert evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True) == summary
        with pytest.raises(ConfigError, match="scored already, in another folder"):
            evaluate(self.sealed(tmp_path), tmp_path / "again", unseal=True)
        assert not (tmp_path / "again").exists()
        assert len((tmp_path / "seal.jsonl").read_text().splitlines()) == 2

    def test_scores_that_a_killed_session_left_unlogged_are_logged(self, tmp_path: Path) -> None:
        summary = evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True)
        log = tmp_path / "seal.jsonl"
        log.write_text(log.read_text().splitlines()[0] + "\n")
        assert evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True) == summary
        assert json.loads(log.read_text().splitlines()[1])["scores"] == {
            "none": by_name(summary)["none"]["success_rate"]
        }

    @pytest.mark.parametrize("changes", [{"policy": {"use": "paid/paid", "skill": 0.9}}, {"seed": 6}])
    def test_another_scoring_is_refused(self, tmp_path: Path, changes: JsonObject) -> None:
        evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True)
        with pytest.raises(ConfigError, match="were scored already"):
            evaluate(self.sealed(tmp_path, **changes), tmp_path / "f", unseal=True)
        assert not (tmp_path / "f").exists()

    def test_fewer_of_the_same_tasks_are_the_same_split(self, tmp_path: Path) -> None:
        evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True)
        evaluation = {"conditions": ["none"], "limit": 2, "runs": 1, "seal": str(tmp_path / "seal.jsonl")}
        with pytest.raises(ConfigError, match="were scored already"):
            evaluate(config(evaluation=evaluation), tmp_path / "f", unseal=True)

    def test_a_command_that_is_refused_breaks_no_seal(self, tmp_path: Path) -> None:
        (tmp_path / "afile").write_text("")
        with pytest.raises(ConfigError, match="a file stands there"):
            evaluate(self.sealed(tmp_path), tmp_path / "afile", unseal=True)
        assert not (tmp_path / "seal.jsonl").exists()

    def test_a_files_config_means_files_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "config.toml").write_text(
            'bridge = "toy24"\npolicy = "solver"\nexecutor = "inline"\n'
            '[evaluation]\nconditions = ["mine"]\nlimit = 2\nruns = 1\nseal = "seal.jsonl"\n'
            '[evaluation.banks]\nmine = "mine.jsonl"\n'
        )
        (tmp_path / "mine.jsonl").write_text("")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        evaluate(tmp_path / "config.toml", "e", unseal=True)
        assert (tmp_path / "seal.jsonl").exists()

    def test_a_damaged_log_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "seal.jsonl").write_text("{oops\n")
        with pytest.raises(ConfigError, match=r"seal\.jsonl:1: not a line of this log"):
            evaluate(self.sealed(tmp_path), tmp_path / "e", unseal=True)
