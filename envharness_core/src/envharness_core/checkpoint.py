"""Checkpoints: a stack as a JSON file, written atomically; loading one never runs code that it holds.

Files of version 1, which the reference implementation writes, are read as well. They say how an episode begins, not
where it is: ``load`` returns such a stack before its reset, and ``start_of`` says what to reset it with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from envharness_core import version_1
from envharness_core.converter import structure
from envharness_core.errors import CheckpointError, ConfigError, DataError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack
from envharness_core.whole_file import whole_file

SCHEMA_VERSION = 2


def save(stack: Stack, metadata: JsonObject | None = None) -> JsonObject:
    """Return a stack's checkpoint.

    The shape is ``{"schema_version": 2, "env": {"type", "config", "state"}, "layers": [{"type", "config", "state"}],
    "guard": {"phase"}, "metadata"}``, with types as ``plugin/component`` and a link's second leg nested in its state.

    Raises:
        CheckpointError: the bridge's states are valid at an episode's start only, and this isn't one.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        **stack.chain.save(),
        "guard": stack.save_state(),
        "metadata": copy_object(metadata or {}, "metadata"),
    }


def load(plugins: Plugins, checkpoint: JsonObject) -> Stack:
    """Build the stack that a checkpoint describes, in the state that it was saved in.

    Raises:
        CheckpointError: it is damaged, or from a newer version.
        ConfigError: it names a component that isn't installed.
    """
    if not isinstance(checkpoint, dict):
        raise CheckpointError(f"expected a JSON object, got {type(checkpoint).__name__}")
    version = checkpoint.get("schema_version")
    if version == 1 and version is not True:
        env, layers = version_1.specs(checkpoint)
        return build_stack(plugins, env, layers)
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        advice = "upgrade envharness-core" if newer else "it isn't a checkpoint that this version reads"
        raise CheckpointError(f"schema_version: expected {SCHEMA_VERSION}, got {version!r}; {advice}")
    return _loaded(plugins, checkpoint)


def start_of(checkpoint: JsonObject) -> tuple[int, JsonObject]:
    """Return seed and options of the reset with which a version 1 checkpoint's episode begins.

        >>> stack = load(plugins, old)
        >>> seed, options = start_of(old)
        >>> first = stack.reset(seed, options)

    Raises:
        CheckpointError: it is of another version, or doesn't say.
    """
    if checkpoint.get("schema_version") != 1:
        raise CheckpointError("start_of: only version 1 says how an episode begins; load the others")
    return version_1.start(checkpoint)


def _loaded(plugins: Plugins, checkpoint: JsonObject) -> Stack:
    entries = checkpoint.get("layers")
    if not isinstance(entries, list):
        raise CheckpointError("layers: expected a list")
    specs = [_spec(entry, f"layers[{index}]") for index, entry in enumerate(entries)]
    stack = build_stack(plugins, _spec(checkpoint.get("env"), "env"), specs)
    try:
        stack.chain.load(checkpoint)
        stack.load_state(cast("JsonObject", checkpoint.get("guard") or {}))
    except CheckpointError:
        stack.close()
        raise
    except Exception as error:
        stack.close()
        raise CheckpointError(f"the checkpoint is damaged: {type(error).__name__}: {error}") from error
    return stack


def write(path: Path | str, checkpoint: JsonObject) -> None:
    """Write a checkpoint to a file: the old file or the new one, never half of one.

    Raises:
        CheckpointError: nothing can be written there.
    """
    text = json.dumps(checkpoint, ensure_ascii=False, allow_nan=False)
    try:
        with whole_file(Path(path)) as file:
            file.write(text.encode())
    except (ConfigError, OSError) as error:
        raise CheckpointError(str(error)) from error


def read(path: Path | str) -> JsonObject:
    """Read a checkpoint from a file; runs nothing.

    Raises:
        CheckpointError: there is no such file, or it isn't a JSON object.
    """
    try:
        data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        return copy_object(data)
    except (OSError, ValueError, RecursionError, DataError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _spec(entry: Json, where: str) -> ComponentSpec:
    if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
        raise CheckpointError(f"{where}: expected an object with a type")
    config: Json = entry.get("config") or {}
    try:
        return structure({"use": entry["type"], **cast("JsonObject", config)}, ComponentSpec, where)
    except (ConfigError, TypeError) as error:
        raise CheckpointError(f"{where}: {error}") from error
