"""A run's log: JSON lines with the ids that they are about, no secrets, and silence where nobody asked for one."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import structlog

from envharness_core import campaign
from envharness_core.cli.logs import LOG, configure_logging
from envharness_core.jsondata import JsonObject
from envharness_core.store import Store
from envharness_core.warn import note, warn

from .conftest import CONFIG

TOML = """
seed = 3
bridge = "toy24"
policy = {use = "solver", skill = 0.7}
tasks = {limit = 2}
objective = {use = "success_band", low = 0.2, high = 0.8}
designer = {use = "odd/odd"}
plugins = {odd = "odd_designers"}
campaign = {attempts = 9}
executor = "inline"
"""


def entries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


@pytest.fixture
def quiet_again() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_a_run_of_the_command_line_leaves_a_log(tmp_path: Path) -> None:
    fixtures = Path(__file__).parent.parent / "fixtures" / "odd_designers.py"
    (tmp_path / "odd_designers.py").write_text(fixtures.read_text())
    (tmp_path / "config.toml").write_text(TOML)
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "envharness_core.cli.main", "run", tmp_path / "config.toml"]
    done = subprocess.run(
        [*map(str, command), "--run-dir", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log = entries(folder)
    assert [log[0]["event"], log[-1]["event"]] == ["session_began", "session_ended"]
    assert {entry["run"] for entry in log} == {"run"}
    assert all(datetime.fromisoformat(entry["time"]).utcoffset() is not None for entry in log)
    designed = [entry for entry in log if entry["event"] == "task_designed"]
    with Store.open(folder, read_only=True) as store:
        results: list[Any] = store.results()
    assert {entry["task"]: entry["status"] for entry in designed} == {r["task"]: r["status"] for r in results}
    tried = [entry for entry in log if entry["event"].startswith("candidate_")]
    assert len(tried) == sum(len(result["attempts"]) for result in results)
    assert all(len(entry["candidate"]) == 32 and entry["task"] for entry in tried)
    rejected = [entry for entry in tried if entry["event"] == "candidate_rejected"]
    assert {entry["level"] for entry in rejected} == {"warning"}
    assert done.stderr.count("candidate_rejected") == len(rejected) > 0
    assert "candidate_judged" not in done.stderr


def test_excluded_episodes_are_named(tmp_path: Path, quiet_again: None) -> None:
    configure_logging(tmp_path / "run")
    broken: JsonObject = {"use": "scripted", "actions": [{"name": "undo", "kwargs": {}}]}
    campaign({**CONFIG, "policy": broken}, tmp_path / "run")
    with Store.open(tmp_path / "run", read_only=True) as store:
        keys = {episode.key for episode in store.episodes()}
    named = [entry["episode"] for entry in entries(tmp_path / "run") if entry["event"] == "episode_excluded"]
    assert len(named) == len(keys) > 0
    assert set(named) == keys


def test_secrets_are_redacted_on_the_terminal_and_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet_again: None
) -> None:
    with Store.create(tmp_path / "run", {}):
        configure_logging(tmp_path / "run")
        secret = "sk-Ab3dEf6hIj9kLm2nOp5q"
        warn("call_failed", error=ValueError(f"bad key {secret}"), api_key="short", tokens=5)
    told = (tmp_path / "run" / LOG).read_text()
    terminal = capsys.readouterr().err
    assert secret not in told + terminal
    assert "short" not in told + terminal
    (entry,) = entries(tmp_path / "run")
    assert (entry["error"], entry["api_key"], entry["tokens"]) == ("bad key [redacted]", "[redacted]", 5)
    assert "call_failed" in terminal


def test_nothing_is_written_where_there_is_no_run(tmp_path: Path, quiet_again: None) -> None:
    configure_logging(tmp_path / "nowhere")
    warn("something")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_can_t_be_written_harms_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet_again: None
) -> None:
    with Store.create(tmp_path / "run", {}):
        (tmp_path / "run" / LOG).mkdir()
        configure_logging(tmp_path / "run")
        warn("first")
        warn("second")
    told = capsys.readouterr().err
    assert told.count(LOG) == 1
    assert "first" in told
    assert "second" in told


def test_the_library_configures_nothing_and_notes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not structlog.is_configured()
    campaign({**CONFIG, "tasks": {"limit": 1}}, tmp_path / "run")
    note("something", task="x")
    assert not structlog.is_configured()
    assert not (tmp_path / "run" / LOG).exists()
    assert capsys.readouterr() == ("", "")
    assert logging.getLogger().level == logging.WARNING
