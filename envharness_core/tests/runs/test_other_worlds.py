"""A run that goes on, or is verified, where the benchmark has other data or another version than it began with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, campaign
from envharness_core.errors import ConfigError
from envharness_core.store import Store
from envharness_core.verify import Verification, verify_run

CONFIG: dict[str, Any] = {
    "seed": 1,
    "plugins": {"shifting": "shifting_world"},
    "bridge": {"use": "shifting"},
    "policy": {"use": "random"},
    "limits": {"steps": 6},
    "designer": {"use": "noop"},
    "report": {"rollouts": 5},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    campaign(CONFIG, tmp_path / "run")
    return tmp_path / "run"


def verified(folder: Path) -> Verification:
    with Store.open(folder, read_only=True) as store:
        return verify_run(store, Plugins({"shifting": "shifting_world"}))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SHIFTING_VERSION", r"was played on counter 1, and here is counter 2; use another folder"),
        ("SHIFTING_TASKS", r"its 2 tasks aren't the 1 that are here now \(first: three there, five here\)"),
    ],
)
def test_it_does_not_go_on_there(run: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str) -> None:
    monkeypatch.setenv(name, "2")
    with pytest.raises(ConfigError, match=told):
        campaign(CONFIG, run)
    monkeypatch.delenv(name)
    campaign(CONFIG, run)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SHIFTING_VERSION", "it was played on counter 1, and here is counter 2"),
        ("SHIFTING_WORDS", "the bridge shows something else now"),
    ],
)
def test_what_it_played_is_not_comparable_there(
    run: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    assert verified(run).agreed == verified(run).episodes > 0
    monkeypatch.setenv(name, "2")
    found = verified(run)
    assert (found.agreed, found.disagreed, found.not_comparable) == (0, 0, found.episodes)
    assert told in found.reason
