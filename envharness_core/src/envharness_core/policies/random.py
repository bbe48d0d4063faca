"""Random: calls tools by chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import frozen

from envharness_core.data import Action, Observation
from envharness_core.jsondata import Json, JsonObject
from envharness_core.policy import Policy, Reply
from envharness_core.tools import Tool

_SPAN = 4  # how far above its minimum an unbounded number is drawn


@frozen
class RandomConfig:
    """Where the random policy takes text from.

    Args:
        texts: what a text argument may be.
        texts_from: a list of strings in ``observation.data`` to choose from instead, such as admissible commands.
    """

    texts: tuple[str, ...] = ("",)
    texts_from: str = ""


class RandomPolicy(Policy[RandomConfig]):
    """Calls a tool chosen by chance, with arguments drawn from its schema."""

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        self._random = Random(seed)
        self._tools = tuple(tools)

    def act(self, observation: Observation) -> Reply:
        tool = self._random.choice(self._tools)
        offered = observation.data.get(self.config.texts_from)
        texts = [text for text in offered if isinstance(text, str)] if isinstance(offered, list) else []
        kwargs = draw(tool.schema, self._random, texts or list(self.config.texts))
        action = Action(tool.name, kwargs)
        return Reply((action,), str(action))


def draw(schema: JsonObject, random: Random, texts: Sequence[str]) -> JsonObject:
    """Draw arguments that a tool's schema allows; optional ones are left out by chance."""
    required: Any = schema.get("required", [])
    properties: Any = schema.get("properties", {})
    return {
        name: _drawn(inner, random, texts)
        for name, inner in properties.items()
        if name in required or random.random() < 0.5
    }


def _drawn(schema: Any, random: Random, texts: Sequence[str]) -> Json:
    if "enum" in schema:
        return random.choice(schema["enum"])  # type: ignore[no-any-return]
    if "anyOf" in schema:
        return _drawn(random.choice(schema["anyOf"]), random, texts)
    low = schema.get("minimum", 0)
    high = schema.get("maximum", low + _SPAN)
    match schema.get("type"):
        case "integer":
            return random.randint(low, high)
        case "number":
            return random.uniform(low, high)
        case "boolean":
            return random.random() < 0.5
        case "string":
            return random.choice(texts)
        case "array":
            return [_drawn(schema.get("items", {}), random, texts) for _ in range(random.randint(0, 2))]
        case "object":
            return draw(schema, random, texts)
        case _:
            return None
