"""The layers on offer: as a model reads them, and as what it proposes has to be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envharness_core import ComponentSpec, Offer
from envharness_core.errors import unknown
from envharness_core.jsondata import Json, JsonObject
from envharness_core.plugins import short_name
from envharness_llm.designing.fitting import problem_with

RULES = "core/rules"
"""The layer whose config is source code."""

_DULL = ("title", "description", "additionalProperties")


def summaries(offers: Sequence[Offer]) -> str:
    """Return the layers, one a line."""
    return "\n".join(f"- {offer.type}: {offer.summary}" for offer in offers)


def described(offers: Sequence[Offer]) -> str:
    """Return the layers with what their configs hold."""
    return "\n\n".join(map(_described, offers))


def layer_of(data: JsonObject, offers: Sequence[Offer], where: str) -> ComponentSpec:
    """Return a proposed layer under its full name.

    Raises:
        ConfigError: there is no such layer.
        ValueError: its config doesn't fit; says where, and what is allowed.
    """
    use = data["use"]
    known = {name: offer for offer in offers for name in (short_name(offer.type), offer.type)}
    if not isinstance(use, str) or use not in known:
        raise unknown("layer", str(use), [offer.type for offer in offers], where=f"{where}.use")
    offer = known[use]
    config = {key: value for key, value in data.items() if key != "use"}
    problem = problem_with(config, offer.schema or {}, f"{where} ({offer.type})")
    if problem:
        raise ValueError(problem)
    return ComponentSpec(offer.type, config)


def layers_schema(offers: Sequence[Offer]) -> JsonObject:
    """Return the schema of a list of layers: loose, because few services take one that depends on ``use``.

    The keys of all configs stand in it, since some services let a model write no others.
    """
    keys: dict[str, Json] = {}
    for offer in offers:
        properties: Any = (offer.schema or {}).get("properties", {})
        for key, schema in properties.items():
            keys[key] = _merged(
                keys.get(key), _inlined(schema, (offer.schema or {}).get("$defs", {})), offer.type
            )
    use: JsonObject = {"type": "string", "enum": [offer.type for offer in offers]}
    layer: JsonObject = {"type": "object", "properties": {"use": use, **keys}, "required": ["use"]}
    return {
        "type": "array",
        "items": layer,
        "description": "innermost first, each with `use` and its config's keys",
    }


def _described(offer: Offer) -> str:
    lines = [f"## {offer.type}", offer.summary]
    if offer.schema is None:
        return "\n".join([*lines, "Its config can't be described; leave it out."])
    about = str(offer.schema.get("description", "")).replace("``", "`")
    return "\n".join([*lines, about, f"Config: `{json.dumps(_plain(offer.schema), ensure_ascii=False)}`"])


def _plain(schema: Any) -> Any:
    """Return a schema without what is said beside it or says nothing."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _plain(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else _plain(value)
        for key, value in schema.items()
        if not (key in _DULL and isinstance(value, str | bool)) and value not in ([], {})
    }


def _inlined(schema: Any, definitions: Any) -> Any:
    """Return a schema without references, which some services don't follow."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions.get(str(schema["$ref"]).rsplit("/", 1)[-1], {}), definitions)
    return {
        key: _inlined(value, definitions)
        for key, value in schema.items()
        if key not in ("default", "title", "description")
    }


def _merged(earlier: Any, schema: Any, owner: str) -> JsonObject:
    """Return what is common to keys of one name, and whose they are."""
    if earlier is None:
        return {**schema, "description": f"of {owner}"}
    told = {key: value for key, value in earlier.items() if key != "description"}
    common = told if told == schema else {}
    return {**common, "description": f"{earlier['description']}, {owner}"}
