"""Verification in several processes: the same answer as in one, damaged runs included; nothing is left behind."""

from __future__ import annotations

import json
import sqlite3
from multiprocessing import active_children
from pathlib import Path

import pytest

from envharness_core import Plugins
from envharness_core.errors import CheckpointError, ExecutorError
from envharness_core.store import FILE, Store
from envharness_core.verify import Verification, verify_run
from envharness_core.verify_jobs import verify_jobs

from .conftest import Copied


def change(folder: Path, *statements: str) -> None:
    with sqlite3.connect(folder / FILE) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def both(folder: Path, **modules: str) -> Verification:
    with Store.open(folder, read_only=True) as store:
        serial = verify_run(store, Plugins(modules))
        parallel = verify_jobs(store, Plugins(modules), 2, worth=1, chunk=7)
    assert parallel == serial
    assert active_children() == []
    return parallel


def test_a_sound_run(complete: Path) -> None:
    found = both(complete)
    assert found.episodes == found.agreed > 40


def test_a_run_that_somebody_has_changed(copied: Copied) -> None:
    folder = copied("changed")
    change(
        folder,
        "UPDATE episodes SET success = 1 - success WHERE idx = 2",
        "UPDATE episodes SET trajectory = x'0102' WHERE idx = 1 AND stream = 'baseline'",
        "UPDATE episodes SET env_seed = 1 WHERE idx = 3 AND stream = 'report before'",
        "DELETE FROM episodes WHERE idx = 0 AND stream = 'report before'",
    )
    found = both(folder)
    assert found.disagreed == len(found.disagreements) > 10
    assert found.missing == 4


def test_a_benchmark_that_is_missing(copied: Copied) -> None:
    folder = copied("foreign")
    with sqlite3.connect(folder / FILE) as connection:
        rows = list(connection.execute("SELECT key, design FROM designs"))
    connection.close()
    assert json.loads(rows[0][1])["bridge"] == {"use": "core/toy24"}
    change(folder, """UPDATE designs SET design = replace(design, 'core/toy24', 'gone/toy24')""")
    assert both(folder).agreed == 0


def test_a_process_that_dies_is_told(copied: Copied) -> None:
    with Store.open(copied("run"), read_only=True) as store:
        store.folder = store.folder / "gone"  # where the processes look
        with pytest.raises(ExecutorError, match="a verifying process died"):
            verify_jobs(store, Plugins(), 2, worth=1, chunk=7)
    assert active_children() == []


def test_a_small_run_needs_no_process(complete: Path) -> None:
    started: list[object] = []
    with Store.open(complete, read_only=True) as store:
        assert verify_jobs(store, Plugins(), 8, lambda _: started.extend(active_children())).agreed > 0
        assert not started
        verify_jobs(store, Plugins(), 2, lambda _: started.extend(active_children()), worth=1, chunk=7)
    assert started


@pytest.mark.parametrize("jobs", [1, 2])
def test_pruned_trajectories_can_t_be_verified(copied: Copied, jobs: int) -> None:
    folder = copied("pruned")
    change(folder, "INSERT INTO meta VALUES ('pruned', 'true')")
    with Store.open(folder, read_only=True) as store, pytest.raises(CheckpointError, match="were pruned"):
        verify_jobs(store, Plugins(), jobs, worth=1)
