"""A run that is killed at any moment goes on, ends as if nothing had happened, and repeats nothing that was stored."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envharness_core.plugins import Plugins
from envharness_core.store import FILE, Store
from envharness_core.verify import verify_run

FIXTURES = Path(__file__).parent.parent / "fixtures"
CONFIG = """
seed = 7
bridge = "toy24"
policy = {use = "logged_solver/logged_solver", skill = 0.6}
limits = {steps = 20}
tasks = {limit = 6}
executor = {use = "local", workers = 2}
campaign = {attempts = 4, wave = 3}
report = {rollouts = 40}
[objective]
use = "success_band"
[designer]
use = "catalog"
[plugins]
logged_solver = "logged_solver"
"""
RUNS, KILLS = 5, 6  # thirty moments in all


def command(config: Path, folder: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "envharness_core.cli.main",
        "run",
        str(config),
        "--run-dir",
        str(folder),
        "--json",
    ]


def environment(log: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(FIXTURES), "LOGGED_SOLVER": str(log)}


def finished(config: Path, folder: Path, log: Path) -> Any:
    done = subprocess.run(
        command(config, folder),
        env=environment(log),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def results(folder: Path) -> tuple[Any, list[Any]]:
    with Store.open(folder) as store:
        episodes = [(e.key, str(e.outcome), e.success, e.steps) for e in store.episodes()]
        return store.results(), episodes


def stored(folder: Path) -> set[str]:
    """Return the policy's seeds of the episodes that a folder holds."""
    if not Store.exists(folder):
        return set()
    connection = sqlite3.connect(folder / FILE)
    try:
        return {str(seed) for (seed,) in connection.execute("SELECT policy_seed FROM episodes")}
    finally:
        connection.close()


def children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(child) for child in listed.split()]


def left(pids: list[int]) -> list[int]:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.slow
def test_a_run_that_is_killed_thirty_times_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    began = time.monotonic()
    undisturbed = finished(config, tmp_path / "whole", tmp_path / "whole.log")
    whole = time.monotonic() - began
    expected = results(tmp_path / "whole")
    chance = random.Random(5)
    for number in range(RUNS):
        folder, log = tmp_path / f"run{number}", tmp_path / f"run{number}.log"
        for _ in range(KILLS):
            known = stored(folder)
            log.write_text("")
            kill_once(config, folder, log, chance, whole)
            assert not known & set(log.read_text().split())
        known = stored(folder)
        log.write_text("")
        summary = finished(config, folder, log)
        assert not known & set(log.read_text().split())
        assert results(folder) == expected
        assert {**summary, "seconds": 0} == {**undisturbed, "seconds": 0}
    with Store.open(tmp_path / "run0") as store:
        found = verify_run(store, Plugins({"logged_solver": "logged_solver"}))
    assert found.disagreed == 0


def kill_once(config: Path, folder: Path, log: Path, chance: random.Random, whole: float) -> None:
    """Begin the run or go on with it, kill a worker on the way, and the runner at a random moment."""
    with subprocess.Popen(
        command(config, folder), env=environment(log), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as runner:
        until = time.monotonic() + chance.uniform(0.2, max(0.5, whole / 2))
        victim = time.monotonic() + chance.uniform(0.1, whole / 2)
        workers: list[int] = []
        while runner.poll() is None and time.monotonic() < until:
            workers = children(runner.pid) or workers
            if workers and time.monotonic() > victim:
                os.kill(chance.choice(workers), signal.SIGKILL)
                victim = until + 1
            time.sleep(0.005)
        runner.kill()
        runner.wait()
    assert left(workers) == []


def test_a_torn_write_is_no_loss(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG.replace("limit = 6", "limit = 2").replace("rollouts = 40", "rollouts = 5"))
    log = tmp_path / "log"
    finished(config, tmp_path / "run", log)
    expected = results(tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        store._connection.execute("DELETE FROM meta WHERE name = 'summary'")
    # what a crash in the middle of a write leaves
    (tmp_path / "run" / f"{FILE}-wal").write_bytes(os.urandom(5000))
    log.write_text("")
    finished(config, tmp_path / "run", log)
    assert results(tmp_path / "run") == expected
    assert not stored(tmp_path / "run") & set(log.read_text().split())
