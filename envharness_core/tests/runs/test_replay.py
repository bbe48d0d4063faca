"""Replay: the same decisions from stored episodes alone, and a readable difference where something else was stored."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, campaign
from envharness_core.campaigns.replay import Replay, replay_run
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import BRIDGE, EXECUTOR, POLICY
from envharness_core.store import FILE, Store

from .conftest import CONFIG, Copied, envharness


class Closed(Plugins):
    """Plugins that refuse to make whatever plays."""

    def create(self, kind: Any, spec: Any, where: str) -> Any:
        assert kind not in (BRIDGE, POLICY, EXECUTOR), f"a replay made a {kind.name}"
        return super().create(kind, spec, where)


def replayed(folder: Path, *overrides: str, **modules: str) -> Replay:
    with Store.open(folder, read_only=True) as store:
        return replay_run(store, Closed(modules), overrides)


def change(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / FILE) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def test_a_complete_run_is_decided_the_same(complete: Path) -> None:
    replay = replayed(complete)
    assert replay.same
    assert [task.status for task in replay.tasks] == [task.stored for task in replay.tasks]
    done = envharness("replay", complete)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 tasks: 4 decided the same, 0 otherwise" in done.stdout


@pytest.mark.parametrize(
    "changes",
    [
        {"designer": "catalog", "campaign": {"wave": 2, "rounds": 2, "attempts": 4}},
        {"designer": "catalog", "policy": {"use": "solver", "skill": 0.1}, "demonstrator": "solver"},
        {"designer": "odd/odd", "plugins": {"odd": "odd_designers"}, "campaign": {"attempts": 9, "wave": 2}},
        {
            "designer": "odd/odd",
            "plugins": {"odd": "odd_designers"},
            "campaign": {"rounds": 2, "attempts": 9},
        },
        {"policy": {"use": "scripted", "actions": [{"name": "undo", "kwargs": {}}]}},
    ],
    ids=["catalog", "demonstrator", "odd", "odd-rounds", "broken"],
)
def test_whatever_was_decided_is_decided_again(changes: JsonObject, tmp_path: Path) -> None:
    campaign({**CONFIG, "report": {"rollouts": 0}, **changes}, tmp_path / "run")
    modules: dict[str, str] = changes.get("plugins", {})  # type: ignore[assignment]
    replay = replayed(tmp_path / "run", **modules)
    assert replay.as_json()["different"] == replay.as_json()["open"] == []
    assert (replay.same, len(replay.tasks), replay.unfinished) == (True, 4, 0)


def test_a_changed_result_is_told(copied: Copied) -> None:
    folder = copied("changed")
    with Store.open(folder) as store:
        results: list[Any] = store.results()
    victim = next(result for result in results if result["attempts"])
    victim["attempts"][0]["validation"]["successes"] += 1
    change(folder, "UPDATE tasks SET result = ? WHERE task = ?", json.dumps(victim), victim["task"])
    (different,) = [task for task in replayed(folder).tasks if not task.same]
    wins = victim["attempts"][0]["validation"]["successes"]
    assert different.changes == (f"attempts[0].validation.successes: {wins} (now {wins - 1})",)
    done = envharness("replay", folder)
    assert done.returncode == 1
    assert f"    attempts[0].validation.successes: {wins} (now {wins - 1})\n" in done.stdout


def test_a_changed_verdict_changes_decisions(copied: Copied) -> None:
    folder = copied("changed")
    change(folder, "UPDATE episodes SET success = 0 WHERE stream LIKE 'attempt%' OR stream LIKE 'confirm%'")
    replay = replayed(folder)
    assert not replay.same
    assert replay.as_json()["accepted"] != {"stored": replay.as_json()["accepted"]}


def test_a_missing_episode_is_said_to_be_needed(copied: Copied) -> None:
    folder = copied("holes")
    change(folder, "DELETE FROM episodes WHERE stream = 'baseline' AND idx = 3")
    told: Any = replayed(folder).as_json()
    assert [task["needs"] for task in told["open"]] == [
        "1 of 5 rollouts of 'baseline' on the unchanged task"
    ] * 4
    assert envharness("replay", folder).returncode == 1


def test_what_if(complete: Path) -> None:
    same = replayed(complete, "objective.low=0.2")
    assert same.same
    never = replayed(complete, "objective.low=0.001", "objective.high=0.002", "campaign.attempts=1")
    assert [task.status for task in never.tasks if not task.needs] == [
        "abandoned" for task in never.tasks if not task.needs
    ]
    assert not never.same
    stricter = replayed(complete, "objective.min_rollouts=19")
    assert any("rollouts of 'attempt" in task.needs for task in stricter.tasks)
    done = envharness("replay", complete, "--set", "objective.min_rollouts=19")
    assert done.returncode == 0
    assert "to go on now it needs" in done.stdout
    assert json.loads(envharness("replay", complete, "--set", "objective.min_rollouts=19", "--json").stdout)[
        "open"
    ]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("policy.skill=0.2", "what can be asked of stored ones is objective, designer, campaign"),
        ("seed=4", "what can be asked of stored ones is"),
        ("campaign.wave=3", "who learns from whom is part of the stored run"),
        ("campaign={wave = 3}", "who learns from whom is part of the stored run"),
        ("objective.lowest=0.1", "unknown key 'lowest'"),
        ("objective", "expected a.b=value"),
    ],
)
def test_what_can_t_be_asked_is_refused(complete: Path, override: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        replayed(complete, override)
    assert words in str(caught.value)


def test_an_unfinished_run_is_replayed_as_far_as_it_went(copied: Copied) -> None:
    folder = copied("unfinished")
    change(folder, "DELETE FROM tasks WHERE position >= 2")
    replay = replayed(folder)
    assert (replay.same, len(replay.tasks), replay.unfinished) == (True, 2, 2)


def test_an_old_run_is_refused(copied: Copied) -> None:
    folder = copied("old")
    change(folder, "DELETE FROM meta WHERE name = 'world'")
    with pytest.raises(CheckpointError, match="wrote down too little"):
        replayed(folder)
    done = envharness("replay", folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
