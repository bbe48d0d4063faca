"""Prompts: templates with ``${placeholders}``, and what is filled into them of tools, skills and formats."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from attrs import frozen

from envharness_core import Action, Tool
from envharness_core.calls import show_call
from envharness_core.errors import ConfigError, nearest
from envharness_core.jsondata import Json, JsonObject
from envharness_llm.parsing import Format

_PLACEHOLDER = re.compile(r"\$(?:\$(?=\{)|\{([^{}\n]*)\})")
_TOLD = ("title", "description", "type", "enum", "anyOf", "default", "items")  # in a signature or beside it


@frozen
class Template:
    """A text with placeholders such as ``${tools}``; ``$${`` stands for a plain ``${``."""

    text: str

    def names(self) -> set[str]:
        """Return the placeholders in it."""
        return set(_PLACEHOLDER.findall(self.text)) - {""}

    def require(self, allowed: Collection[str], where: str) -> None:
        """Refuse placeholders that nothing is filled into, in a field called ``where``.

        Raises:
            ConfigError: names the placeholder and the allowed ones.
        """
        for mark in _PLACEHOLDER.finditer(self.text):
            if mark[1] is not None and mark[1] not in allowed:
                listed = ", ".join(f"${{{name}}}" for name in sorted(allowed))
                hint = nearest(mark[1], allowed)
                raise ConfigError(
                    f"{where!r} has an unknown placeholder ${{{mark[1]}}}{hint}; allowed: "
                    f"{listed}; write $${{ for a plain ${{"
                )

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with the values in place; a line that holds but an empty one goes, and a blank after it."""
        kept: list[str] = []
        gone = False
        for line in self.text.split("\n"):
            alone = _PLACEHOLDER.fullmatch(line.strip())
            if alone is not None and alone[1] is not None and not values[alone[1]]:
                gone = True
            elif not (gone and not line.strip()):
                kept.append(line)
                gone = False
        return _PLACEHOLDER.sub(lambda mark: "$" if mark[1] is None else values[mark[1]], "\n".join(kept))


@cache
def packaged(name: str) -> Template:
    """Return a prompt of this package, by its file's name without the ending."""
    return Template((files("envharness_llm") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip())


def system_prompt(
    template: Template, way: Format, tools: Sequence[Tool], instruction: str, skills: Sequence[str]
) -> str:
    """Fill a template of a system prompt; skills that it has no place for come at its end, so that none are lost."""
    values = {
        "tools": "\n\n".join(map(described, tools)),
        "format": how_to_write(way, tools),
        "instruction": instruction,
        "skills": advice(skills),
    }
    filled = template.fill(values).strip()
    return filled if "skills" in template.names() else f"{filled}\n\n{values['skills']}".strip()


def how_to_write(way: Format, tools: Sequence[Tool]) -> str:
    """Say how an action is written; nothing of function calling, which services explain themselves."""
    return "" if way == "tools" else packaged(f"format_{way}").fill({"example": example(tools)})


def advice(skills: Sequence[str]) -> str:
    """Return a section of skills; nothing where there are none."""
    given = [skill.strip() for skill in skills if skill.strip()]
    return packaged("skills").fill({"skills": "\n\n".join(given)}) if given else ""


def example(tools: Sequence[Tool]) -> str:
    """Return a call of the first tool, to show the form."""
    if not tools:
        return "name(argument=1)"
    properties: Any = tools[0].schema.get("properties", {})
    return show_call(
        Action(
            tools[0].name,
            {name: _sample(inner, place) for place, (name, inner) in enumerate(properties.items())},
        )
    )


def described(tool: Tool) -> str:
    """Describe a tool for a model that gets no schemas: its signature with types, what it does, its arguments."""
    properties: Any = tool.schema.get("properties", {})
    required: Any = tool.schema.get("required", [])
    signature = ", ".join(_parameter(name, inner, name in required) for name, inner in properties.items())
    lines = [f"{tool.name}({signature})", *tool.description.split("\n")]
    lines += [f"{name}: {told}" for name, inner in properties.items() if (told := _about(inner))]
    if tool.schema.get("$defs"):
        lines.append(f"where {_compact(tool.schema['$defs'])}")
    return "\n    ".join(line for line in lines if line)


def _parameter(name: str, schema: Any, required: bool) -> str:  # noqa: FBT001 - private
    default = "" if required else f" = {_compact(schema.get('default'))}"
    return f"{name}: {_type(schema)}{default}"


def _about(schema: JsonObject) -> str:
    limits: JsonObject = {key: value for key, value in schema.items() if key not in _TOLD}
    return " ".join(
        text for text in (str(schema.get("description", "")), _compact(limits) if limits else "") if text
    )


def _type(schema: Any) -> str:
    if "enum" in schema:
        return " | ".join(map(_compact, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(kind)


def _sample(schema: Any, place: int) -> Json:
    if "anyOf" in schema:
        return _sample(schema["anyOf"][0], place)
    if "enum" in schema:
        return schema["enum"][0]  # type: ignore[no-any-return]
    match schema.get("type"):
        case "integer" | "number":
            return max(place, schema.get("minimum", 0))  # type: ignore[no-any-return]
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return {}
    return "..."


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
