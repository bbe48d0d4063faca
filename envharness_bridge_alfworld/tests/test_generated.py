"""Generated games: well formed whatever the index and seed, and won on stock ALFWorld by their walkthroughs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envharness_bridge_alfworld.games import wheel_texts
from envharness_bridge_alfworld.generated import GeneratedGame, game_json, make_game
from envharness_bridge_alfworld.goals import TASK_TYPES, parse_goal
from envharness_bridge_alfworld.household import shown_names
from envharness_core.jsondata import copy_json

SPLITS = ("train", "valid_seen", "valid_unseen")
IDLE = ("look", "inventory", "help")

splits = st.sampled_from(SPLITS)
indexes = st.integers(0, 9999)
seeds = st.integers(-5, 2**40)


def objects(problem: str) -> dict[str, str]:
    """Return the declared names and the type of each, checking that none is declared twice."""
    declared = re.findall(r"^ +(\S+) - (\S+)$", problem, re.MULTILINE)
    assert len(dict(declared)) == len(declared)
    return dict(declared)


def facts(problem: str) -> dict[str, list[list[str]]]:
    """Return the arguments of the initial facts, by predicate."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for line in problem.partition("(:init")[2].partition("(:goal")[0].splitlines():
        name, *arguments = line.strip(" ()").split() or [""]
        found[name].append(arguments)
    return found


def parts(game: GeneratedGame) -> tuple[str, str, str, str]:
    kind, target, none, place, scene = game.name.split("-")
    assert none == "None"
    return kind, target, place, scene


@given(splits, indexes, seeds)
def test_any_game_is_well_formed(split: str, index: int, seed: int) -> None:
    game = make_game(split, index, seed)
    depth = 0
    for letter in game.problem:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    declared, known = objects(game.problem), facts(game.problem)
    assert 6 <= list(declared.values()).count("receptacle") <= 14
    assert 8 <= list(declared.values()).count("object") <= 20
    assert {"SinkBasinType", "MicrowaveType", "FridgeType", "KnifeType", "ButterKnifeType"} <= set(declared)
    for name, rows in known.items():
        if name and name != "=":
            assert all(argument in declared for row in rows for argument in row), name
    assert len(
        shown_names(name for name, kind in declared.items() if kind in ("receptacle", "object"))
    ) == sum(kind in ("receptacle", "object") for kind in declared.values())


@given(splits, indexes, seeds)
def test_everything_lies_where_it_fits_and_the_target_not_where_it_is_wanted(
    split: str, index: int, seed: int
) -> None:
    game = make_game(split, index, seed)
    kind, target, place, _ = parts(game)
    known = facts(game.problem)
    types = dict(known["objectType"]) | dict(known["receptacleType"])
    lies = dict(known["inReceptacle"])
    assert len(lies) == len(known["inReceptacle"]) == len(known["objectType"])
    fits = {tuple(row) for row in known["canContain"]}
    pickupable = {row[0] for row in known["pickupable"]}
    targets = [thing for thing in lies if types[thing] == f"{target}Type"]
    for thing, receptacle in lies.items():
        assert (thing in pickupable) == (types[thing] != "DeskLampType")
        assert thing not in pickupable or (types[receptacle], types[thing]) in fits
    assert len(targets) >= (2 if kind == "pick_two_obj_and_place" else 1)
    assert all(types[lies[thing]] != f"{place}Type" for thing in targets)
    if kind != "look_at_obj_in_light":
        assert (f"{place}Type", f"{target}Type") in fits


@given(splits, indexes, seeds)
def test_a_game_is_what_its_name_says(split: str, index: int, seed: int) -> None:
    game = make_game(split, index, seed)
    kind, target, place, scene = parts(game)
    assert kind == game.kind == TASK_TYPES[index % 6]
    goal = parse_goal(game.sentence)
    assert goal is not None
    assert (goal.kind, goal.object, goal.place) == (kind, target.lower(), place.lower())
    assert int(scene) > 900
    assert game.trial == f"generated_{index:04d}"
    assert game.walkthrough[0].startswith("go to ")
    assert game.sentence.rstrip(".") == game.sentence
    assert make_game(split, index, seed) == game


def test_scenes_and_seeds() -> None:
    made = {split: [make_game(split, index, 0) for index in range(200)] for split in SPLITS}
    scenes = {split: {parts(game)[3] for game in games} for split, games in made.items()}
    assert scenes["train"] == scenes["valid_seen"]
    assert not scenes["train"] & scenes["valid_unseen"]
    assert made["train"] != made["valid_seen"]
    assert made["train"] != [make_game("train", index, 1) for index in range(200)]
    assert len({(game.name, game.walkthrough) for game in made["train"]}) > 180
    furniture = defaultdict(set)
    for game in made["train"] + made["valid_seen"]:
        furniture[parts(game)[3]].add(tuple(map(tuple, facts(game.problem)["receptacleType"])))
    assert all(len(layouts) == 1 for layouts in furniture.values())
    hidden = sum(game.walkthrough[1].startswith("open") for game in made["train"])
    assert 90 < hidden < 150


def test_names_are_handed_out_from_the_largest_down() -> None:
    ids = ["Mug_bar_2", "Mug_bar_10", "Mug_bar_1", "Sink_bar_1_bar_SinkBasin", "DeskLamp_bar_1"]
    assert shown_names(ids) == {
        "Mug_bar_1": "mug 3",
        "Mug_bar_10": "mug 2",
        "Mug_bar_2": "mug 1",
        "Sink_bar_1_bar_SinkBasin": "sinkbasin 1",
        "DeskLamp_bar_1": "desklamp 1",
    }


def test_a_games_file() -> None:
    game = make_game("train", 0, 0)
    data = game_json(game, "(define (domain alfred))", 'say "Your task is to: UNKNOWN GOAL."')
    assert copy_json(data) == data
    assert data == {
        "pddl_domain": "(define (domain alfred))",
        "grammar": f'say "Your task is to: {game.sentence}."',
        "pddl_problem": game.problem,
        "solvable": True,
        "walkthrough": list(game.walkthrough),
    }


_PRINTS = (
    "import sys; from envharness_bridge_alfworld.generated import make_game; "
    "print([make_game(split, index, 7) for split in ('train', 'valid_unseen') for index in range(12)]); "
    "sys.exit(any(name.split('.')[0] in ('alfworld', 'textworld') for name in sys.modules))"
)


def test_games_are_the_same_in_every_process_and_need_nothing_of_upstreams() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", _PRINTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1] != b""


def test_stock_alfworld_is_won_by_the_walkthrough_and_not_before(stock: Any, tmp_path: Path) -> None:
    games = [make_game(split, index, 5) for split in ("train", "valid_unseen") for index in range(6)]
    assert {game.kind for game in games} == set(TASK_TYPES)
    jobs = []
    for number, game in enumerate(games):
        path = tmp_path / f"{number}.tw-pddl"
        path.write_text(json.dumps(game_json(game, *wheel_texts())))
        jobs.append({"game": str(path), "commands": [*IDLE, *game.walkthrough]})
    for game, tape in zip(games, stock(jobs), strict=True):
        assert f"Your task is to: {game.sentence}." in tape[0][1]
        assert [won for _, _, _, won in tape] == [False] * (len(IDLE) + len(game.walkthrough)) + [True]
        assert all(command in tape[place][2] for place, (command, *_) in enumerate(tape[1:]))
