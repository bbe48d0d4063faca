"""What is heard of an answer, whole or piece by piece, out of the objects that litellm hands over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from envharness_core.jsondata import JsonObject
from envharness_llm.messages import Answer, Finish, ToolCall

_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filtered",
}


class BrokenAnswer(Exception):  # noqa: N818 - says what happened
    """An answer that ends too early, or isn't one."""


@define
class _Call:
    """A call as far as it has been heard."""

    place: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, part: Any) -> None:
        """Take it, or the next piece of it."""
        self.id = self.id or part.id or ""
        if part.function is not None:
            self.name += part.function.name or ""
            more = part.function.arguments
            self.arguments += more if isinstance(more, str) else "" if more is None else json.dumps(more)


@define
class Heard:
    """What has been heard so far.

    Args:
        text, reasoning: what was said.
        finish: why it ended, in OpenAI's words; None where it hasn't ended.
        usage: what was reported last, as litellm has it.
    """

    text: str = ""
    reasoning: str = ""
    finish: str | None = None
    usage: Any = None
    _calls: list[_Call] = field(factory=list)

    def take_whole(self, response: Any, raw: str | None) -> None:
        """Take an answer in one piece.

        Args:
            response: litellm's.
            raw: what came over the wire, where litellm shows it.

        Raises:
            BrokenAnswer: there is none in it.
        """
        if not response.choices:
            raise BrokenAnswer("the answer holds no message")
        choice = response.choices[0]
        message = choice.message
        self.text, self.reasoning = message.content or "", getattr(message, "reasoning_content", None) or ""
        content = None if raw is None else _content(raw)
        if content is not None and content != self.text and content.endswith(self.text):
            # litellm takes a <think> block out of the text, where it is the reader's to find.
            self.text, self.reasoning = content, ""
        for place, part in enumerate(message.tool_calls or ()):
            self._take_call(place, part)
        self.finish, self.usage = choice.finish_reason, getattr(response, "usage", None)

    def take_piece(self, chunk: Any) -> None:
        """Take a piece of a stream."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        for choice in chunk.choices[:1]:
            delta = choice.delta
            self.text += delta.content or ""
            self.reasoning += getattr(delta, "reasoning_content", None) or ""
            self.finish = choice.finish_reason or self.finish
            for part in delta.tool_calls or ():
                self._take_call(part.index or 0, part)

    def answer(self, usage: JsonObject) -> Answer:
        """Return it as an answer.

        Raises:
            BrokenAnswer: it doesn't say why it ended, so that more may have been meant.
        """
        if self.finish is None:
            raise BrokenAnswer("the answer ended in the middle")
        calls = tuple(_told_apart(self._calls))
        finish = _FINISHES.get(self.finish, "other")
        if calls and finish == "stop":  # as some services have it
            finish = "tool_calls"
        return Answer(_plain(self.text), calls, _plain(self.reasoning), finish, usage)

    def _take_call(self, place: int, part: Any) -> None:
        begun = [call for call in self._calls if call.place == place][-1:]
        other = begun and part.id and begun[0].id and part.id != begun[0].id
        if not begun or other:  # some services count every call as the first
            begun = [_Call(place)]
            self._calls += begun
        begun[0].add(part)


def vectors_of(data: Sequence[Any], count: int) -> list[list[float]]:
    """Return embeddings in the order of their texts.

    Raises:
        BrokenAnswer: they aren't as many as the texts, or not of one length.
    """
    ordered = sorted(data, key=lambda item: int(item["index"]))
    vectors = [[float(number) for number in item["embedding"]] for item in ordered]
    if len(vectors) != count or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise BrokenAnswer(f"{count} texts were sent, and not as many vectors of one length came back")
    return vectors


def _told_apart(calls: Iterable[_Call]) -> Iterable[ToolCall]:
    """Give calls ids by which their results can be told apart, where the service doesn't."""
    seen: set[str] = set()
    for number, call in enumerate(calls):
        name = _plain(call.id)
        name = name if name and name not in seen else f"{name or 'call'}_{number}"
        seen.add(name)
        yield ToolCall(name, _plain(call.name), _plain(call.arguments))


def _content(raw: str) -> str | None:
    """Return the text of an answer in OpenAI's format as it came; None for another format."""
    try:
        content = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        return None
    return content if isinstance(content, str) else None


def _plain(text: str) -> str:
    """Replace halves of characters, which a model can write as JSON but nobody can encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
