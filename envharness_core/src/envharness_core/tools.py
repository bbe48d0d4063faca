"""Tools: what an agent can call, with a JSON schema derived from a typed signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec
from attrs import field, frozen

from envharness_core.data import Action
from envharness_core.errors import PluginError
from envharness_core.jsondata import JsonObject


@frozen
class Tool:
    """A tool of a bridge: name, description, and the JSON schema of its arguments.

    Source: the schema is JSON Schema 2020-12, as the chat APIs take it.
    """

    name: str
    description: str
    schema: JsonObject
    _arguments: type[Any] = field(repr=False, eq=False)

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Tool:
        """Derive a tool from a function or method: its name, docstring and annotated parameters.

        ``Literal``, ``Optional``, lists, dicts and defaults come out as one expects; describe a parameter with
        ``Annotated[int, msgspec.Meta(description=..., ge=0)]``.

            >>> def combine(i: int, op: Literal["+", "-"] = "+") -> None:
            ...     "Combine two numbers."
            >>> Tool.of(combine).schema["required"]
            ['i']

        Raises:
            PluginError: a parameter has no annotation, one that JSON can't hold, or is ``*args`` or ``**kwargs``.
        """
        name = function.__name__
        try:
            arguments = msgspec.defstruct(name, _fields(function), forbid_unknown_fields=True)
            reference = msgspec.json.schema(arguments)
        except (TypeError, NameError) as error:
            raise PluginError(f"tool {name}: its parameters can't be described: {error}") from error
        schema = _inlined(reference, name)
        return cls(name, inspect.getdoc(function) or "", schema, arguments)

    @classmethod
    def described(cls, name: str, description: str, schema: JsonObject) -> Tool:
        """Make a tool of its description alone, for who only reads it: ``problem_with`` then takes any arguments."""
        return cls(name, description, schema, dict)

    def problem_with(self, kwargs: object) -> str | None:
        """Say what is wrong with a call's arguments, or return None where nothing is."""
        if not isinstance(kwargs, dict):
            return f"the arguments must be an object, got {type(kwargs).__name__}"
        try:
            msgspec.convert(kwargs, self._arguments)
        except msgspec.ValidationError as error:
            return str(error)
        except UnicodeEncodeError:
            return "text with a lone surrogate can't be encoded"
        except RecursionError:
            return "nested too deeply, or contains itself"
        return None

    def as_json(self) -> JsonObject:
        """Return name, description and schema as plain data."""
        return {"name": self.name, "description": self.description, "schema": self.schema}


class Toolbox:
    """A set of tools by name, which says of a call what is wrong with it."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def problem_with(self, action: Action) -> str | None:
        """Say what is wrong with a call, or return None where it is well formed."""
        tool = self._tools.get(action.name) if isinstance(action.name, str) else None
        if tool is None:
            return f"unknown tool {action.name!r}; the tools are: {', '.join(self._tools)}"
        problem = tool.problem_with(action.kwargs)
        return None if problem is None else f"{action.name}: {problem}"


def _fields(function: Callable[..., Any]) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise PluginError(f"tool {function.__name__}: *{parameter.name} can't be described")
        if parameter.name not in hints:
            raise PluginError(f"tool {function.__name__}: annotate {parameter.name!r}")
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hints[parameter.name]))
        else:
            fields.append((parameter.name, hints[parameter.name], parameter.default))
    return fields


def _inlined(reference: dict[str, Any], name: str) -> JsonObject:
    """Lift the one definition that msgspec refers to; keep others (nested structs) beside it."""
    definitions = dict(reference["$defs"])
    schema: JsonObject = definitions.pop(name)
    if definitions:
        schema["$defs"] = definitions
    return schema
