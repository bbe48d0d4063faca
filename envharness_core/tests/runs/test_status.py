"""Status: running, stale, stopped and complete are told apart, from beside the run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from envharness_core import campaign
from envharness_core.campaigns.holding import Progress
from envharness_core.campaigns.run import run_campaign
from envharness_core.campaigns.schedule import DrainedError
from envharness_core.config import make_config
from envharness_core.heartbeat import FILE, Heartbeat, last_beat
from envharness_core.jsondata import JsonObject
from envharness_core.status import run_status
from envharness_core.store import Store

from .conftest import CONFIG, Copied, envharness

LONG: JsonObject = {**CONFIG, "report": {"rollouts": 100_000}}


def beat(folder: Path, **changes: object) -> None:
    fresh = {"pid": os.getpid(), "host": socket.gethostname(), "time": time.time(), "progress": {}}
    (folder / FILE).write_text(json.dumps({**fresh, **changes}))


def test_a_complete_run(complete: Path) -> None:
    status = run_status(complete)
    assert (status.state, status.session, status.rate, status.left) == ("complete", None, None, None)
    with Store.open(complete, read_only=True) as store:
        assert sum(map(sum, (outcomes.values() for outcomes in status.episodes.values()))) == len(
            list(store.episodes())
        )
    assert (status.tasks, status.designed) == (4, 4)
    assert status.accepted + status.kept + status.abandoned == 4
    assert not (complete / FILE).exists()
    assert json.loads(envharness("status", complete, "--json").stdout) == status.as_json()
    assert "complete" in envharness("status", complete, "--watch").stdout


def test_a_session_that_is_at_work(tmp_path: Path) -> None:
    seen: list[Any] = []

    def listener(progress: Progress) -> None:
        if progress.episodes in (1, 30):
            seen.append(run_status(tmp_path / "run"))

    campaign(CONFIG, tmp_path / "run", listener=listener)
    first, later = seen
    assert first.state == later.state == "running"
    assert first.session["pid"] == os.getpid()
    counted = [sum(sum(outcomes.values()) for outcomes in status.episodes.values()) for status in seen]
    assert counted == [1, 30]
    assert run_status(tmp_path / "run").state == "complete"


def test_pace_comes_from_the_session(copied: Copied) -> None:
    folder = copied("paced")
    progress = {"episodes": 50, "seconds": 10.0, "designed": 2, "expected": 150}
    beat(folder, progress=progress)
    assert (run_status(folder).rate, run_status(folder).left) == (5.0, 20.0)
    beat(folder, progress={**progress, "designed": 0})
    assert (run_status(folder).rate, run_status(folder).left) == (5.0, None)
    told = envharness("status", folder).stdout
    assert "5 episodes a second" in told


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "running"),
        ({"time": time.time() - 3600}, "stale"),
        ({"pid": 2**22 + 1}, "stale"),
        ({"pid": 2**22 + 1, "host": "elsewhere"}, "running"),
        ({"pid": "damaged"}, "stopped"),
    ],
)
def test_signs_of_life(tmp_path: Path, changes: dict[str, object], state: str) -> None:
    with Store.create(tmp_path / "run", {}):
        pass
    beat(tmp_path / "run", **changes)
    assert run_status(tmp_path / "run").state == state


def test_a_run_that_was_drained_has_stopped(tmp_path: Path) -> None:
    stop = Event()
    with pytest.raises(DrainedError):
        run_campaign(make_config(LONG), tmp_path / "run", listener=lambda _: stop.set(), stop=stop)
    assert run_status(tmp_path / "run").state == "stopped"
    assert "the same `envharness run` goes on with it" in envharness("status", tmp_path / "run").stdout


def test_a_killed_session_is_stale_and_a_running_one_isn_t_disturbed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = f"from envharness_core import campaign; campaign({LONG!r}, {str(folder)!r})"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        deadline = time.monotonic() + 60
        while not (Store.exists(folder) and run_status(folder).designed) and time.monotonic() < deadline:
            time.sleep(0.05)
        before = run_status(folder)
        for _ in range(20):
            assert run_status(folder).state == "running"
        watched = subprocess.Popen(
            [sys.executable, "-m", "envharness_core.cli.main", "status", folder, "--watch", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watched.stdout is not None
        assert json.loads(watched.stdout.readline())["state"] == "running"
        process.send_signal(signal.SIGKILL)
    assert before.state == "running"
    assert run_status(folder).state == "stale"
    rest, _ = watched.communicate(timeout=30)
    assert json.loads(rest.splitlines()[-1])["state"] == "stale"


def test_a_heart_that_can_t_write_harms_nobody(tmp_path: Path) -> None:
    with Heartbeat(tmp_path / "gone") as heart:
        heart.note({"episodes": 1})
    assert last_beat(tmp_path / "gone") is None


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    done = envharness("status", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "not a run folder" in done.stderr
