"""What the bridge shows, counts, saves and grades."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_core import Action, Observation, StepResponse, stack
from envharness_core.errors import BridgeError, CheckpointError, ConfigError

_PLACES = 3


@pytest.fixture
def world(cache_folder: str) -> Iterator[ALFWorld]:
    with ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder)) as made:
        yield made


def do(world: ALFWorld, command: str) -> StepResponse:
    return world.step(Action("do", {"command": command}))


def start(world: ALFWorld, number: int = 0) -> str:
    task = world.list_tasks("train")[number].id
    world.reset(0, {"task": task})
    return task


def walkthrough(world: ALFWorld) -> list[str]:
    actions = world.solution("walkthrough")
    assert actions is not None
    return [str(action.kwargs["command"]) for action in actions]


def admissible(shown: Observation) -> list[str]:
    listed = shown.data["admissible"]
    assert isinstance(listed, list)
    return [str(command) for command in listed]


def test_the_walkthrough_wins_and_nothing_less(world: ALFWorld) -> None:
    start(world)
    *before, last = walkthrough(world)
    for command in before:
        response = do(world, command)
        assert not response.ended
        assert response.reward == 0
    assert not world.evaluate().success
    response = do(world, last)
    assert (response.terminated, response.truncated, response.reward) == (True, False, 1.0)
    verdict = world.evaluate()
    assert (verdict.success, verdict.score) == (True, 1.0)
    assert verdict.metrics == {"commands": len(before) + 1, "type": "pick_and_place_simple"}


@pytest.mark.parametrize("command", ["dance", "Look", "", "go to nowhere 9", "x" * 100_000, "héllo\n\0 💡"])
def test_what_the_game_does_not_take_changes_nothing(world: ALFWorld, command: str) -> None:
    start(world)
    before = admissible(world.observe())
    response = do(world, command)
    assert response.observation.text.startswith("Nothing happens.\n\nAdmissible commands: ")
    assert response.info == {"understood": False}
    assert admissible(response.observation) == before
    state = world.get_env_state()
    assert (state["understood"], state["command"], state["steps"]) == (False, command, 1)


def test_the_state_is_what_its_schema_says(world: ALFWorld) -> None:
    fields = [line.partition(":")[0] for line in world.env_state_schema.splitlines()]
    first = world.reset(0, {"task": start(world)})
    state = world.get_env_state()
    assert [*state] == fields
    assert (state["command"], state["steps"], state["understood"]) == (None, 0, True)
    assert f"Your task is to: {state['goal']}" in first.instruction
    assert f"Your task is to: {state['goal']}" in first.observation.text
    for number, command in enumerate(walkthrough(world), start=1):
        do(world, command)
        state = world.get_env_state()
        assert [*state] == fields
        assert (state["command"], state["steps"], state["understood"]) == (command, number, True)
        assert state["won"] is state["done"] is world.evaluate().success


def test_what_the_agent_holds_is_in_the_inventory(world: ALFWorld) -> None:
    start(world)
    for command in walkthrough(world):
        do(world, command)
        if command.startswith("take "):
            assert world.get_env_state()["inventory"] == [
                command.removeprefix("take ").partition(" from ")[0]
            ]
            assert do(world, "inventory").observation.text.startswith("You are carrying: a ")


def test_nothing_hidden_is_shown(world: ALFWorld) -> None:
    task = start(world, 3)
    secret = [*world.games.read(world.games.require(task)).walkthrough]
    seen: list[Any] = [
        world.reset(0, {"task": task}).info,
        dict(world.get_env_state()),
        world.evaluate().metrics,
    ]
    seen += [world.observe().data, do(world, "look").info]
    text = json.dumps(seen)
    for word in ("walkthrough", "expert", "_bar_", "generated_", ".tw-pddl", "facts", "plan"):
        assert word not in text
    # what can be taken from a place shows once the agent is there, and open
    assert not any(
        command in text for command in secret if command.startswith(("take", "heat", "cool", "clean"))
    )


def test_limits_truncate(cache_folder: str) -> None:
    config = ALFWorldConfig(data="generated", cache=cache_folder, max_steps=_PLACES)
    with ALFWorld(config) as world:
        start(world)
        assert [do(world, "look").truncated for _ in range(_PLACES)] == [False, False, True]
        assert world.get_env_state()["done"]


def test_repetitions_without_a_change_truncate(cache_folder: str) -> None:
    config = ALFWorldConfig(data="generated", cache=cache_folder, max_repeats=3)
    with ALFWorld(config) as world:
        start(world)
        assert [do(world, "dance").truncated for _ in range(4)] == [False, False, False, True]
        start(world)
        for _ in range(10):  # different things that don't work are no repetition
            assert not do(world, "dance").truncated
            assert not do(world, "sing").truncated


@pytest.mark.parametrize("limits", [{"max_steps": 2}, {"max_repeats": 2}])
def test_a_replay_is_not_counted_and_gives_limits_back(cache_folder: str, limits: dict[str, Any]) -> None:
    bridge: Any = {"use": "alfworld", "data": "generated", "cache": cache_folder, **limits}
    look: Any = {"use": "setup", "actions": [{"name": "do", "kwargs": {"command": "look"}}] * 5}
    with ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder)) as world:
        task = world.list_tasks("train", 1)[0].id
    with stack(bridge, [look, look]) as env:
        env.reset(0, {"task": task})
        told = [env.step(Action("do", {"command": "look"})).truncated for _ in range(2)]
    assert told == [False, True]


def test_a_setup_leaves_the_room_in_the_instruction(cache_folder: str) -> None:
    bridge: Any = {"use": "alfworld", "data": "generated", "cache": cache_folder}
    fly: Any = {"use": "setup", "actions": [{"name": "do", "kwargs": {"command": "fly"}}]}
    with ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder)) as world:
        task = world.list_tasks("train", 1)[0].id
    with stack(bridge, [fly]) as env:
        first = env.reset(0, {"task": task})
    assert first.observation.text.startswith("Nothing happens.")
    assert "Looking quickly around you, you see" in first.instruction


def test_an_engine_that_failed_leaves_nothing_to_grade(world: ALFWorld) -> None:
    task = start(world)
    assert world.engine is not None
    os.kill(world.engine.pid, signal.SIGKILL)
    with pytest.raises(BridgeError, match="ALFWorld's engine failed"):
        do(world, "look")
    with pytest.raises(BridgeError, match="nothing to grade"):
        world.evaluate()
    world.reset(0, {"task": task})
    assert not world.evaluate().success


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_state_is_restored_from_anywhere(world: ALFWorld, cache_folder: str, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, 5), label="task")
    start(world, number)
    observation, replay = world.observe(), data.draw(st.integers(0, 12), label="replay")
    for step in range(data.draw(st.integers(0, 12), label="steps")):
        if step == replay:
            world.notify_replay_complete()
        response = do(world, data.draw(st.sampled_from([*admissible(observation), "dance"]), label="command"))
        observation = response.observation
        if response.ended:
            break
    saved = json.loads(json.dumps(world.save_state()))
    with ALFWorld(world.config) as other:
        other.load_state(saved)
        assert other.observe() == world.observe()
        assert other.get_env_state() == world.get_env_state()
        assert other.evaluate() == world.evaluate()
        assert other.save_state() == world.save_state()


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({}, "task: expected a string"),
        ({"task": "train/x/y", "commands": "look", "replayed": 0}, "commands: expected a list"),
        ({"task": "train/x/y", "commands": [1], "replayed": 0}, "commands: expected strings"),
        ({"task": "train/x/y", "commands": ["look"], "replayed": 2}, "replayed: expected a count"),
        ({"task": "train/x/y", "commands": ["look"], "replayed": True}, "replayed: expected a count"),
        ({"task": "train/x/y", "commands": [], "replayed": 0}, "no task 'train/x/y' here"),
    ],
)
def test_a_foreign_state_is_refused(world: ALFWorld, state: dict[str, Any], told: str) -> None:
    with pytest.raises(CheckpointError, match=told):
        world.load_state(state)


def test_solutions(world: ALFWorld) -> None:
    for number in range(6):
        start(world, number)
        planned = world.solution("planner")
        assert planned
        first = walkthrough(world)
        do(world, first[0])
        assert walkthrough(world) == first[1:]
        do(world, "look")
        assert world.solution("walkthrough") is None  # something else was done
        rest = world.solution("planner")
        assert rest is not None
        assert not world.evaluate().success
        for action in rest:
            response = world.step(action)
        assert response.terminated


def test_an_engine_that_was_given_back_is_missed(world: ALFWorld) -> None:
    task = start(world)
    world.rest()
    world.evaluate()
    with pytest.raises(BridgeError, match="reset first"):
        do(world, "look")
    world.reset(0, {"task": task})
    do(world, "look")


@pytest.mark.parametrize(
    "task",
    ["train/nothing/here", "", "no split/a/b", "train/../../etc", "../a/b", "train/x/generated_0000", "TASK"],
)
def test_an_unknown_task_is_refused(world: ALFWorld, task: str) -> None:
    with pytest.raises(ConfigError, match="unknown task"):
        world.reset(0, {"task": task})
