"""Version 1 checkpoints, as the reference implementation writes them: read, never written.

``{"schema_version": 1, "env": {"type", "state": {"reset_seed", "reset_options"}}, "harnesses": [{"type", "state"}],
"metadata"}``, harnesses innermost first: a ``setup`` has ``actions``, ``rules`` (or a ``contract``) have
``rules_code``.
"""

from __future__ import annotations

from typing import cast

from envharness_core.errors import CheckpointError, unknown
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.spec import ComponentSpec

_KEYS = {
    "setup": ("core/setup", "actions", "actions"),
    "rules": ("core/rules", "rules_code", "source"),
    "contract": ("core/rules", "rules_code", "source"),
}
"""By harness: the layer, the key of the harness's state, and the one of the layer's config."""


def specs(checkpoint: JsonObject) -> tuple[ComponentSpec, tuple[ComponentSpec, ...]]:
    """Return the bridge and the layers, innermost first; code stays text.

    Raises:
        CheckpointError: it is damaged, or has a harness that is neither a setup nor rules.
    """
    env = _entry(checkpoint.get("env"), "env")
    harnesses = checkpoint.get("harnesses", [])
    if not isinstance(harnesses, list):
        raise CheckpointError("harnesses: expected a list")
    layers = [_layer(entry, f"harnesses[{index}]") for index, entry in enumerate(harnesses)]
    return ComponentSpec(cast("str", env["type"])), tuple(layers)


def start(checkpoint: JsonObject) -> tuple[int, JsonObject]:
    """Return seed and options of the reset with which the episode begins.

    Raises:
        CheckpointError: they aren't there, or name no task.
    """
    state = cast("JsonObject", _entry(checkpoint.get("env"), "env")["state"])
    seed = state.get("reset_seed")
    given = state.get("reset_options")
    if seed is None:
        seed = 0
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise CheckpointError(f"env.state.reset_seed: expected an integer of 0 or more, got {seed!r:.40}")
    if not isinstance(given, dict):
        raise CheckpointError("env.state.reset_options: expected an object")
    options = copy_object(given, "reset_options")
    task = options.pop("task", None) or _puzzle(options.pop("numbers", None))
    if not isinstance(task, str):
        raise CheckpointError("env.state.reset_options: it names no task; give options.task yourself")
    return seed, {**options, "task": task}


def _puzzle(numbers: Json) -> str | None:
    """Return the id of a Toy24 puzzle that is given by its numbers, which is how version 1 names it."""
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        return None
    return "-".join(str(number) for number in sorted(cast("list[int]", numbers)))


def _layer(entry: Json, where: str) -> ComponentSpec:
    harness = _entry(entry, where)
    kind = cast("str", harness["type"])
    if kind not in _KEYS:
        raise CheckpointError(f"{where}: {unknown('harness', kind, _KEYS)}")
    use, old, new = _KEYS[kind]
    state = cast("JsonObject", harness["state"])
    if old not in state:
        raise CheckpointError(f"{where}.state: expected {old}")
    return ComponentSpec(use, {new: state[old]})


def _entry(entry: Json, where: str) -> JsonObject:
    if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
        raise CheckpointError(f"{where}: expected an object with a type")
    if not isinstance(entry.get("state"), dict):
        raise CheckpointError(f"{where}.state: expected an object")
    return entry
