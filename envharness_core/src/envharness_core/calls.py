"""Calls as text: one grammar for whoever writes actions by hand, a person or a model.

What ``parse_call`` takes, of a tool ``combine(i, j, op)`` and a tool ``say(text)``::

    combine(0, 1, op="*")                                    literals of JSON or Python; the end may be left out:
    stop                                                     a name alone, or stop()
    {"name": "combine", "arguments": {"i": 0, "j": 1, "op": "*"}}   also "kwargs" or "parameters"
    combine 0 1 op=*                                         words, which become what the tool's schema says
    say it's a ring                                          a tool of one text takes the rest as it is
    it's a ring                                              and needs no name where it is the only tool
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from envharness_core.data import Action
from envharness_core.errors import DataError, nearest
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.literals import LiteralError, read_arguments, read_value
from envharness_core.tools import Tool

_LONGEST = 1_000_000  # characters of a call; it may hold a file
_LISTED = 20  # tools that an error names
_ARGUMENTS = ("arguments", "kwargs", "parameters")

_CALL = re.compile(r"(\w[\w.-]*)\(")
_NAME = re.compile(r"\w[\w.-]*")
_KEY = re.compile(r"[A-Za-z_][\w-]*")
_WORD = re.compile(r"\S+")
_PAIR = re.compile(r"([^\s=]+)=")


class CallError(ValueError):
    """Text isn't a call; says how to write one.

    It isn't in the tree of errors: whoever reads the text catches it, and tells the text's author.
    """


def parse_call(text: str, tools: Sequence[Tool]) -> Action:
    """Read an action from text, in any of the ways above; nothing is evaluated or mended.

    A name that no tool has is returned as it is where the text is surely a call, ``name(...)`` or JSON, and an argument
    of a wrong type too: the guard answers them. Positional arguments of such a call are named ``0``, ``1``, ...

    Raises:
        CallError: it isn't a call; the message says how to write one.
    """
    text = text.strip()
    known = {tool.name: tool for tool in tools}
    try:
        _require_readable(text)
        action = _parsed(text, known)
        return Action(action.name, copy_object(action.kwargs))
    except (LiteralError, DataError) as error:
        raise CallError(f"{error}; {_how(text, known)}") from error


def show_call(action: Action) -> str:
    """Write an action as ``parse_call`` reads it: ``name(key=value)``, or as JSON where a name isn't a plain word.

    Raises:
        DataError: it holds what isn't strict JSON.
    """
    kwargs = copy_object(action.kwargs, "kwargs")
    call = copy_object({"name": action.name, "arguments": kwargs})
    if isinstance(action.name, str) and _NAME.fullmatch(action.name) and all(map(_KEY.fullmatch, kwargs)):
        return str(Action(action.name, kwargs))
    return json.dumps(call, ensure_ascii=False)


def show_signature(tool: Tool) -> str:
    """Write how a tool is called: ``combine(i, j, op)``, with ``=...`` behind what may be left out."""
    required: Any = tool.schema.get("required", [])
    shown = [name if name in required else f"{name}=..." for name in _properties(tool)]
    return f"{tool.name}({', '.join(shown)})"


def _require_readable(text: str) -> None:
    if not text:
        raise LiteralError("nothing is written")
    if len(text) > _LONGEST:
        raise LiteralError(f"it is longer than {_LONGEST} characters")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LiteralError("text with a lone surrogate can't be encoded") from error


def _parsed(text: str, known: Mapping[str, Tool]) -> Action:
    read = _from_json if text.startswith("{") else _from_call
    return read(text, known) or _from_words(text, known)


def _require_end(text: str, at: int) -> None:
    if text[at:].strip():
        raise LiteralError(f"something follows the call: {text[at:].strip()[:20]!r}")


def _from_json(text: str, known: Mapping[str, Tool]) -> Action | None:
    try:
        value, end = read_value(text)
        _require_end(text, end)
    except LiteralError:
        if _sole_text(known) is not None and not re.match(r"{\s*[\"']", text):
            return None  # such as a shell's { ...; }
        raise
    call = cast("JsonObject", value)
    name, given = call.get("name"), [key for key in _ARGUMENTS if key in call]
    if not isinstance(name, str):
        raise LiteralError('a call in JSON needs a "name"')
    extra = sorted(set(call) - {"name", "id", "type", *_ARGUMENTS})
    if extra or len(given) > 1:
        raise LiteralError(
            f"a call in JSON has no {extra[0]!r:.80}" if extra else "the arguments are given twice"
        )
    arguments = call[given[0]] if given else {}
    if not isinstance(arguments, dict):
        raise LiteralError(f"{given[0]}: expected an object, got {arguments!r:.80}")
    return Action(name, arguments)


def _from_call(text: str, known: Mapping[str, Tool]) -> Action | None:
    head = _CALL.match(text)
    if head is None:
        return None
    name = head[1]
    try:
        positional, named, end = read_arguments(text, head.end())
        _require_end(text, end)
    except LiteralError:
        if name in known or _sole_text(known) is None:
            raise
        return None
    return Action(name, _by_name(positional, named, known.get(name)))


def _by_name(positional: list[Json], named: JsonObject, tool: Tool | None) -> JsonObject:
    if tool is None:
        return {**{str(place): value for place, value in enumerate(positional)}, **named}
    names = _properties(tool)
    if len(positional) > len(names):
        raise LiteralError(f"{tool.name} takes {len(names)} arguments, got {len(positional)}")
    kwargs: JsonObject = dict(zip(names, positional, strict=False))
    twice = sorted(set(kwargs) & set(named))
    if twice:
        raise LiteralError(f"{twice[0]!r} is given twice")
    return {**kwargs, **named}


def _from_words(text: str, known: Mapping[str, Tool]) -> Action:
    name, *rest = text.split(maxsplit=1)
    tool, sole = known.get(name), _sole_text(known)
    if tool is not None:
        if rest and _is_text(tool) and not _is_quoted_pair(rest[0], _text_of(tool)):
            return Action(name, {_text_of(tool): rest[0]})
        return Action(name, _from_rest(rest[0], tool) if rest else {})
    if sole is not None:
        return Action(sole.name, {_text_of(sole): text})
    raise LiteralError(f"there is no tool {name[:80]!r}{nearest(name[:80], known)}")


def _is_quoted_pair(text: str, key: str) -> bool:
    """Whether a text is ``key="..."``, which nobody writes who means it as it is."""
    value = text.removeprefix(f"{key}=")
    return value != text and len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]


def _from_rest(text: str, tool: Tool) -> JsonObject:
    """Read a shell's kind of arguments: values by position, and ``key=value`` where the tool has that key."""
    positional: list[Json] = []
    named: JsonObject = {}
    properties = _properties(tool)
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        key = pair[1] if pair is not None and pair[1] in properties else None
        start = at if pair is None or key is None else pair.end()
        value, source, at = _word(text, start)
        if key in named:
            raise LiteralError(f"{key!r} is given twice")
        if key is not None:
            named[key] = _fitted(value, source, properties[key])
        elif len(positional) < len(properties):
            positional.append(_fitted(value, source, [*properties.values()][len(positional)]))
        else:
            raise LiteralError(
                f"{tool.name} takes {len(properties)} arguments; text with spaces stands in quotes"
            )
    return _by_name(positional, named, tool)


