"""What the full stack shows is what stock ALFWorld shows, to the character, on both engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.games import SPLITS
from envharness_bridge_alfworld.goals import TASK_TYPES
from envharness_core import Action, ComponentSpec, Plugins, Stack
from envharness_core.stacks import build_stack

Tape = list[list[Any]]
Stock = Callable[[list[dict[str, Any]]], list[Tape]]

PASSING_RULES = """
class _Rules(Rules):
    def filter_action(self, action, env_state):
        return action

    def modify_transition(self, action, response, env_state):
        return response

    def filter_observation(self, obs, env_state):
        return obs
"""
PASSING = (
    ComponentSpec("testing/pass_through"),
    ComponentSpec("rules", {"source": PASSING_RULES}),
    ComponentSpec("testing/pass_through"),
)
WALK = 30


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins({"testing": "envharness_core.testing.plugin"})


def bridge(engine: str, data: str, cache: str) -> ComponentSpec:
    return ComponentSpec(
        "alfworld", {"engine": engine, "data": data, "cache": cache, "style": "raw", "generated": 6}
    )


def every_type(data: str) -> list[str]:
    """One generated task of each type, and two in scenes that the others don't have."""
    with ALFWorld(ALFWorldConfig(data=data, generated=6)) as world:
        return [
            task.id
            for split, count in (("train", 6), ("valid_unseen", 2))
            for task in world.list_tasks(split, count)
        ]


def all_of(data: str) -> list[str]:
    with ALFWorld(ALFWorldConfig(data=data)) as world:
        return [task.id for split in SPLITS for task in world.list_tasks(split)]


def replayed(stack: Stack, task: str, tape: Tape) -> None:
    """Do a transcript's commands in a stack, and compare what each shows."""
    first = stack.reset(0, {"task": task})
    shown = [None, first.observation.text, first.observation.data["admissible"], stack.evaluate().success]
    assert shown == tape[0]
    for command, text, admissible, won in tape[1:]:
        response = stack.step(Action("do", {"command": command}))
        assert response.observation.text == text
        assert response.observation.data["admissible"] == admissible
        assert (response.terminated, stack.evaluate().success) == (won, won)


def jobs_of(data: str, folder: Path, tasks: list[str]) -> list[dict[str, Any]]:
    """Write down the games, and say how each is won and walked at random."""
    jobs: list[dict[str, Any]] = []
    with ALFWorld(ALFWorldConfig(data=data, generated=6)) as world:
        for number, task in enumerate(tasks):
            file = world.games.read(world.games.require(task))
            path = folder / str(number) / "game.tw-pddl"
            path.parent.mkdir()
            path.write_bytes(file.text)
            jobs.append({"game": str(path), "commands": file.walkthrough})
            jobs.append({"game": str(path), "walk": WALK, "seed": number})
    return jobs


@pytest.fixture(scope="module")
def generated_tapes(stock: Stock, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Tape]]:
    """What stock ALFWorld shows on generated games."""
    return taped("generated", every_type("generated"), stock, tmp_path_factory.mktemp("generated"))


@pytest.fixture(scope="module")
def real_tapes(
    stock: Stock, real_games: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Tape]]:
    """What stock ALFWorld shows on its own games."""
    return taped(real_games, all_of(real_games), stock, tmp_path_factory.mktemp("real"))


def taped(data: str, tasks: list[str], stock: Stock, folder: Path) -> dict[str, list[Tape]]:
    tapes = stock(jobs_of(data, folder, tasks))
    return {task: [won, walked] for task, won, walked in zip(tasks, tapes[::2], tapes[1::2], strict=True)}


def compare(plugins: Plugins, data: str, tapes: dict[str, list[Tape]], engine: str, cache: str) -> None:
    with build_stack(plugins, bridge(engine, data, cache), PASSING) as stack:
        for task, (won, walked) in tapes.items():
            assert won[-1][3], f"{task}: stock ALFWorld doesn't win by the walkthrough"
            assert not won[-2][3]
            replayed(stack, task, won)
            replayed(stack, task, walked)


@pytest.mark.parametrize("engine", ["fast", "stock"])
def test_generated_games(
    plugins: Plugins, generated_tapes: dict[str, list[Tape]], cache_folder: str, engine: str
) -> None:
    assert {task.split("/")[1].split("-")[0] for task in generated_tapes} == {*TASK_TYPES}
    compare(plugins, "generated", generated_tapes, engine, cache_folder)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fast", "stock"])
def test_real_games(
    plugins: Plugins, real_games: str, real_tapes: dict[str, list[Tape]], cache_folder: str, engine: str
) -> None:
    assert real_tapes
    compare(plugins, real_games, real_tapes, engine, cache_folder)


def test_a_listed_observation_is_the_raw_one_and_the_commands(cache_folder: str) -> None:
    raw, listed = (
        ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder, style=style))
        for style in ("raw", "listed")
    )
    task = raw.list_tasks("train", 1)[0].id
    with raw, listed:
        bare, told = (world.reset(0, {"task": task}) for world in (raw, listed))
        commands = bare.observation.data["admissible"]
        assert isinstance(commands, list)
        assert told.observation.text == (
            f"{bare.observation.text.rstrip()}\n\nAdmissible commands: {', '.join(map(str, commands))}"
        )
        assert told.observation.data == bare.observation.data
        assert json.dumps(told.info) == "{}"
