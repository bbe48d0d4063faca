"""Strategies: actions drawn from tools, layers of the core, and stacks of them over the doubles and Toy24."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from envharness_core.checks.bench import WORLDS
from envharness_core.checks.drive import World
from envharness_core.data import Action
from envharness_core.jsondata import Json, JsonObject, canonical
from envharness_core.spec import ComponentSpec
from envharness_core.tools import Tool

_REPLAYS: Mapping[str, tuple[Action, ...]] = {
    "core/toy24": (Action("combine", {"i": 0, "j": 1, "op": "+"}), Action("undo")),
    "testing/text_world": tuple(
        Action("do", {"text": text}) for text in ("open drawer", "go kitchen", "look", "sing")
    ),
    "testing/counter": (Action("add"), Action("add", {"amount": 2})),
}
"""What a Setup may replay in each world without ending the episode."""

TEXTS = (
    "look",
    "go kitchen",
    "go hall",
    "go cellar",
    "open drawer",
    "open chest",
    "take key",
    "take ring",
    "",
)


def actions(
    tools: Sequence[Tool], *, texts: Sequence[str] = TEXTS, malformed: bool = False
) -> st.SearchStrategy[Action]:
    """Draw calls that the tools' schemas allow; with ``malformed``, some that they don't.

    Args:
        tools: of any environment.
        texts: what text arguments may be, beside any text.
        malformed: whether ``malformed_actions`` are mixed in.
    """
    return _actions(_key(tools), tuple(texts), malformed=malformed)


@lru_cache(maxsize=256)  # Hypothesis checks a strategy when it is first used, which takes longer than to draw
def _actions(key: bytes, texts: tuple[str, ...], *, malformed: bool) -> st.SearchStrategy[Action]:
    tools: list[tuple[str, JsonObject]] = json.loads(key)
    calls = [st.builds(Action, st.just(name), arguments(schema, texts)) for name, schema in tools]
    return st.one_of(*calls, _malformed(key)) if malformed else st.one_of(*calls)


def arguments(schema: JsonObject, texts: Sequence[str] = TEXTS) -> st.SearchStrategy[JsonObject]:
    """Draw the arguments of one tool from its JSON schema."""
    return _object(schema, schema.get("$defs", {}), tuple(texts))


def malformed_actions(tools: Sequence[Tool]) -> st.SearchStrategy[Action]:
    """Draw what models send and no tool takes: unknown names, arguments that are no object, wrong types, no JSON."""
    return _malformed(_key(tools))


@lru_cache(maxsize=256)
def _malformed(key: bytes) -> st.SearchStrategy[Action]:
    names = [name for name, _ in json.loads(key)]
    junk: st.SearchStrategy[Any] = st.sampled_from(
        [None, [], [1], "text", 0, {"no such argument": 1}, {"no such argument": float("nan")}, {1: 2},
         {"\ud83d": 1}, {"no such argument": 10**30}, {"no such argument": {1, 2}}]
    )  # fmt: skip
    unknown = st.builds(Action, st.sampled_from(["", "no_such_tool", "\ud83d", None]), st.just({}))
    return st.one_of(unknown, st.builds(Action, st.sampled_from(names), junk))


def worlds() -> st.SearchStrategy[World]:
    """Draw a bridge and its task: Toy24, the text world, or the counter."""
    return st.sampled_from(WORLDS)


def layer_specs(
    world: World | None = None, *, tools: Sequence[Tool] = ()
) -> st.SearchStrategy[ComponentSpec]:
    """Draw a layer of the core, with its config.

    Args:
        world: where it is to go; a Setup is drawn only where it is one of ``worlds``.
        tools: the world's; a ``closed`` is drawn only where there are some.
    """
    return _layer_specs(world.bridge.use if world else "", tuple(tool.name for tool in tools))


@lru_cache(maxsize=256)
def _layer_specs(bridge: str, tools: tuple[str, ...]) -> st.SearchStrategy[ComponentSpec]:
    kinds = [
        _spec("faults", rate=st.sampled_from([0.0, 0.3, 1.0]), streak=st.integers(1, 3)),
        _spec("budget", steps=st.integers(1, 8)),
        _spec("short_memory", key=st.sampled_from(["log", "admissible"]), keep=st.integers(0, 3)),
        _spec("testing/pass_through"),
    ]
    if tools:
        kinds.append(_spec("closed", tool=st.sampled_from(tools)))
    if bridge in _REPLAYS:
        kinds.append(_setups(bridge))
    return st.one_of(*kinds)


def setups(world: World) -> st.SearchStrategy[ComponentSpec]:
    """Draw a Setup whose replay is possible in one of ``worlds``."""
    return _setups(world.bridge.use)


@lru_cache(maxsize=256)
def _setups(bridge: str) -> st.SearchStrategy[ComponentSpec]:
    calls: list[Json] = [{"name": action.name, "kwargs": action.kwargs} for action in _REPLAYS[bridge]]
    return _spec("setup", actions=st.lists(st.sampled_from(calls), min_size=1, max_size=2))


def stacks(
    world: World | None = None, *, tools: Sequence[Tool] = (), max_size: int = 3
) -> st.SearchStrategy[tuple[ComponentSpec, ...]]:
    """Draw a list of layers of the core, innermost first, that can be reset.

    What would end a replay, a second Setup or a budget inside of one, isn't drawn: there is one Setup at most, and
    budgets come last.
    """
    return _stacks(world.bridge.use if world else "", tuple(tool.name for tool in tools), max_size)


@lru_cache(maxsize=256)
def _stacks(
    bridge: str, tools: tuple[str, ...], max_size: int
) -> st.SearchStrategy[tuple[ComponentSpec, ...]]:
    return st.lists(_layer_specs(bridge, tools), max_size=max_size).map(_that_can_be_reset)


def _that_can_be_reset(layers: list[ComponentSpec]) -> tuple[ComponentSpec, ...]:
    setups = [layer for layer in layers if layer.use == "setup"]
    kept = [layer for layer in layers if layer.use != "setup" or layer is setups[0]]
    return tuple(sorted(kept, key=lambda layer: layer.use == "budget"))


def _key(tools: Sequence[Tool]) -> bytes:
    return canonical([[tool.name, tool.schema] for tool in tools])


def _spec(use: str, **config: st.SearchStrategy[Any]) -> st.SearchStrategy[ComponentSpec]:
    return st.builds(ComponentSpec, st.just(use), st.fixed_dictionaries(config))


def _object(schema: Any, defs: Any, texts: tuple[str, ...]) -> st.SearchStrategy[JsonObject]:
    required = schema.get("required", [])
    drawn = {name: _value(inner, defs, texts) for name, inner in schema.get("properties", {}).items()}
    needed = {name: value for name, value in drawn.items() if name in required}
    optional = {name: value for name, value in drawn.items() if name not in required}
    known: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(needed, optional=optional)
    more = schema.get("additionalProperties", False)
    if drawn or more is False:
        return known
    values = _value(more if isinstance(more, dict) else {}, defs, texts)
    return st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2)


def _value(schema: Any, defs: Any, texts: tuple[str, ...]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, texts)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*[_value(option, defs, texts) for option in schema["anyOf"]])
    low, high = schema.get("minimum", -2), schema.get("maximum", 6)
    match schema.get("type"):
        case "integer":
            return st.integers(int(low), max(int(low), int(high)))
        case "number":
            return st.floats(low, max(low, high), allow_nan=False)
        case "boolean":
            return st.booleans()
        case "string":
            return st.one_of(st.sampled_from(texts), _text(schema)) if texts else _text(schema)
        case "array":
            return st.lists(_value(schema.get("items", {}), defs, texts), max_size=3)
        case "object":
            return _object(schema, defs, texts)
        case _:
            return st.none()


def _text(schema: Any) -> st.SearchStrategy[str]:
    encodable = st.characters(exclude_categories=["Cs"])
    return st.text(encodable, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 12))
