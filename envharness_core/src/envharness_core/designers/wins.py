"""What winning trajectories teach without a model: the shortest way, what it can do without, the history shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from envharness_core.data import Action
from envharness_core.events import Event
from envharness_core.jsondata import JsonObject, canonical
from envharness_core.tools import Tool
from envharness_core.trajectory import Trajectory


def histories(trajectories: Sequence[Trajectory]) -> tuple[str, ...]:
    """Return the keys of ``observation.data`` that hold a history: lists of text that only ever grow, and do."""
    grows: dict[str, bool] = {}
    for trajectory in trajectories:
        shown = [item["data"] for item in _observations(trajectory)]
        for earlier, later in pairwise(shown):
            for key, value in later.items():
                grows[key] = grows.get(key, True) and _extends(earlier.get(key), value)
    return tuple(sorted(key for key, kept in grows.items() if kept and _ever_longer(trajectories, key)))


def shortest_way(trajectories: Sequence[Trajectory], history: Sequence[str]) -> tuple[Action, ...]:
    """Return the fewest actions by which one of these won, without its detours; empty where there is none.

    A detour is what ends where it began, by all that the bridge showed but the history.
    """
    ways = [_without_detours(trajectory, history) for trajectory in trajectories if trajectory.events]
    return min((way for way in ways if way), key=len, default=())


def spare_tools(way: Sequence[Action], trajectories: Sequence[Trajectory]) -> tuple[str, ...]:
    """Return the tools that were used, but neither on the shortest way nor to end an episode."""
    used: set[str] = set()
    ending: set[str] = set()
    for trajectory in trajectories:
        for step in trajectory.steps:
            if step.action is not None:
                (ending if step.response.ended else used).add(step.action.name)
    return tuple(sorted(used - ending - {action.name for action in way}))


def choices(tools: Sequence[Tool]) -> tuple[tuple[str, str, Any], ...]:
    """Return every (tool, argument, value) that a schema enumerates: the ways of acting that can be told apart."""
    found = []
    for tool in tools:
        properties: Any = tool.schema.get("properties", {})
        found += [
            (tool.name, name, value)
            for name, schema in properties.items()
            for value in schema.get("enum", ())
        ]
    return tuple(found)


def avoidable(ways: Sequence[Sequence[Action]], choice: tuple[str, str, Any]) -> bool:
    """Say whether one of the winning ways does without a choice: the evidence that another solution exists."""
    return any(all(not _chosen(action, choice) for action in way) for way in ways)


def all_ways(trajectories: Sequence[Trajectory], history: Sequence[str]) -> list[tuple[Action, ...]]:
    """Return the winning ways of all trajectories, without their detours."""
    return [way for trajectory in trajectories if (way := _without_detours(trajectory, history))]


def _chosen(action: Action, choice: tuple[str, str, Any]) -> bool:
    tool, argument, value = choice
    return action.name == tool and action.kwargs.get(argument) == value


def _played(trajectory: Trajectory) -> list[Event]:
    """Return what reached the first leg's bridge with a response, from where the agent began: after any replay."""
    events = trajectory.events[0] if trajectory.events else ()
    replays = [place for place, event in enumerate(events) if event.kind == "notify"]
    told = [place for place, event in enumerate(events) if "response" in event.body]
    begun = max(place for place in told if place < replays[-1]) if replays else 0
    return [events[place] for place in told if place >= begun]


def _observations(trajectory: Trajectory) -> list[Any]:
    """Return what the first leg's bridge showed, from where the agent began."""
    bodies: list[Any] = [event.body for event in _played(trajectory)]
    return [body["response"]["observation"] for body in bodies]


def _without_detours(trajectory: Trajectory, history: Sequence[str]) -> tuple[Action, ...]:
    places = [_place(shown, history) for shown in _observations(trajectory)]
    actions = [event.action for event in _played(trajectory)[1:]]
    way: list[tuple[bytes, Action]] = []
    for number, (before, after, action) in enumerate(zip(places, places[1:], actions, strict=False), start=1):
        way.append((before, action))
        if number == len(actions):  # what won is no detour, whatever it shows
            break
        earlier = next((index for index, (place, _) in enumerate(way) if place == after), None)
        if earlier is not None:
            del way[earlier:]
    return tuple(action for _, action in way)


def _place(shown: JsonObject, history: Sequence[str]) -> bytes:
    """Return where one is, by all that is shown; where there is a history the text tells it too, and is left out."""
    data: Any = shown["data"]
    told = {key: value for key, value in data.items() if key not in history}
    return canonical(told if told and history else [told, shown["text"]])


def _extends(earlier: Any, later: Any) -> bool:
    return (
        isinstance(earlier, list)
        and isinstance(later, list)
        and later[: len(earlier)] == earlier
        and all(isinstance(entry, str) for entry in later)
    )


def _ever_longer(trajectories: Sequence[Trajectory], key: str) -> bool:
    return any(
        len(shown[-1]["data"].get(key, ())) > len(shown[0]["data"].get(key, ()))
        for trajectory in trajectories
        if (shown := _observations(trajectory))
    )
