"""The one parser of what models reply: which calls it holds, in every way that models write them, or why it holds none.

Reasoning is never executed, a reply that was cut off neither, and nothing is mended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NoReturn, TypeAlias, cast

from attrs import frozen

from envharness_core import Action, Tool
from envharness_core.calls import CallError, parse_call
from envharness_core.jsondata import Json, JsonObject
from envharness_llm.messages import Answer, ToolCall

Format: TypeAlias = Literal["tools", "think_action", "text"]
"""How a model writes actions: by function calling, in an ``<action>`` block, or as the last line that is a call."""

_REASONING = re.compile(
    r"<[ \t]{0,4}(/?)[ \t]{0,4}(?:antml:|ant|seed:)?"
    r"(?:think|thinking|thoughts?|reasoning(?:_content)?|analysis|scratchpad|reflection)\b[^<>]*>?"
    r"|(?:\uff1c|&lt;)(/?)(?:think|thinking)(?:\uff1e|&gt;)"
    r"|<\|(/?)(?:think|thinking|thought)\|>"
    r"|<\|?(?:begin|start|(end))_(?:of_)?(?:thought|thinking)\|?>"
    r"|<\|channel\|>[ \t]{0,4}analysis|(<\|end\|>)(?=\s{0,4}<\|start\|>)"
    r"|(?-i:\[(/?)THINK\])"
    r"|◁(/?)think▷",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"<(/?)(action|tool_call)\b[^<>]*>", re.IGNORECASE)
_LABEL = re.compile(r"\**(?:(?:next|final) )?action\**:\**\s*", re.IGNORECASE)
_FENCE = "```"
_TAIL = 50  # lines at a text's end among which its last call is looked for
_ARGUMENTS = ("arguments", "parameters", "kwargs")

_CUT = "the reply was cut off at its token limit, so nothing of it was done; write a shorter one"
_FILTERED = "the reply was stopped by a content filter, so nothing of it was done"
_UNCLOSED = (
    "the reasoning isn't closed, so everything behind its start counts as reasoning and nothing was done"
)
_TORN = "a block isn't closed, or stands in another one; write <{0}>, the call, </{0}>"


@frozen
class Planned:
    """One call of a reply.

    Args:
        action: what to do; its arguments are whatever the model sent, and the guard answers those that are no object.
            None where a call was meant and none can be read.
        problem: what is wrong with it, for the agent.
    """

    action: Action | None
    problem: str = ""

    @property
    def usable(self) -> bool:
        """Whether it can reach the world at all."""
        return self.action is not None and not self.problem


@frozen
class Reading:
    """What a reply says to do.

    Args:
        plan: its calls, in order.
        problem: why there are none; empty where there are.
        native: whether the plan is that of ``Answer.calls``, one for one.
        cut: whether the reply was cut off at its token limit.
    """

    plan: tuple[Planned, ...] = ()
    problem: str = ""
    native: bool = False
    cut: bool = False

    @property
    def usable(self) -> bool:
        """Whether any of its calls can reach the world."""
        return any(planned.usable for planned in self.plan)


def read_reply(answer: Answer, way: Format, tools: Sequence[Tool]) -> Reading:
    """Read the calls of a reply."""
    if answer.finish == "length":
        return Reading(problem=_CUT, cut=True)
    if answer.finish == "filtered":
        return Reading(problem=_FILTERED)
    if answer.calls and way == "tools":
        return _read_calls(answer)
    spoken, closed = outside_reasoning(said(answer))
    plan = tuple(_written(spoken, way, tools))
    return Reading(plan) if plan else Reading(problem=_missing(way, tools) if closed else _UNCLOSED)


def said(answer: Answer) -> str:
    """Return a reply as one text, its calls as they were written; what the service reports of reasoning isn't in it."""
    calls = [
        f'<tool_call>{{"name": {json.dumps(call.name)}, "arguments": {call.arguments.strip() or "{}"}}}</tool_call>'
        for call in answer.calls
    ]
    return "\n".join([*([answer.text] if answer.text else []), *calls])


def outside_reasoning(text: str) -> tuple[str, bool]:
    """Return what a text says outside of reasoning, and whether all reasoning in it is closed.

    What stands before a closing mark that nothing opened is reasoning too: some services swallow the opening one.
    """
    parts: list[str] = []
    depth, end = 0, 0
    for mark in _REASONING.finditer(text):
        if not any(mark.groups()):
            if depth == 0:
                parts.append(text[end : mark.start()])
            depth += 1
        elif depth == 0:
            parts.clear()
        else:
            depth -= 1
        end = mark.end()
    if depth == 0:
        parts.append(text[end:])
    return "\n".join(
        parts
    ), depth == 0  # a line's end between them, so that no mark arises where reasoning was cut out


def read_json(text: str) -> Json:
    """Read strict JSON.

    Raises:
        ValueError: it isn't JSON, an object has a key twice, or there is a number that JSON doesn't have.
    """
    try:
        return cast("Json", json.loads(text, object_pairs_hook=_without_twins, parse_constant=_refuse_number))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _without_twins(pairs: list[tuple[str, Json]]) -> JsonObject:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twin = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twin!r:.80} is there twice")
    return made


def _refuse_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _read_calls(answer: Answer) -> Reading:
    _, closed = outside_reasoning(answer.text)
    if not closed:  # a server that looks for calls in the text finds those in the reasoning as well
        return Reading(problem=_UNCLOSED)
    return Reading(tuple(_planned(call) for call in answer.calls), native=True)


