"""Items in JSON, wherever it stands in a text: as a call's arguments, fenced, bare, or an object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from envharness_core.jsondata import Json

Draft: TypeAlias = Mapping[str, Json]
"""What was written of an item, complete or not, by field."""

FIELDS = ("title", "description", "content")
"""What an item has to have."""

ALIASES = {"when to use": "description", "when to use it": "description", "what to do": "content"}
"""Other names of fields."""

_LISTS = ("items", "memory_items", "memories", "skills")
_INSIDE = ("arguments", "parameters", "function", "input")
_OPENS = re.compile(r"[\[{]")
_OBJECT = re.compile(r'\{\s*"title"\s*:\s*"((?:[^"\\\n]|\\.){0,60})', re.IGNORECASE)
_TRIES = 500  # places where JSON may begin that are tried in vain
_DEPTH = 4  # of JSON written as text within JSON
_DECODER = json.JSONDecoder(strict=False)  # models write line ends into strings as they are


def in_json(text: str, depth: int = 0) -> list[Draft] | None:
    """Return the items in a text's JSON, none of an empty list of them; None where it holds no JSON about items.

    Where a list is broken, such as by a comma too many, those of its items that are whole count.
    """
    found: list[Draft] | None = None
    place, tries = 0, 0
    while tries < _TRIES and (mark := _OPENS.search(text, place)):
        place = mark.end()
        try:
            value, end = _DECODER.raw_decode(text, mark.start())
        except (ValueError, RecursionError):
            drafts, end, tries = _torn(text, mark.start()), place, tries + 1
        else:
            drafts = _drafts(value, depth)
            tries += drafts is None
        if drafts is not None:
            found, place = [*(found or ()), *drafts], end
    return found


def _torn(text: str, start: int) -> list[Draft] | None:
    """Return what is left of an object that looks like an item and can't be read, so that it is reported."""
    begun = _OBJECT.match(text, start)
    return [{"title": begun[1]}] if begun else None


def _drafts(value: Json, depth: int) -> list[Draft] | None:
    if isinstance(value, list):
        held = [_fields(item) for item in value]
        return held if held and any("title" in item for item in held) else None
    if not isinstance(value, dict):
        return None
    fields = _fields(value)
    listed = next((name for name in _LISTS if name in fields), None)
    if listed is not None:
        return _listed(fields[listed], depth)
    if "title" in fields:
        return [fields]
    inner = next((fields[name] for name in _INSIDE if name in fields), None)
    if isinstance(inner, str):
        return in_json(inner, depth + 1) if depth < _DEPTH else None
    return None if inner is None else _drafts(inner, depth)


def _listed(value: Json, depth: int) -> list[Draft] | None:
    """Return what stands where a list of items belongs."""
    if isinstance(value, list):
        return [_fields(item) for item in value]
    if isinstance(value, str):
        return [] if value.strip() == "[]" else in_json(value, depth + 1) if depth < _DEPTH else None
    return [_fields(value)]


def _fields(value: Json) -> Draft:
    """Return an object by its fields' plain names; of anything else, no fields."""
    if not isinstance(value, dict):
        return {}
    told = {" ".join(key.replace("_", " ").split()).lower(): item for key, item in value.items()}
    return {ALIASES.get(key, key.replace(" ", "_")): item for key, item in told.items()}
