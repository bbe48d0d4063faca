"""Rules as source code in the sandbox, and a setup that hides what is wanted: who searches still wins."""

from __future__ import annotations

from typing import Any

import pytest

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_core import Action, rollout
from envharness_core.jsondata import Json, JsonObject

DEAF = """
import random

class _Rules(Rules):
    def modify_transition(self, action, response, env_state):
        if response.terminated or env_state.extras.get("deaf"):
            env_state.extras["deaf"] = False
            return response
        if random.random() < 0.3:
            env_state.extras["deaf"] = True
            return EnvResponse(
                observation=Observation(text="Nothing happens.", data=dict(response.observation.data)),
                reward=response.reward, terminated=False, truncated=response.truncated, info={**response.info})
        return response
"""
SHORT = """
class _Rules(Rules):
    def filter_observation(self, obs, env_state):
        return Observation(text=". ".join(obs.text.split(". ")[:2]), data=obs.data)
"""
STATE = """
class _Rules(Rules):
    def filter_action(self, action, env_state):
        if action.kwargs["command"].startswith("go to") and env_state.steps > 0 and not env_state.inventory:
            if action.kwargs["command"] not in env_state.admissible:
                return Blocked("Nothing happens.")
        return action
"""
RULES: tuple[JsonObject, ...] = tuple({"use": "rules", "source": source} for source in (DEAF, SHORT, STATE))


def hidden(config: ALFWorldConfig, kind: str) -> tuple[str, list[str]]:
    """Find a game whose target fits into a closed receptacle of another kind than the goal's; return how to hide it.

    The planner says where a target is, as often as there is another one that isn't hidden yet.
    """
    with ALFWorld(config) as world:
        for task in world.list_tasks("train"):
            if task.metadata["type"] == kind and (way := _hide(world, task.id)):
                return task.id, way
    pytest.fail("no generated game lends itself to this")


def _hide(world: ALFWorld, task: str) -> list[str]:
    world.reset(0, {"task": task})
    done: list[str] = []
    for _ in range(3):
        plan = [str(action.kwargs["command"]) for action in world.solution("planner") or ()]
        place = next((number for number, command in enumerate(plan) if command.startswith("take ")), None)
        if place is None:
            return []
        thing, _, where = plan[place].removeprefix("take ").partition(" from ")
        if done and done[-1].removeprefix("close ") == where:
            return done
        put = _put_away(world, plan[: place + 1], thing)
        if not put:
            return []
        done += put
    return []


def _put_away(world: ALFWorld, fetch: list[str], thing: str) -> list[str]:
    """Fetch a thing and shut it into the first receptacle that takes it and closes; return how, or nothing."""
    done = [*fetch]
    for command in fetch:
        if _do(world, command):
            return []
    for go in [command for command in _admissible(world) if command.startswith("go to ")]:
        place = go.removeprefix("go to ")
        _do(world, go)
        opened = f"open {place}"
        if opened not in _admissible(world):
            done.append(go)
            continue
        _do(world, opened)
        if f"move {thing} to {place}" in _admissible(world):
            last = [f"move {thing} to {place}", f"close {place}"]
            return [] if _do(world, last[0]) or _do(world, last[1]) else [*done, go, opened, *last]
        done += [go, opened]
    return []


def _do(world: ALFWorld, command: str) -> bool:
    return world.step(Action("do", {"command": command})).ended


def _admissible(world: ALFWorld) -> list[str]:
    listed = world.observe().data["admissible"]
    assert isinstance(listed, list)
    return [str(command) for command in listed]


def test_who_searches_still_wins_and_who_does_not_fails(cache_folder: str) -> None:
    options: dict[str, Json] = {"data": "generated", "cache": cache_folder}
    task, way = hidden(ALFWorldConfig(data="generated", cache=cache_folder), "pick_heat_then_place_in_recep")
    setup: Any = {
        "use": "setup",
        "actions": [{"name": "do", "kwargs": {"command": command}} for command in way],
    }
    bridge: Any = {"use": "alfworld", **options}
    with ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder)) as world:
        known = world.games.read(world.games.require(task)).walkthrough
    steps: list[Json] = [{"name": "do", "kwargs": {"command": command}} for command in known]
    by_heart: Any = {"use": "scripted", "actions": steps, "repeat": True}
    for layers in ([setup], [setup, *RULES]):
        searching = rollout(bridge, task, {"use": "alfworld/handcoded", "skill": 1.0}, layers=layers, count=3)
        planning = rollout(bridge, task, {"use": "expert", "way": "planner"}, layers=[setup], count=1)
        knowing = rollout(bridge, task, by_heart, layers=layers, count=1)
        assert [(played.episode.error, played.episode.success) for played in searching] == [("", True)] * 3
        assert [played.episode.success for played in planning] == [True]
        assert [(played.episode.error, played.episode.success) for played in knowing] == [("", False)]
    oracles: list[Any] = [by_heart, {"use": "expert"}, {"use": "expert", "again": True}]
    for oracle in oracles:
        assert rollout(bridge, task, oracle, count=1)[0].episode.success
    (missing,) = rollout(bridge, task, {"use": "expert"}, layers=[setup], count=1)
    assert "knows no solution" in missing.episode.error
    assert missing.episode.verdict is None


def test_rules_are_heard_and_the_verdict_is_the_engines(cache_folder: str) -> None:
    bridge: Any = {"use": "alfworld", "data": "generated", "cache": cache_folder}
    with ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder)) as world:
        task = world.list_tasks("train", 1)[0].id
    played = rollout(bridge, task, {"use": "alfworld/handcoded", "skill": 1.0}, layers=RULES, count=8)
    texts = [step.response.observation.text for one in played for step in one.trajectory.steps]
    assert any(text == "Nothing happens." for text in texts)
    assert not any(
        "Admissible" in text and ". " in text.split("Admissible")[0].rstrip() for text in texts if 0
    )
    assert all(one.episode.success for one in played)