def _planned(call: ToolCall) -> Planned:
    if not call.arguments.strip():
        return Planned(Action(call.name))
    try:
        given = read_json(call.arguments)
    except ValueError as error:
        problem = f"its arguments can't be read as JSON ({error}): {call.arguments:.200}"
        return Planned(Action(call.name, cast("JsonObject", call.arguments)), problem)
    return _called(call.name, given)


def _called(name: str, given: Json) -> Planned:
    problem = (
        ""
        if isinstance(given, dict) or given == ""
        else f"its arguments must be an object, not {_kind(given)}"
    )
    return Planned(Action(name, cast("JsonObject", given)), problem)


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    return (
        "a list" if isinstance(value, list) else "text" if isinstance(value, str) else "a number or a boolean"
    )


def _written(text: str, way: Format, tools: Sequence[Tool]) -> list[Planned]:
    """Return the calls in a text: in blocks, else as the format has them, else as JSON."""
    names = ("tool_call",) if way == "tools" else ("action", "tool_call")
    found = [planned for block in _blocks(text, names) for planned in _in_block(block, tools)]
    if not found and way == "text":
        found = _last(text, tools)
    return found or [planned for part in (text, *_fences(text)) for planned in _in_json(part, tools)]


def _blocks(text: str, names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each block's name and what stands in it; None for one that isn't closed, or isn't alone."""
    name, start, torn = "", 0, False
    for mark in _BLOCK.finditer(text):
        here = mark[2].lower()
        if here not in names:
            continue
        if not mark[1]:
            torn = bool(name)
            name, start = name or here, start if name else mark.end()
        elif name:
            yield name, None if torn or here != name else text[start : mark.start()]
            name, torn = "", False
    if name:
        yield name, None


def _in_block(block: tuple[str, str | None], tools: Sequence[Tool]) -> list[Planned]:
    name, text = block
    return [Planned(None, _TORN.format(name))] if text is None else _calls(text, tools)


def _calls(text: str, tools: Sequence[Tool]) -> list[Planned]:
    """Read what has to be a call, or several, one a line."""
    text = _bare(text)
    found = _in_json(text, tools)
    if found:
        return found
    try:
        return [Planned(parse_call(text, tools))]
    except CallError as error:
        return _each_line(text, tools) or [Planned(None, str(error))]


def _each_line(text: str, tools: Sequence[Tool]) -> list[Planned]:
    """Read a call in each line; none where one line isn't a call."""
    found: list[Planned] = []
    for line in text.split("\n"):
        planned = _line(line, tools) if line.strip() else None
        if planned is not None:
            found.append(planned)
        elif line.strip():
            return []
    return found


def _bare(text: str) -> str:
    """Take a call out of the fence or the backticks around it."""
    text = text.strip()
    fences = list(_fences(text)) if text.startswith(_FENCE) and text.endswith(_FENCE) else []
    if len(fences) == 1:
        return fences[0].strip()
    return text[1:-1].strip() if len(text) > 2 and text[0] == text[-1] == "`" else text


def _fences(text: str) -> Iterator[str]:
    """Yield what stands in each closed code fence."""
    inside: list[str] | None = None
    for line in text.split("\n"):
        plain = line.strip()
        if not plain.startswith(_FENCE):
            if inside is not None:
                inside.append(line)
        elif inside is not None:
            yield "\n".join(inside)
            inside = None
        elif plain.endswith(_FENCE) and len(plain) > 2 * len(_FENCE):
            yield plain[len(_FENCE) : -len(_FENCE)]
        else:
            inside = []


def _in_json(text: str, tools: Sequence[Tool]) -> list[Planned]:
    """Read a call in JSON, or a list of them; none where it is something else."""
    if not text.strip().startswith(("{", "[")):
        return []
    try:
        value = read_json(text)
    except ValueError:
        return []
    names = {tool.name for tool in tools}
    found = [_json_call(item, names) for item in (value if isinstance(value, list) else [value])]
    known = [planned for planned in found if planned is not None]
    return known if len(known) == len(found) else []


def _json_call(value: Json, names: set[str]) -> Planned | None:
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    name = cast("str", value["name"])
    given = [key for key in _ARGUMENTS if key in value]
    if set(value) - {"name", "id", "type", *_ARGUMENTS} or len(given) > 1 or not (given or name in names):
        return None
    arguments = value[given[0]] if given else {}
    return _planned(ToolCall("", name, arguments)) if isinstance(arguments, str) else _called(name, arguments)


def _last(text: str, tools: Sequence[Tool]) -> list[Planned]:
    """Read the call that a text ends with: a fence, or the last line that is one."""
    fences = list(_fences(text)) if text.rstrip().endswith(_FENCE) else []
    found = _calls(fences[-1], tools) if fences else []
    if any(planned.usable for planned in found):
        return found
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith(_FENCE)]
    for line in reversed(lines[-_TAIL:]):
        planned = _line(line, tools)
        if planned is not None:
            return [planned]
    return []


def _line(line: str, tools: Sequence[Tool]) -> Planned | None:
    plain = _bare(line)
    label = _LABEL.match(plain)
    plain = plain if label is None else _bare(plain[label.end() :])
    try:
        return Planned(parse_call(plain, tools))
    except CallError:
        return None


def _missing(way: Format, tools: Sequence[Tool]) -> str:
    names = ", ".join(tool.name for tool in tools)
    match way:
        case "tools":
            return f"the reply calls no tool; call one of: {names}"
        case "think_action":
            return (
                "the reply holds no <action> block outside of reasoning; write <action>name(argument=value)</action> "
                f"with one of: {names}"
            )
    return f"no line of the reply is a call; end it with a line such as name(argument=value), with one of: {names}"