def _word(text: str, at: int) -> tuple[Json, str, int]:
    """Read a literal that ends with a word, or else a word: what it is, how it was written, where the next one is."""
    try:
        value, end = read_value(text, at)
    except LiteralError:
        value, end = None, -1
    if end < 0 or not (end == len(text) or text[end].isspace()):
        word = _WORD.match(text, at)
        end = at if word is None else word.end()
        value = text[at:end]
    return value, text[at:end].strip(), end + len(text[end:]) - len(text[end:].lstrip())


def _fitted(value: Json, source: str, schema: Any) -> Json:
    """Return a word's value where the schema takes its type, else the word itself where it takes text."""
    types = _types(schema)
    if not types or _type(value) in types or "string" not in types:
        return value
    return source


def _types(schema: Any) -> set[str]:
    """Return the types that a schema allows; none where it doesn't say."""
    if not isinstance(schema, dict):
        return set()
    if "anyOf" in schema:
        inner = [_types(option) for option in schema["anyOf"]]
        return set().union(*inner) if all(inner) else set()
    if "enum" in schema:
        return {_type(value) for value in schema["enum"]}
    stated = schema.get("type", [])
    allowed = {stated} if isinstance(stated, str) else set(stated)
    return allowed | {"integer"} if "number" in allowed else allowed


def _type(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def _properties(tool: Tool) -> dict[str, Any]:
    return cast("dict[str, Any]", tool.schema.get("properties", {}))


def _is_text(tool: Tool) -> bool:
    schemas = [*_properties(tool).values()]
    return len(schemas) == 1 and schemas[0].get("type") == "string" and "enum" not in schemas[0]


def _text_of(tool: Tool) -> str:
    return next(iter(_properties(tool)))


def _sole_text(known: Mapping[str, Tool]) -> Tool | None:
    """Return the only tool, if it takes one text."""
    tools = [*known.values()]
    return tools[0] if len(tools) == 1 and _is_text(tools[0]) else None


def _how(text: str, known: Mapping[str, Tool]) -> str:
    """Say how to write the tool that was meant, or any of them."""
    head = _NAME.match(text)
    meant = known.get(head[0]) if head is not None else None
    shown = [show_signature(tool) for tool in ([meant] if meant is not None else known.values())]
    if meant is not None:
        return f"write it as {shown[0]}, with texts in quotes"
    more = f", ... ({len(shown)} in all)" if len(shown) > _LISTED else ""
    return f"write one call, with texts in quotes; there are: {', '.join(shown[:_LISTED])}{more}"
