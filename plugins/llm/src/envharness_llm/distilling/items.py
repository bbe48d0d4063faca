"""What a model says is worth remembering, however it writes it; never out of reasoning, and nothing half."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from envharness_core.errors import DataError
from envharness_core.jsondata import JsonObject, copy_json
from envharness_llm.distilling.drafts import FIELDS, Draft, in_json
from envharness_llm.distilling.markdown import in_markdown
from envharness_llm.messages import Answer
from envharness_llm.parsing import outside_reasoning

_NAMED = 60  # characters of a title that are shown

_EMPTY = re.compile(r"\A\s*\[\s*\]\s*\Z|^[ \t]*```\w*\s*\[\s*\]\s*```", re.MULTILINE)
_NOTHING = re.compile(
    r"\W*(?:(?:there(?:'s| is|\u2019s) )?nothing(?: is| was)?(?: here)?(?: (?:that is )?worth remembering)?|none"
    r"|no (?:memory )?items?)\W*",
    re.IGNORECASE,
)
_CUT = "the answer was cut off at its token limit, so nothing of it counts; write fewer and shorter items"
_FILTERED = "the answer was stopped by a content filter, so nothing of it counts"
_UNCLOSED = "the reasoning isn't closed, so everything behind its start counts as reasoning"
_ABSENT = "the answer holds no items; call `remember` with a list of them, or with an empty one"


@frozen
class Item:
    """A piece of advice as a model wrote it: what it is called, when to use it, what to do."""

    title: str
    description: str
    content: str


@frozen
class Found:
    """What an answer holds.

    Args:
        items: the complete ones, in order.
        dropped: why others aren't among them.
        problem: why the answer can't be used, for the model; empty where it can, which it can without items too.
        cut: whether it was cut off at its token limit.
    """

    items: tuple[Item, ...] = ()
    dropped: tuple[str, ...] = ()
    problem: str = ""
    cut: bool = False


def remember_tool(count: int) -> JsonObject:
    """Return the tool by which a model answers."""
    texts: dict[str, str] = {
        "title": "what to do, in a few words",
        "description": "when to use it, in one sentence: on which kind of tasks, in which situation",
        "content": "what to do and why, in one to five sentences",
    }
    item: JsonObject = {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": told, "minLength": 1} for name, told in texts.items()
        },
        "required": [*FIELDS],
        "additionalProperties": False,
    }
    items: JsonObject = {
        "type": "array",
        "items": item,
        "maxItems": count,
        "description": "the most useful first; empty where nothing is worth remembering",
    }
    parameters: JsonObject = {
        "type": "object",
        "properties": {"items": items},
        "required": ["items"],
        "additionalProperties": False,
    }
    return {
        "name": "remember",
        "description": "Write down what is worth remembering.",
        "parameters": parameters,
    }


def read_items(answer: Answer) -> Found:
    """Read the items of an answer: of its calls, else of what it says outside of reasoning."""
    if answer.finish == "length":
        return Found(problem=_CUT, cut=True)
    if answer.finish == "filtered":
        return Found(problem=_FILTERED)
    spoken, closed = outside_reasoning(answer.text)
    # A server that looks for calls in the text finds those in unclosed reasoning as well.
    called = _together([_read(call.arguments) for call in answer.calls if closed])
    if called.items or (answer.calls and not called.problem):
        return called
    said = _read(spoken)
    if not said.problem or not called.dropped:
        return said if closed or not said.problem else Found((), said.dropped, _UNCLOSED)
    return called


def _together(found: Sequence[Found]) -> Found:
    """Return what several calls say; one that says nothing usable doesn't spoil the others."""
    items = tuple(item for each in found for item in each.items)
    dropped = tuple(reason for each in found for reason in each.dropped)
    problems = [each.problem for each in found if each.problem]
    usable = items or len(problems) < len(found)
    return Found(items, dropped, "" if usable else (problems or [_ABSENT])[0])


def _read(text: str) -> Found:
    drafts = in_json(text)
    found = _sifted(drafts or ())
    if not found.items and drafts != []:
        found = _together([_sifted(in_markdown(text)), found])
    if found.items or drafts == [] or _EMPTY.search(text) or _NOTHING.fullmatch(text):
        return Found(found.items, found.dropped)
    if found.dropped:
        return Found((), found.dropped, f"no item is complete: {'; '.join(found.dropped[:3])}")
    return Found(problem=_ABSENT)


def _sifted(drafts: Iterable[Draft]) -> Found:
    read = [_item(draft) for draft in drafts]
    items = tuple(item for item in read if isinstance(item, Item))
    return Found(items, tuple(reason for reason in read if isinstance(reason, str)))


def _item(draft: Draft) -> Item | str:
    """Return a complete item, or why it is none."""
    told = {name: _plain(draft, name) for name in FIELDS}
    named = json.dumps(told["title"][:_NAMED])
    missing = [name for name, text in told.items() if not re.search(r"\w", text)]
    if missing:
        return f"the item {named} has no {' and no '.join(missing)}"
    try:
        copy_json([*told.values()])
    except DataError as error:
        return f"the item {named} can't be written down: {error.problem}"
    return Item(**told)


def _plain(draft: Mapping[str, object], name: str) -> str:
    value = draft.get(name, "")
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)  # steps, one by one
    return value.strip() if isinstance(value, str) else ""
