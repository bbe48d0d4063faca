"""A dry run: bounds that real runs keep to, time from probed episodes, and nothing written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, campaign
from envharness_core.campaigns.estimate import Bounds, Estimate, estimate_run, longest_attempt
from envharness_core.config import make_config
from envharness_core.episode import Episode
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import OBJECTIVE
from envharness_core.outcome import Outcome
from envharness_core.spec import ComponentSpec
from envharness_core.store import Store

from .conftest import CONFIG

TOML = """
bridge = "toy24"
policy = "solver"
executor = "inline"
tasks = {limit = 3}
campaign = {budget = 40}
report = {rollouts = 10}
"""


def dry_run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    config = folder / "config.toml"
    config.write_text(TOML)
    command = [sys.executable, "-m", "envharness_core.cli.main", "run", config, "--dry-run", *args]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"designer": "catalog", "campaign": {"attempts": 3, "rounds": 2}},
        {"designer": "catalog", "campaign": {"attempts": 9, "budget": 30}, "report": {"rollouts": 3}},
        {"designer": "noop", "report": {"rollouts": 2, "weaker": "random", "sensitivity": 3}},
        {"policy": {"use": "solver", "skill": 0.1}, "demonstrator": "solver", "designer": "catalog"},
    ],
    ids=["scripted", "rounds", "budget", "noop", "demonstrator"],
)
def test_a_run_keeps_to_its_bounds(changes: JsonObject, tmp_path: Path) -> None:
    config: JsonObject = {**CONFIG, **changes}
    estimate = estimate_run(make_config(config), probe=0)
    assert (estimate.tasks, estimate.workers, estimate.seconds) == (4, 1, None)
    campaign(config, tmp_path / "run")
    with Store.open(tmp_path / "run", read_only=True) as store:
        played = sum(count for _, _, count in store.counts())
    assert estimate.rollouts.least <= played <= estimate.rollouts.most


def test_the_longest_attempt_is_that_of_the_objective() -> None:
    settings: JsonObject = {"max_rollouts": 16, "min_rollouts": 6, "confirm_rollouts": 7}
    made = Plugins().create(OBJECTIVE, ComponentSpec("core/success_band", settings), "objective")
    assert 16 <= longest_attempt(made) <= 16 + 7


def test_time_and_usage_are_those_of_the_probed() -> None:
    def probed(seconds: float, usage: JsonObject) -> Episode:
        return Episode("k", "t", "probe", 0, Outcome.ENV_ERROR, None, 1, seconds, usage)

    estimate = Estimate(
        tasks=10,
        design=Bounds(5, 20),
        report=Bounds(0, 30),
        workers=4,
        probed=(probed(1.0, {"tokens": 100}), probed(3.0, {"tokens": 50, "model": "text"}), probed(2.0, {})),
    )
    assert estimate.rollouts == Bounds(50, 500)
    assert estimate.seconds == Bounds(25.0, 250.0)
    assert estimate.usage == {"tokens": Bounds(2500, 25000)}


def test_the_command_writes_nothing(tmp_path: Path) -> None:
    done = dry_run(tmp_path, "--run-dir", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    told: Any = json.loads(done.stdout)
    assert told["measured"]["episodes"] == told["measured"]["graded"] > 2
    assert 0 < told["seconds"]["least"] <= told["seconds"]["most"] or told["measured"]["seconds"] < 0.01
    assert told["rollouts"] == {"least": 3 * 15, "most": 3 * (40 + 5 + 20)}
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    assert "nothing was written" in dry_run(tmp_path).stdout
    assert json.loads(dry_run(tmp_path, "--probe", "0", "--json").stdout)["measured"] is None


def test_what_a_run_would_refuse_is_refused(tmp_path: Path) -> None:
    done = dry_run(tmp_path, "--set", "policy.skil=1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    (tmp_path / "config.toml").write_text(TOML)
    command = [sys.executable, "-m", "envharness_core.cli.main", "run", str(tmp_path / "config.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "envharness: --run-dir: where is the run to be kept?\n")


def test_a_policy_that_breaks_is_told(tmp_path: Path) -> None:
    done = dry_run(tmp_path, "--set", 'policy={use = "scripted", actions = [{name = "undo"}]}')
    assert done.returncode == 3
    assert "no probed episode was graded; the first: policy_error" in done.stderr
