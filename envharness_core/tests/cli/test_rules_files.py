"""The command line's side of rules as source code: files of rules, the sandbox's mode, and the doctor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PASS = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        return action\n"


def envharness(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envharness_core.cli.main", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def rolled(path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    policy = '{use = "solver", skill = 0.9}'
    return envharness("rollout", "toy24", "1-2-3-4", "--policy", policy, "--layer", path, "--json", *more)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.py"
    path.write_text(PASS)
    return path


def test_a_file_of_rules_is_a_layer(rules: Path) -> None:
    rules.write_text(
        PASS.replace("return action", "return Blocked('no') if action.name == 'stop' else action")
    )
    report: Any = json.loads(rolled(rules).stdout)
    assert report["graded"] == 1


def test_local_workers_have_sandboxes_of_their_own(rules: Path) -> None:
    report: Any = json.loads(rolled(rules, "-n", "4", "--executor", "{use = 'local', workers = 2}").stdout)
    assert (report["graded"], report["excluded"]) == (4, {})


def test_the_mode_reaches_the_workers_and_is_logged(rules: Path) -> None:
    done = rolled(rules, "--sandbox", "process", "--executor", "{use = 'local', workers = 1}")
    assert json.loads(done.stdout)["graded"] == 1
    assert done.stderr.count("sandbox_not_locked") >= 1


def test_a_mistake_is_one_line_with_its_place(rules: Path) -> None:
    rules.write_text("import os\n" + PASS)
    done = rolled(rules)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("envharness: source (forbidden, line 1): os: not importable")
    assert done.stderr.count("\n") == 1


def test_a_fault_in_an_episode_is_a_rules_error_with_the_authors_lines(rules: Path) -> None:
    rules.write_text(PASS.replace("return action", "return action.kwargs['none']"))
    episode: Any = json.loads(rolled(rules).stdout)["episodes"][0]
    assert (episode["outcome"], episode["verdict"]) == ("rules_error", None)
    assert episode["error"] == (
        "filter_action (raised, line 3): KeyError: 'none' "
        "[line 3, in filter_action: return action.kwargs['none']]"
    )


def test_what_rules_say_does_nothing_to_a_terminal(rules: Path) -> None:
    rules.write_text(
        PASS.replace("return action", "return Blocked(chr(27) + ']0;owned' + chr(7) + action.name)")
    )
    policy = '{use = "solver", skill = 0.9}'
    told = envharness(
        "rollout", "toy24", "1-2-3-4", "--policy", policy, "--layer", rules, "--steps", "2", "--show"
    )
    assert "\\x1b]0;owned\\x07" in told.stdout
    assert "\x1b" not in told.stdout + told.stderr


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = rolled(tmp_path / "none.py")
    assert done.returncode == 2
    assert "none.py" in done.stderr
    assert done.stderr.count("\n") == 1


def test_check_takes_a_file_of_rules(rules: Path) -> None:
    done = envharness("check", rules, "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["failed"] == 0
    rules.write_text("class _Rules(Rules):\n    def filter_observation(self, o, s):\n        return None\n")
    broken = envharness("check", rules, "--json")
    assert broken.returncode == 1
    assert "is a return missing?" in broken.stdout


def test_the_doctor_says_what_holds() -> None:
    report: Any = json.loads(envharness("doctor", "--json").stdout)
    assert report["locked"] is True
    assert report["problem"] is None
    assert all(part["holds"] for part in report["sandbox"])
    told = envharness("doctor")
    assert told.returncode == 0
    assert "tried: read a file: Operation not permitted" in told.stdout
    assert told.stdout.endswith("rules as source code: run in the locked sandbox\n")
