"""What the doctor finds of packages, games, engines and the folder of compiled games."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.doctor import examine
from envharness_core import Finding
from envharness_core.cli.main import cli


def found(config: ALFWorldConfig) -> dict[str, Finding]:
    return {finding.part: finding for finding in examine(config)}


def folder_of(tmp_path: Path, walkthrough: list[str] | None = None) -> Path:
    """Write one generated game down as a download has it, without its traj_data.json."""
    with ALFWorld(ALFWorldConfig(data="generated", generated=1)) as world:
        (task,) = world.games.tasks("train")
        game = json.loads(world.games.read(task).text)
    if walkthrough is not None:
        game["walkthrough"] = walkthrough
    place = tmp_path / "games" / task.id
    place.mkdir(parents=True)
    (place / "game.tw-pddl").write_text(json.dumps(game))
    return tmp_path / "games"


def test_generated_games_hold_and_say_how_to_get_the_others(tmp_path: Path) -> None:
    told = found(ALFWorldConfig(data="generated", cache=str(tmp_path)))
    assert all(finding.holds for finding in told.values())
    assert "generated ones: train 60" in told["games"].detail
    assert "alfworld-download" in told["games"].detail
    assert "by its walkthrough" in told["engine"].detail
    assert str(tmp_path) in told["compiled games"].detail


@pytest.mark.parametrize("engine", ["fast", "stock"])
def test_a_folder_of_games_is_counted_and_tried(tmp_path: Path, engine: Any) -> None:
    told = found(ALFWorldConfig(data=str(folder_of(tmp_path)), cache="off", engine=engine))
    assert [*told] == ["packages", "games", "engine"]
    assert all(finding.holds for finding in told.values())
    assert "train 1, valid_seen 0, valid_unseen 0; 1 without traj_data.json" in told["games"].detail
    assert told["engine"].detail.startswith(f"{engine}: won train/")


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = found(ALFWorldConfig(data=str(tmp_path / "nowhere"), cache=str(tmp_path / "file" / "x")))
    assert {part: finding.holds for part, finding in told.items()} == {
        "packages": True,
        "games": False,
        "engine": True,
        "compiled games": False,
    }
    assert "alfworld-download" in told["games"].detail
    (tmp_path / "empty" / "train").mkdir(parents=True)
    assert not found(ALFWorldConfig(data=str(tmp_path / "empty"), cache="off"))["games"].holds


def test_a_game_that_its_walkthrough_does_not_win_is_told(tmp_path: Path) -> None:
    told = found(ALFWorldConfig(data=str(folder_of(tmp_path, ["look"])), cache="off"))
    assert not told["engine"].holds
    assert "the stored walkthrough doesn't win train/" in told["engine"].detail


def test_torn_games_are_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    torn = folder / "train" / "pick_and_place_simple-Mug-None-Desk-308" / "trial_T1" / "game.tw-pddl"
    torn.parent.mkdir(parents=True)
    for text in ("", "[" * 200_000 + '"solvable": true', "{}"):
        torn.write_text(text)
        told = found(ALFWorldConfig(data=str(folder), cache="off"))["games"]
        assert not told.holds
        assert (
            "1 that can't be read, such as train/pick_and_place_simple-Mug-None-Desk-308/trial_T1"
            in told.detail
        )


def test_a_link_to_nowhere_among_compiled_games_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.game").symlink_to(tmp_path / "nowhere")
    assert found(ALFWorldConfig(data="generated", generated=1, cache=str(tmp_path)))["compiled games"].holds


def test_nothing_is_made_where_the_variable_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path)
    for value in ("", str(tmp_path / "made")):
        monkeypatch.setenv("ALFWORLD_DATA", value)
        told = found(ALFWorldConfig(data=str(folder), cache="off"))
        assert all(finding.holds for finding in told.values())
    assert not (tmp_path / "made").exists()


def test_the_command(tmp_path: Path) -> None:
    asked = ["doctor", f'{{use = "alfworld", data = "generated", cache = "{tmp_path}"}}', "--json"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["holds"] is True
    missing = CliRunner().invoke(cli, ["doctor", '{use = "alfworld", data = "/nowhere", cache = "off"}'])
    assert missing.exit_code == 1
    assert "MISSING games: data: '/nowhere' holds no games" in missing.output
