"""Verification: a store that was changed afterwards is found out."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, campaign
from envharness_core.store import Store
from envharness_core.verify import verify_run


def run(tmp_path: Path, **changes: Any) -> None:
    config: Any = {
        "bridge": "toy24",
        "policy": "solver",
        "tasks": {"limit": 1},
        "designer": {"use": "scripted", "candidates": [[{"use": "faults"}]]},
        "executor": "inline",
        **changes,
    }
    campaign(config, tmp_path / "run")


def swap_trajectories(connection: Any) -> None:
    connection.execute(
        "UPDATE episodes SET trajectory = (SELECT trajectory FROM episodes WHERE task != a.task LIMIT 1), "
        "steps = (SELECT steps FROM episodes WHERE task != a.task LIMIT 1) FROM episodes AS a "
        "WHERE episodes.key = a.key AND a.stream = 'baseline' AND a.idx = 0"
    )


def test_verify_ties_a_trajectory_to_its_own_row(tmp_path: Path) -> None:
    run(tmp_path, tasks={"limit": 2})
    with Store.open(tmp_path / "run") as store:
        swap_trajectories(store._connection)
        found = verify_run(store, Plugins())
    assert found.disagreed == 2
    assert all("its events are of task" in item.detail for item in found.disagreements)


TAMPERED = {
    "outcome": ("UPDATE episodes SET outcome = 'env_error' WHERE idx = 0", "and has a verdict"),
    "hidden": (
        "UPDATE episodes SET success = NULL, score = NULL, metrics = NULL, outcome = 'env_error' WHERE idx = 0",
        "its events end with one",
    ),
    "stream": ("UPDATE episodes SET stream = 'report after' WHERE idx = 0", "its place or its seeds"),
    "seed": ("UPDATE episodes SET policy_seed = 1 WHERE idx = 0", "its place or its seeds"),
    "layers": (
        "UPDATE designs SET design = json_set(design, '$.layers', json('[]'))",
        "its design is missing",
    ),
    "design": ("DELETE FROM designs", "its design is missing"),
    "row": ("UPDATE episodes SET metrics = '[1' WHERE idx = 0", "a damaged row"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_verify_finds_what_was_changed_in_the_store(tmp_path: Path, name: str) -> None:
    statement, says = TAMPERED[name]
    run(tmp_path)
    with Store.open(tmp_path / "run") as store:
        changed = store._connection.execute(statement).rowcount
        found = verify_run(store, Plugins())
    assert changed > 0
    assert found.disagreed > 0
    assert all(says in item.detail for item in found.disagreements)


def test_verify_misses_rows_that_were_deleted(tmp_path: Path) -> None:
    run(tmp_path)
    with Store.open(tmp_path / "run") as store:
        store._connection.execute("DELETE FROM episodes WHERE idx = 1")
        assert verify_run(store, Plugins()).missing > 0
        with pytest.raises(sqlite3.IntegrityError):
            store._connection.execute("UPDATE episodes SET success = 100")


def test_verify_misses_a_verdict_that_was_taken_away(tmp_path: Path) -> None:
    run(tmp_path)
    with Store.open(tmp_path / "run") as store:
        store._connection.execute("UPDATE episodes SET success = NULL WHERE stream = 'baseline' AND idx = 0")
        found = verify_run(store, Plugins())
    assert [item.detail for item in found.disagreements] == ["it ended as completed and has no verdict"]


def test_verify_knows_the_second_leg_s_task(tmp_path: Path) -> None:
    link = {"use": "link", "next": {"bridge": "toy24", "task": "1-5-5-5"}}
    easy = {"use": "link", "next": {"bridge": "toy24", "task": "1-2-3-4"}}
    run(tmp_path, designer={"use": "scripted", "candidates": [[link], [easy]]})
    with Store.open(tmp_path / "run") as store:
        assert verify_run(store, Plugins()).disagreed == 0
        store._connection.execute(
            "UPDATE episodes SET (trajectory, steps) = "
            "(SELECT trajectory, steps FROM episodes WHERE stream = 'smoke 1') WHERE stream = 'smoke 0'"
        )
        found = verify_run(store, Plugins())
    assert ["its events are of task '1-2-3-4'" in item.detail for item in found.disagreements] == [True]
