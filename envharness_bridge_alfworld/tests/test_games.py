"""Folders of games, their ids and filters, and what stands in for what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.games import Folder, Generated, find_games, trajectory_data
from envharness_bridge_alfworld.goals import TASK_TYPES
from envharness_core.errors import BridgeError, ConfigError
from envharness_core.jsondata import JsonObject

MUG = "pick_and_place_simple-Mug-None-Desk-308"
LAMP = "look_at_obj_in_light-Bowl-None-DeskLamp-308"


def put(folder: Path, split: str, name: str, trial: str = "trial_T1", **changes: Any) -> Path:
    """Write a game's file as a download has it."""
    place = folder / split / name / trial
    place.mkdir(parents=True)
    game = {
        "pddl_domain": "(define)",
        "grammar": '"rhs": "Your task is to: put a mug in desk."',
        "pddl_problem": "(define)",
        "solvable": True,
        "walkthrough": ["look"],
        **changes,
    }
    (place / "game.tw-pddl").write_text(json.dumps(game))
    return place


def ids(folder: Path, split: str, *types: str) -> list[str]:
    return [task.id for task in Folder(folder, types or TASK_TYPES).tasks(split)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    put(tmp_path, "train", MUG, "trial_T2")
    put(tmp_path, "train", MUG, "trial_T1")
    put(tmp_path, "train", LAMP)
    put(tmp_path, "valid_seen", MUG)
    put(tmp_path, "valid_unseen", LAMP)
    return tmp_path


def test_ids_are_split_name_and_trial_in_order(data: Path) -> None:
    assert ids(data, "train") == [f"train/{LAMP}/trial_T1", f"train/{MUG}/trial_T1", f"train/{MUG}/trial_T2"]
    assert ids(data, "valid_seen") == [f"valid_seen/{MUG}/trial_T1"]


def test_the_folder_above_will_do(data: Path) -> None:
    download = data.parent / "download"
    (download / "json_2.1.1").parent.mkdir()
    data.rename(download / "json_2.1.1")
    assert len(ids(download, "train")) == 3


def test_types_filter(data: Path) -> None:
    assert ids(data, "train", "look_at_obj_in_light") == [f"train/{LAMP}/trial_T1"]
    config = ALFWorldConfig(data=str(data), types=("look_at_obj_in_light",))
    with ALFWorld(config) as world:
        assert [task.id for task in world.list_tasks("train")] == [f"train/{LAMP}/trial_T1"]
        with pytest.raises(ConfigError, match="unknown task"):
            world.check_task(f"train/{MUG}/trial_T1")


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'pick_and_place_simple'"):
        ALFWorldConfig(types=("pick_and_place",))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("pick_and_place_with_movable_recep-Mug-Bowl-Desk-308", {}),
        ("pick_and_place_simple-AppleSliced-None-Desk-308", {}),
        ("pick_and_place_simple-Mug-None-Desk-309", {"solvable": False}),
        ("something_else-Mug-None-Desk-308", {}),
    ],
)
def test_what_upstream_leaves_out_is_left_out(data: Path, name: str, changes: dict[str, Any]) -> None:
    put(data, "valid_seen", name, **changes)
    assert ids(data, "valid_seen") == [f"valid_seen/{MUG}/trial_T1"]
    assert Folder(data).find(f"valid_seen/{name}/trial_T1") is None


def test_a_game_that_says_that_it_is_solvable_far_from_its_end_is_listed(tmp_path: Path) -> None:
    put(tmp_path, "train", MUG, walkthrough=["look around for a while"] * 4000)
    assert len(ids(tmp_path, "train")) == 1


def test_a_folder_without_its_game_is_left_out(data: Path) -> None:
    (data / "valid_seen" / MUG / "trial_T1" / "game.tw-pddl").unlink()
    (data / "valid_seen" / ".hidden").mkdir()
    assert ids(data, "valid_seen") == []


def test_the_type_of_a_game_in_another_folder_stands_in_its_trajectory(data: Path) -> None:
    place = put(data, "train", "mine")
    assert f"train/mine/{place.name}" not in ids(data, "train")
    (place / "traj_data.json").write_text(json.dumps({"task_type": "pick_and_place_simple"}))
    assert f"train/mine/{place.name}" in ids(data, "train")
    with ALFWorld(ALFWorldConfig(data=str(data))) as world:
        told = {task.id: task.metadata for task in world.list_tasks("train")}
    assert told[f"train/mine/{place.name}"] == {"type": "pick_and_place_simple", "scene": 0}


