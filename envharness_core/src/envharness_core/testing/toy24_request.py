"""A chat request as the scripted model of Toy24 reads it."""

from __future__ import annotations

import re
from random import Random
from typing import Any, cast

from attrs import frozen

from envharness_core.jsondata import JsonObject
from envharness_core.seeds import derive

_SECTION = re.compile(r"^# (.+)$", re.MULTILINE)
_ROLLOUT = re.compile(r"^## Rollout (\S+).*?: (success|failure), \d+ steps$", re.MULTILINE)
_STEP = re.compile(r"^\d+\. (\w+)\((.*?)\)(?:  \[(.*)\])?$", re.MULTILINE)


@frozen
class Heard:
    """A message: who says it, and what."""

    role: str
    text: str


@frozen
class Done:
    """A step of a rollout that is shown.

    Args:
        call: the tool's name.
        arguments: as they are shown.
        notes: what stands beside it, such as ``transient_error``; empty where all went well.
    """

    call: str
    arguments: str
    notes: str

    @property
    def failed(self) -> bool:
        """Whether the call didn't take place."""
        return any(word in self.notes for word in ("transient_error", "error", "blocked", "malformed"))


@frozen
class Shown:
    """A rollout that is shown, step by step."""

    success: bool
    steps: tuple[Done, ...]

    @property
    def gave_up(self) -> bool:
        """Whether it ends with stop() right after a call that failed."""
        return len(self.steps) > 1 and self.steps[-1].call == "stop" and self.steps[-2].failed


@frozen
class Asked:
    """A request.

    Args:
        messages: the conversation.
        tools: the names of the tools that are offered.
        seed: the request's.
        chance: what the seed and the length of the conversation make of chance, so that advice changes nothing of it.
    """

    messages: tuple[Heard, ...]
    tools: frozenset[str]
    seed: int
    chance: int

    @classmethod
    def of(cls, body: JsonObject) -> Asked:
        """Read a request's body."""
        told = cast("dict[str, Any]", body)
        messages = tuple(Heard(item["role"], _text(item.get("content"))) for item in told["messages"])
        tools = frozenset(tool["function"]["name"] for tool in told.get("tools") or ())
        seed = told.get("seed") or 0
        return cls(messages, tools, seed, derive("scripted model", seed, len(messages)))

    def random(self, about: str) -> Random:
        """Return a stream of chance of its own for something."""
        return Random(derive(about, self.chance))

    @property
    def system(self) -> str:
        """What the system prompt says."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system")

    @property
    def told(self) -> str:
        """What the first message after it says."""
        return next((message.text for message in self.messages if message.role == "user"), "")

    @property
    def complained(self) -> bool:
        """Whether an answer was refused already."""
        return any("can't be used" in message.text for message in self.messages if message.role != "system")


def sections(text: str) -> dict[str, str]:
    """Return a prompt's sections by their headings."""
    parts = _SECTION.split(text)
    return {name.strip(): body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def rollouts(text: str) -> list[Shown]:
    """Return the rollouts that a text shows; those that only say that they are like another one are left out."""
    marks = [*_ROLLOUT.finditer(text)]
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    shown = []
    for mark, end in zip(marks, ends, strict=True):
        found = _STEP.findall(text[mark.end() : end])
        if found:
            shown.append(Shown(mark[2] == "success", tuple(Done(*step) for step in found)))
    return shown


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content or ""
