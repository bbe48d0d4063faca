"""Runs to write pages of, and the pages: one of Toy24 in two rounds, one whose every text is hostile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envharness_core import campaign
from envharness_core.jsondata import JsonObject

TOY24: JsonObject = {
    "seed": 5,
    "bridge": "toy24",
    "policy": {"use": "solver", "skill": 0.8},
    "tasks": {"limit": 6},
    "limits": {"steps": 20},
    "objective": {"use": "success_band", "low": 0.2, "high": 0.8, "confirm_rollouts": 4, "confirm": 0.2},
    "designer": {
        "use": "scripted",
        "candidates": [
            [{"use": "budget", "steps": 3}],
            [{"use": "faults", "rate": 0.3}],
            [{"use": "budget", "steps": 5}],
        ],
    },
    "campaign": {"rounds": 2, "attempts": 3},
    "report": {"rollouts": 8, "weaker": {"use": "solver", "skill": 0.4}, "sensitivity": 3},
    "executor": "inline",
}
HOSTILE: JsonObject = {
    "bridge": "hostile/words",
    "policy": "hostile/talks",
    "objective": {"use": "success_band", "low": 0.1, "high": 0.9},
    "designer": "hostile/nasty",
    "campaign": {"rerolls": 20},
    "report": {"rollouts": 30},
    "executor": "inline",
    "plugins": {"hostile": "hostile_texts"},
}


@pytest.fixture(scope="session")
def toy24(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Toy24 with rounds, attempts that fail, and a weaker policy."""
    return _run(tmp_path_factory, "toy24", TOY24)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is full of markup, with episodes that are excluded."""
    return _run(tmp_path_factory, "hostile <i>run", HOSTILE)


def _run(tmp_path_factory: pytest.TempPathFactory, name: str, config: Any) -> Path:
    folder = tmp_path_factory.mktemp("runs") / name
    campaign(config, folder)
    return folder
