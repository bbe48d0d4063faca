"""A small complete run, played once for all tests of what is done with runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envharness_core import campaign
from envharness_core.jsondata import JsonObject

CONFIG: JsonObject = {
    "seed": 3,
    "bridge": "toy24",
    "policy": {"use": "solver", "skill": 0.7},
    "tasks": {"limit": 4},
    "limits": {"steps": 20},
    "objective": {"use": "success_band", "low": 0.2, "high": 0.8, "confirm_rollouts": 4},
    "designer": {
        "use": "scripted",
        "candidates": [
            [{"use": "faults", "rate": 0.3}, {"use": "budget", "steps": 5}],
            [{"use": "closed", "tool": "undo"}],
        ],
    },
    "campaign": {"wave": 2},
    "report": {"rollouts": 4},
    "executor": "inline",
}

Copied = Callable[[str], Path]


def envharness(*args: str | Path, said: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envharness_core.cli.main", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, input=said)


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a complete run; nothing may be changed in it."""
    folder = tmp_path_factory.mktemp("runs") / "complete"
    summary = campaign(CONFIG, folder)
    assert summary["accepted"]
    return folder


@pytest.fixture
def copied(complete: Path, tmp_path: Path) -> Copied:
    """Copy the complete run to a folder that a test may do with as it likes."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(complete, tmp_path / name))

    return copy
