"""Evaluations side by side, and the commands that make and compare them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner
from paid_evaluations import config  # type: ignore[import-not-found]

from envharness_core import compare, evaluate
from envharness_core.cli.main import cli
from envharness_core.errors import CheckpointError, ConfigError


class TestComparing:
    def test_of_one_folder_it_is_the_summary(self, source: Path, tmp_path: Path) -> None:
        summary = evaluate(config(), tmp_path / "e", source=source)
        assert compare(tmp_path / "e") == summary

    def test_two_policies_are_compared_condition_by_condition(self, tmp_path: Path) -> None:
        evaluation = {"conditions": ["none"], "limit": 40, "runs": 2}
        for name, skill in (("weak", 0.2), ("strong", 1.0)):
            policy = {"use": "paid/paid", "skill": skill}
            evaluate(config(policy=policy, evaluation=evaluation), tmp_path / name)
        told: Any = compare(tmp_path / "weak", tmp_path / "strong")
        (pair,) = told["comparisons"]
        assert (pair["condition"], pair["over"]) == ("strong: none", "weak: none")
        assert pair["finding"] == "gain"
        assert [row["condition"] for row in told["conditions"]] == ["weak: none", "strong: none"]

    def test_folders_of_one_name_are_told_apart_and_conditions_stay_apart(self, tmp_path: Path) -> None:
        (tmp_path / "bank.jsonl").write_text("")
        banks = {"x: none": str(tmp_path / "bank.jsonl")}
        evaluation = {"conditions": ["none", "x: none"], "banks": banks, "limit": 3}
        for name in ("a", "b"):
            evaluate(config(evaluation=evaluation), tmp_path / name / "eval")
        told: Any = compare(tmp_path / "a" / "eval", tmp_path / "b" / "eval")
        assert len({row["condition"] for row in told["conditions"]}) == 4
        names = [
            [pair[key].split("eval: ")[1] for key in ("condition", "over")] for pair in told["comparisons"]
        ]
        assert names == [["none", "none"], ["x: none", "x: none"]]

    def test_what_cant_be_compared_is_refused(self, source: Path, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match="a campaign, not an evaluation"):
            compare(source)
        with pytest.raises(ConfigError, match="at least one"):
            compare()


class TestCommands:
    @pytest.fixture(autouse=True)
    def quiet_again(self) -> Iterator[None]:
        """Take back the logging that a command configures."""
        yield
        structlog.reset_defaults()

    def written(self, folder: Path, text: str) -> Path:
        path = folder / "config.toml"
        path.write_text(text)
        return path

    def test_eval_and_compare(self, tmp_path: Path) -> None:
        path = self.written(
            tmp_path,
            'bridge = "toy24"\npolicy = "solver"\nexecutor = "inline"\n[tasks]\nlimit = 3\n'
            '[evaluation]\nconditions = ["none", "original"]\nlimit = 4\nruns = 2\n',
        )
        folder = str(tmp_path / "e")
        result = CliRunner().invoke(cli, ["eval", str(path), "--run-dir", folder])
        assert result.exit_code == 0, result.output
        assert "No evidence of gain of original over none" in result.output
        for command in (["compare", folder], ["eval", str(path), "--run-dir", folder]):
            assert "No evidence of gain of original over none" in CliRunner().invoke(cli, command).output
        told = json.loads(CliRunner().invoke(cli, ["compare", folder, "--json"]).output)
        assert told["conditions"][0]["condition"] == "none"
        report = CliRunner().invoke(cli, ["report", folder])
        assert isinstance(report.exception, CheckpointError)
        assert "envharness compare" in str(report.exception)

    def test_status_and_verify_know_evaluations(self, tmp_path: Path) -> None:
        path = self.written(
            tmp_path,
            'bridge = "toy24"\npolicy = "solver"\nexecutor = "inline"\n'
            '[evaluation]\nconditions = ["none"]\nlimit = 4\nruns = 1\n',
        )
        folder = str(tmp_path / "e")
        CliRunner().invoke(cli, ["eval", str(path), "--run-dir", folder], catch_exceptions=False)
        verified = CliRunner().invoke(cli, ["verify", folder, "--json"], catch_exceptions=False)
        assert verified.exit_code == 0
        assert json.loads(verified.output)["agreed"] == 4
        status = CliRunner().invoke(cli, ["status", folder, "--json"], catch_exceptions=False)
        assert json.loads(status.output)["state"] == "complete"
