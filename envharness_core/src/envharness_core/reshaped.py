"""Reshaped benchmarks: the accepted stacks of a run as one file, whose tasks anybody with the plugins can play."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import Factory, field, frozen, validators

from envharness_core.converter import structure, unstructure
from envharness_core.errors import CheckpointError, ConfigError, nearest, unknown
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import BRIDGE, LAYER
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec, StackSpec, layers_digest
from envharness_core.whole_file import whole_file

RESHAPED_VERSION = 1
SUFFIX = ".json"


@frozen
class ReshapedTask:
    """A task of the benchmark under the layers that were accepted for it.

    Args:
        id: the reshaped task's own name: the benchmark's, ``@``, and eight characters of the layers' content hash.
        task: the benchmark's task.
        layers: the stack, innermost first; none where the task was in order as it is.
        metrics: rollouts by stream as ``{"successes", "graded"}``, those that selected apart from the report's.
    """

    id: str
    task: str
    layers: tuple[ComponentSpec, ...] = ()
    metrics: JsonObject = Factory(dict)


@frozen
class Reshaped:
    """A reshaped benchmark.

    Args:
        bridge: the benchmark's bridge.
        upstream: the benchmark and its version, as ``name version``.
        tasks: at least one.
        schema_version: of this format.
        versions: the plugins that were installed when the stacks were designed, with their versions.
        modules: plugins that weren't installed but named by the run's config, as ``{name: module}``.
        run: what the stacks were designed against, without secrets: policy, objective, limits and seed.
    """

    bridge: ComponentSpec
    upstream: str
    tasks: tuple[ReshapedTask, ...] = field(validator=validators.min_len(1))
    schema_version: int = RESHAPED_VERSION
    versions: JsonObject = Factory(dict)
    modules: dict[str, str] = Factory(dict)
    run: JsonObject = Factory(dict)

    def as_json(self) -> JsonObject:
        """Return the benchmark as plain data."""
        return {"schema_version": self.schema_version, **unstructure(self)}

    def task(self, name: str, where: str = "task") -> ReshapedTask:
        """Return a task by its own name, or by the benchmark's where only one was made of that.

        Raises:
            ConfigError: there is no such task, or several.
        """
        found = [task for task in self.tasks if name in (task.id, task.task)]
        exact = [task for task in found if task.id == name]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            listed = ", ".join(task.id for task in found)
            raise ConfigError(f"{where}: {name!r} was reshaped in several ways; name one of {listed}")
        raise unknown("task", name, [task.id for task in self.tasks], where=where)


def task_id(task: str, layers: tuple[ComponentSpec, ...]) -> str:
    """Return the name of a task under some layers: the same layers give the same name, wherever they come from."""
    return f"{task}@{layers_digest(layers)[:8]}"


def is_reshaped(name: object) -> bool:
    """Say whether what stands for a bridge is the file of a reshaped benchmark."""
    return isinstance(name, Path) or (isinstance(name, str) and name.endswith(SUFFIX))


def read_reshaped(path: Path, plugins: Plugins) -> Reshaped:
    """Read a reshaped benchmark, and see that it can be played here as it was made; runs nothing that it holds.

    Raises:
        CheckpointError: the file can't be read, is damaged, or from a newer version.
        ConfigError: a plugin that it needs isn't installed, or the benchmark has another version here.
        PluginError: a plugin is broken.
        BridgeError: the bridge can't be made here.
    """
    made = _parsed(path)
    if made.bridge.use.endswith(SUFFIX):
        raise CheckpointError(f"{path}: bridge: a reshaped benchmark can't be reshaped again from its file")
    _check_plugins(path, made, plugins)
    with plugins.create(BRIDGE, made.bridge, f"{path}: bridge") as bridge:
        here = f"{bridge.capabilities.upstream} {bridge.capabilities.version}"
    if here != made.upstream:
        raise ConfigError(
            f"{path}: made for {made.upstream}, but {here} is what is installed here; "
            "give back its data and its version, or design the tasks again"
        )
    return made


def write_reshaped(path: Path, made: Reshaped) -> None:
    """Write a reshaped benchmark to a file: the old one or the new one, never half of one.

    Raises:
        ConfigError: nothing can be written there.
    """
    with whole_file(path) as file:
        file.write(json.dumps(made.as_json(), ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n")


def _parsed(path: Path) -> Reshaped:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a reshaped benchmark, which is JSON: {error}") from error
    if not isinstance(data, Mapping) or "tasks" not in data or "bridge" not in data:
        raise CheckpointError(
            f"{path}: not a reshaped benchmark; `envharness export RUN --stacks FILE` makes one"
        )
    version = data.get("schema_version")
    if type(version) is not int or version != RESHAPED_VERSION:
        newer = type(version) is int and version > RESHAPED_VERSION
        raise CheckpointError(
            f"{path}: schema_version: expected {RESHAPED_VERSION}, got {version!r}"
            + ("; upgrade envharness-core" if newer else "")
        )
    try:
        made = structure(data, Reshaped, str(path))
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    ids = [task.id for task in made.tasks]
    twice = next((name for name in ids if ids.count(name) > 1), None)
    if twice is not None:
        raise CheckpointError(f"{path}: the task {twice!r} is listed twice")
    return made


def _check_plugins(path: Path, made: Reshaped, plugins: Plugins) -> None:
    installed = plugins.origins()
    for where, use in _used(made):
        name, slash, _ = use.partition("/")
        if slash and name not in installed:
            raise ConfigError(f"{path}: {where}: {_missing(name, made, plugins)}")
    for index, task in enumerate(made.tasks):
        for place, layer in enumerate(task.layers):
            where = f"{path}: tasks[{index}].layers[{place}]"
            plugins.find(LAYER, layer.use, where).configure(layer.config, where)


def _missing(name: str, made: Reshaped, plugins: Plugins) -> str:
    module = made.modules.get(name)
    if module is not None:
        return (
            f"needs the plugin {name!r}, which was the module {module}; name it with --plugin {name}={module}"
        )
    origin = made.versions.get(name)
    known = f" ({origin})" if isinstance(origin, str) else ""
    return f"needs the plugin {name!r}{known}, which isn't installed here{nearest(name, plugins.origins())}"


def _used(made: Reshaped) -> Iterator[tuple[str, str]]:
    """Yield every component that a benchmark names, with its place, the legs of links included."""
    yield "bridge", made.bridge.use
    for index, task in enumerate(made.tasks):
        yield from _within(f"tasks[{index}].", task.layers)


def _within(where: str, layers: tuple[ComponentSpec, ...]) -> Iterator[tuple[str, str]]:
    for place, layer in enumerate(layers):
        yield f"{where}layers[{place}]", layer.use
        if layer.use == "core/link":
            inside = f"{where}layers[{place}].next"
            leg = structure(layer.config.get("next"), StackSpec, inside)
            yield f"{inside}.bridge", leg.bridge.use
            yield from _within(f"{inside}.", leg.layers)
