"""Facts: what a run writes down before its first episode, so that it can be read without benchmark or policy."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, cast

from attrs import frozen

from envharness_core.campaigns.world import World
from envharness_core.config import RunConfig
from envharness_core.converter import structure, unstructure
from envharness_core.data import TaskSummary
from envharness_core.designer import Offer
from envharness_core.errors import CheckpointError
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import LAYER
from envharness_core.plugins import Plugins
from envharness_core.store import Store
from envharness_core.tools import Tool


@frozen
class Facts:
    """What a designer was told of the world.

    Args:
        upstream: the benchmark and its version.
        seed_in_task: whether the seed is part of the task.
        tasks: the run's tasks, in its order.
        tools, env_state_schema, designer_notes, resumable: the bridge's.
        layers: every layer that was installed.
        parts: the tasks of each run that this one was merged from, which were designed without knowing of each
            other; one part where it wasn't.
    """

    upstream: str
    seed_in_task: bool
    tasks: tuple[TaskSummary, ...]
    tools: tuple[Tool, ...]
    env_state_schema: str
    designer_notes: str
    resumable: bool
    layers: tuple[Offer, ...]
    parts: tuple[tuple[str, ...], ...]


def first_facts(config: RunConfig, plugins: Plugins, world: World) -> JsonObject:
    """Return what a new run's store begins with: its config, versions and world."""
    return {
        "config": config.as_json(),
        "identity": config.identity(),
        # where each installed plugin comes from: a designer may propose any of their layers
        "versions": {"envharness-core": version("envharness-core"), **plugins.origins()},
        "seconds": 0.0,
        "world": _world(plugins, world),
    }


def offers(plugins: Plugins) -> tuple[Offer, ...]:
    """Return every installed layer, as a designer is shown it."""
    return tuple(Offer(found.full_name, found.summary, found.schema()) for found in plugins.components(LAYER))


def read_facts(store: Store) -> Facts:
    """Read what a run wrote down of its world.

    Raises:
        CheckpointError: it was made by a version that wrote nothing down.
    """
    stored: Any = store.meta("world")
    if stored is None:
        raise CheckpointError(
            f"{store.folder}: its version of envharness-core wrote down too little for this"
        )
    tasks = structure(stored["tasks"], tuple[TaskSummary, ...], "world.tasks")
    parts = stored.get("parts") or [[task.id for task in tasks]]
    return Facts(
        upstream=stored["upstream"],
        seed_in_task=stored["seed_in_task"],
        tasks=tasks,
        tools=tuple(Tool.described(**tool) for tool in stored["tools"]),
        env_state_schema=stored["env_state_schema"],
        designer_notes=stored.get("designer_notes", ""),
        resumable=stored.get("resumable", False),
        layers=structure(stored["layers"], tuple[Offer, ...], "world.layers"),
        parts=tuple(tuple(part) for part in parts),
    )


def _world(plugins: Plugins, world: World) -> JsonObject:
    tools = [
        {"name": tool.name, "description": tool.description, "schema": tool.schema}
        for tool in world.bridge.tools()
    ]
    return cast(
        "JsonObject",
        {
            "upstream": world.upstream,
            "seed_in_task": world.capabilities.seed_in_task,
            "tasks": [unstructure(task) for task in world.tasks],
            "tools": tools,
            "env_state_schema": world.bridge.env_state_schema,
            "designer_notes": world.bridge.designer_notes,
            "resumable": world.capabilities.resumable,
            "layers": [unstructure(offer) for offer in offers(plugins)],
        },
    )
