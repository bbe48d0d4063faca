"""Whether data fits a JSON schema: the part of it that tools and component configs use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envharness_core.errors import nearest
from envharness_core.jsondata import Json, JsonObject

_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "object": ("an object", (dict,)),
    "array": ("a list", (list,)),
    "string": ("text", (str,)),
    "integer": ("an integer", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "null": ("null", (type(None),)),
}


def problem_with(value: Json, schema: JsonObject, path: str) -> str:
    """Say where data doesn't fit a schema and what is allowed there, or return an empty text.

    What a schema asks for beyond types, enums, required and known keys isn't looked at.
    """
    return next(_problems(value, schema, schema, path), "")


def _problems(value: Any, schema: Any, root: JsonObject, path: str) -> Iterator[str]:
    schema = _resolved(schema, root)
    choices = schema.get("anyOf")
    if choices is not None:
        found = [next(_problems(value, choice, root, path), "") for choice in choices]
        if all(found):
            yield found[0] if len(found) == 1 else f"{path}: fits none of: {'; '.join(found)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: expected one of {', '.join(map(repr, schema['enum']))}, got {value!r:.80}"
    wrong = _wrong_type(value, schema.get("type"))
    if wrong:
        yield f"{path}: expected {wrong}, got {value!r:.80}"
    elif isinstance(value, dict):
        yield from _of_object(value, schema, root, path)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _problems(item, schema["items"], root, f"{path}[{index}]")
    elif isinstance(value, str) and schema.get("minLength") and not value.strip():
        yield f"{path}: must not be empty"


def _of_object(value: dict[str, Json], schema: Any, root: JsonObject, path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{path}.{key}: missing"
    for key, item in value.items():
        if key in known:
            yield from _problems(item, known[key], root, f"{path}.{key}")
        elif schema.get("additionalProperties") is False:
            listed = ", ".join(known) or "none"
            yield f"{path}: unknown key {key!r:.80}{nearest(key, known)}; known: {listed}"


def _wrong_type(value: object, kind: object) -> str:
    """Say which type was expected, where a value hasn't it."""
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    known = [_TYPES[name] for name in kinds if name in _TYPES]
    fits = any(isinstance(value, types) and (bool in types or type(value) is not bool) for _, types in known)
    return "" if fits or not known else " or ".join(word for word, _ in known)


def _resolved(schema: Any, root: JsonObject) -> Any:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(reference, str):
        return schema if isinstance(schema, dict) else {}
    definitions: Any = root.get("$defs", {})
    return definitions.get(reference.rsplit("/", 1)[-1], {})
