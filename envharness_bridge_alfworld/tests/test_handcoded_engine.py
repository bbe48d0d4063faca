"""The handcoded agent on ALFWorld's engine, generated games and such where the target was hidden."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.handcoded import Handcoded
from envharness_core.data import Action, Observation


@pytest.fixture(scope="module")
def world(cache_folder: str) -> Iterator[ALFWorld]:
    with ALFWorld(ALFWorldConfig(data="generated", generated=18, cache=cache_folder)) as opened:
        yield opened


def test_it_wins_on_the_real_engine(world: ALFWorld) -> None:
    for task in world.list_tasks("train", 6):
        response = world.reset(0, {"task": task.id})
        assert finished(world, response.instruction, response.observation), task.id


def test_it_finds_what_was_hidden_on_the_real_engine_and_the_walkthrough_does_not(world: ALFWorld) -> None:
    hidden = 0
    for task in world.list_tasks("train"):
        walkthrough = world.games.read(world.games.require(task.id)).walkthrough
        going, taking = walkthrough[:2]
        first = world.reset(0, {"task": task.id})
        target = taking.removeprefix("take ").partition(" from ")[0]
        hide = (
            going,
            taking,
            "go to drawer 1",
            "open drawer 1",
            f"move {target} to drawer 1",
            "close drawer 1",
        )
        told = [world.step(Action("do", {"command": command})) for command in hide]
        if "drawer" in first.instruction.partition("\n")[0] or not all(
            step.info["understood"] for step in told
        ):
            continue
        hidden += 1
        world.notify_replay_complete()
        assert finished(world, first.instruction, world.observe())
        world.reset(0, {"task": task.id})
        for command in (*hide, *walkthrough):
            assert not world.step(Action("do", {"command": command})).terminated
    assert hidden


def finished(world: ALFWorld, instruction: str, observation: Observation) -> bool:
    agent = Handcoded()
    agent.start(instruction, world.tools(), 0)
    for _ in range(50):
        (action,) = agent.act(observation).actions
        response = world.step(action)
        observation = response.observation
        if response.terminated:
            return True
    return False
