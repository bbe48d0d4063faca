"""A bridge's notes for designers: in the evidence, in the run folder, and in a replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import noting_designers  # type: ignore[import-not-found]
from click.testing import CliRunner

from envharness_core import Plugins, campaign
from envharness_core.campaigns.facts import read_facts
from envharness_core.campaigns.replay import replay_run
from envharness_core.cli.designer_command import command
from envharness_core.store import Store
from envharness_core.toy24.bridge import Toy24

PLUGINS = {"noting": "noting_designers", "testing": "envharness_core.testing.plugin"}


def run(bridge: str, folder: Path) -> None:
    data: Any = {
        "bridge": bridge,
        "policy": {"use": "random"},
        "designer": "noting",
        "executor": "inline",
        "plugins": PLUGINS,
        "tasks": {"limit": 1},
        "campaign": {"rollouts": 2},
        "report": {"rollouts": 0},
    }
    campaign(data, folder)


def test_they_reach_the_evidence_and_are_written_down(tmp_path: Path) -> None:
    noting_designers.SEEN.clear()
    run("toy24", tmp_path / "run")
    assert set(noting_designers.SEEN) == {Toy24.designer_notes}
    with Store.open(tmp_path / "run", read_only=True) as store:
        assert read_facts(store).designer_notes == Toy24.designer_notes
        noting_designers.SEEN.clear()
        assert replay_run(store, Plugins(PLUGINS)).same
    assert set(noting_designers.SEEN) == {Toy24.designer_notes}


def test_a_bridge_may_say_nothing(tmp_path: Path) -> None:
    noting_designers.SEEN.clear()
    run("testing/counter", tmp_path / "run")
    assert set(noting_designers.SEEN) == {""}


def test_a_run_from_before_there_were_notes_has_none(tmp_path: Path) -> None:
    run("toy24", tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        world: Any = store.meta("world")
        del world["designer_notes"]
        store.set_meta("world", world)
        assert read_facts(store).designer_notes == ""


def test_designer_show_has_them_too() -> None:
    args = ["show", "1-2-3-4", "--rollouts", "1", "--plugin", "noting=noting_designers"]
    done = CliRunner().invoke(command, [*args, "--set", "designer=noting"], standalone_mode=False)
    assert done.stdout.rstrip("\n") == Toy24.designer_notes


def test_the_toys_notes_are_true() -> None:
    with Toy24() as bridge:
        bridge.reset(0, {"task": "3-3-8-8"})
        for words in noting_designers.REFUSED:
            before = bridge.observe()
            answer = bridge.step(words)
            assert not answer.ended
            assert answer.observation.text.endswith(before.text)
            assert answer.observation.text.count("\n\n") == 1
    assert "search" not in Toy24.designer_notes