@pytest.mark.parametrize(
    ("name", "parameters", "scene"),
    [
        (MUG, {"object_target": "Mug", "parent_target": "Desk"}, 308),
        (LAMP, {"object_target": "Bowl", "toggle_target": "DeskLamp"}, 308),
        (
            "pick_two_obj_and_place-AppleSliced-Pan-DiningTable-4",
            {
                "object_target": "Apple",
                "object_sliced": True,
                "mrecep_target": "Pan",
                "parent_target": "DiningTable",
            },
            4,
        ),
    ],
)
def test_missing_trajectory_data_is_rebuilt_from_the_name(
    name: str, parameters: JsonObject, scene: int
) -> None:
    empty: JsonObject = {
        "object_sliced": False,
        "mrecep_target": "",
        "parent_target": "",
        "toggle_target": "",
    }
    assert trajectory_data(name) == {
        "task_type": name.partition("-")[0],
        "pddl_params": {**empty, **parameters},
        "scene": {"scene_num": scene},
    }


def test_rebuilt_trajectory_data_is_that_of_real_games(real_games: str) -> None:
    folder = Folder(Path(real_games))
    seen = 0
    for split in ("train", "valid_seen", "valid_unseen"):
        for task in folder.tasks(split):
            stored = json.loads((folder.path / task.id / "traj_data.json").read_text())
            rebuilt = trajectory_data(task.name, task.kind)
            assert {key: stored[key] for key in ("task_type", "pddl_params")} == {
                key: rebuilt[key] for key in ("task_type", "pddl_params")
            }
            seen += 1
    assert seen


def test_a_game_tells_its_sentence_and_its_walkthrough(data: Path) -> None:
    games = Folder(data)
    file = games.read(games.require(f"train/{MUG}/trial_T1"))
    assert (file.goal, file.walkthrough) == ("put a mug in desk.", ("look",))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"grammar": "", "pddl_domain": 1, "pddl_problem": ""}'])
def test_a_damaged_file_is_told(data: Path, text: str) -> None:
    games = Folder(data)
    task = games.require(f"train/{MUG}/trial_T1")
    (data / "train" / MUG / "trial_T1" / "game.tw-pddl").write_text(text)
    with pytest.raises(BridgeError, match=r"trial_T1: no game of ALFWorld's .*download it anew"):
        games.read(task)


def test_where_games_are_looked_for(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert isinstance(find_games(None, (), 6, 0), Generated)
    usual = tmp_path / "nobody" / ".cache" / "alfworld" / "json_2.1.1"
    put(usual, "train", MUG)
    found = find_games(None, (), 6, 0)
    assert isinstance(found, Folder)
    assert found.path == usual
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    found = find_games(None, (), 6, 0)
    assert isinstance(found, Folder)
    assert found.path == data
    assert isinstance(find_games("generated", (), 6, 0), Generated)


@pytest.mark.parametrize("named", ["data", "ALFWORLD_DATA"])
def test_a_folder_without_games_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "x"))
    with pytest.raises(ConfigError, match=rf"{named}: .*/x' holds no games: .*alfworld-download"):
        find_games(str(tmp_path / "x") if named == "data" else None, (), 6, 0)


def test_generated_games_are_as_many_as_were_asked_for_and_of_the_types() -> None:
    games = Generated(7, 3, ("pick_two_obj_and_place",))
    for split in ("train", "valid_seen", "valid_unseen"):
        tasks = [*games.tasks(split)]
        assert len(tasks) == 7
        assert {task.kind for task in tasks} == {"pick_two_obj_and_place"}
        for task in tasks:
            assert games.find(task.id) == task
    assert games.read(tasks[0]) == Generated(7, 3).read(tasks[0])
    assert Generated(7, 4).read(tasks[0]).key != games.read(tasks[0]).key


def test_generated_and_real_games_are_never_taken_for_each_other(data: Path) -> None:
    with (
        ALFWorld(ALFWorldConfig(data="generated")) as made,
        ALFWorld(ALFWorldConfig(data=str(data))) as real,
    ):
        assert made.capabilities.version != real.capabilities.version
        assert "json_2.1.1" in real.capabilities.version
