"""Two hundred episodes in one run: memory and descriptors stay as they are, and no process is left."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.engines import Engines, megabytes
from envharness_core import Action, Plugins
from envharness_core.stacks import wrap

EPISODES, WARM = 200, 60


def descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def walk(world: ALFWorld, task: str, chance: random.Random) -> None:
    with wrap(Plugins(), ALFWorld(world.config, world.engines), []) as stack:
        observation = stack.reset(0, {"task": task}).observation
        for _ in range(15):
            listed = observation.data["admissible"]
            assert isinstance(listed, list)
            response = stack.step(Action("do", {"command": chance.choice(listed)}))
            if response.ended:
                return
            observation = response.observation


@pytest.mark.slow
def test_memory_and_descriptors_are_flat_and_no_process_is_left(cache_folder: str) -> None:
    engines, chance = Engines(), random.Random(1)
    world = ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder, generated=12), engines)
    tasks = [task.id for task in world.list_tasks("train")]
    world.reset(0, {"task": tasks[0]})
    assert world.engine is not None
    pid = world.engine.pid
    world.rest()
    taken: list[tuple[float, float, int, int]] = []
    for number in range(EPISODES):
        walk(world, tasks[number % len(tasks)], chance)
        if number in (WARM, EPISODES - 1):
            own = os.getpid()
            taken.append((megabytes(pid), megabytes(own), descriptors(pid), descriptors(own)))
    (engine, runner, *held), (engine_later, runner_later, *held_later) = taken
    assert held_later == held
    assert engine_later < engine + 4  # MB; a leak of the library's copy alone would be 34 an episode
    assert runner_later < runner + 4
    engines.close()
    assert not Path(f"/proc/{pid}").exists()
