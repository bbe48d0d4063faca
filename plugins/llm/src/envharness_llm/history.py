"""What a model is shown of an episode so far: always a valid chat, cut by whole exchanges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from attrs import evolve, field, frozen

from envharness_llm.messages import Message, ToolCall
from envharness_llm.parsing import read_json

_EMPTY = "(empty)"  # services refuse messages that say nothing
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_BYTES = 3  # a token, by a cautious estimate: English has about 4 a token, code and other scripts fewer
_MESSAGE = 8  # tokens that a message costs beyond its text, by the same estimate


@frozen
class Exchange:
    """A reply and what came of it.

    Args:
        said: the assistant's message.
        results: of its calls, one for one, in order; or one text at least where it holds no calls.
    """

    said: Message
    results: tuple[str, ...] = field()

    @results.validator
    def _answers_each_call(self, _: object, results: tuple[str, ...]) -> None:
        if not results or (self.said.calls and len(results) != len(self.said.calls)):
            raise ValueError(f"{len(results)} results for {len(self.said.calls)} calls")

    def messages(self) -> tuple[Message, ...]:
        """Return the reply, followed by a message for each of its calls, or by one that holds all results."""
        if not self.said.calls:
            return self.said, Message("user", _sendable("\n\n".join(self.results)))
        pairs = zip(self.said.calls, self.results, strict=True)
        return self.said, *(Message("tool", _sendable(text), call_id=call.id) for call, text in pairs)


class History:
    """The conversation of an episode: system prompt, task, and exchanges, of which the oldest are left out first.

    Args:
        system: the system prompt.
        task: the first message to the model, which is always shown.
        window: how many exchanges are shown, at least 1; None for all.
        tokens: what the whole may take by a rough estimate; the last exchange is shown all the same. None for no limit.
    """

    def __init__(self, system: str, task: str, window: int | None = None, tokens: int | None = None) -> None:
        self._system = Message("system", _sendable(system))
        self._task = Message("user", _sendable(task))
        self._window = window
        self._tokens = tokens
        self._exchanges: list[Exchange] = []
        self._ids: set[str] = set()

    def said(self, text: str, calls: Sequence[ToolCall] = ()) -> Message:
        """Return a reply as services take it back: ids that are new, names and arguments that are well formed."""
        spoken = "" if calls and not text.strip() else _sendable(text)
        return Message("assistant", spoken, tuple(map(self._numbered, calls)))

    def add(self, exchange: Exchange) -> None:
        """Remember an exchange whose message ``said`` made."""
        self._exchanges.append(exchange)

    def messages(self) -> tuple[Message, ...]:
        """Return what to show; where exchanges are left out, the first message to the model says how many."""
        shown = self._shown()
        left_out = len(self._exchanges) - len(shown)
        task = self._task
        if left_out:
            task = evolve(
                task, text=f"{task.text}\n\n[Earlier replies and results left out here: {left_out}]"
            )
        return self._system, task, *(message for exchange in shown for message in exchange.messages())

    def _shown(self) -> list[Exchange]:
        windowed = self._exchanges if self._window is None else self._exchanges[-self._window :]
        if self._tokens is None:
            return windowed
        left = self._tokens - _estimated((self._system, self._task))
        shown: list[Exchange] = []
        for exchange in reversed(windowed):
            left -= _estimated(exchange.messages())
            if shown and left < 0:
                break
            shown.append(exchange)
        return shown[::-1]

    def _numbered(self, call: ToolCall) -> ToolCall:
        """Return a call with an id that no other has; a service's own is kept, since some hide a state in it."""
        own = (
            f"call{number:05}" for number in count(len(self._ids))
        )  # nine letters and digits: every service's
        given = _encodable(call.id)
        new = given if given and given not in self._ids else next(i for i in own if i not in self._ids)
        self._ids.add(new)
        return ToolCall(new, _NAME.sub("_", call.name)[:64] or "_", _object(_encodable(call.arguments)))


def _sendable(text: str) -> str:
    return _encodable(text) if text.strip() else _EMPTY


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _object(arguments: str) -> str:
    """Return arguments as they were written where they are an object, else an empty one: services parse them."""
    try:
        return arguments if isinstance(read_json(arguments), dict) else "{}"
    except ValueError:
        return "{}"


def _estimated(messages: Sequence[Message]) -> int:
    texts = [
        text for message in messages for text in (message.text, *[call.arguments for call in message.calls])
    ]
    return sum(len(text.encode()) // _BYTES for text in texts) + _MESSAGE * len(messages)
