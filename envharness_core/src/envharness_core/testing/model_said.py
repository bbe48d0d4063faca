"""What a scripted model says, and how OpenAI's wire format writes it: in one piece, or as a stream."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TypeAlias, cast

from attrs import field, frozen

from envharness_core.jsondata import Json, JsonObject, digest
from envharness_core.testing.model_faults import Fault

Calls: TypeAlias = tuple[tuple[str, str], ...]
"""Tool calls: a name, and the text of the arguments as the model wrote it."""


def _pairs(calls: Sequence[tuple[str, str]]) -> Calls:
    return tuple((name, arguments) for name, arguments in calls)


@frozen
class Said:
    """One answer of a scripted model.

    Args:
        text: the content; None sends null.
        calls: tool calls. Arguments are raw text, so that malformed ones can be sent.
        finish: the finish reason; where it is None, ``tool_calls`` where there are any, else ``stop``.
        reasoning: sent as ``reasoning_content``.
        input_tokens: the request's tokens; where it is None, its words.
        output_tokens: the answer's tokens, the reasoning's among them; where it is None, their words.
        cached_tokens: how many of the request's tokens came from a cache.
    """

    text: str | None = ""
    calls: Calls = field(default=(), converter=_pairs)
    finish: str | None = None
    reasoning: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0

    def message(self, body: JsonObject) -> JsonObject:
        """Return the assistant's message."""
        message: JsonObject = {"role": "assistant", "content": None if self.calls else self.text}
        if self.text:
            message["content"] = self.text
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [_call(body, index, *call) for index, call in enumerate(self.calls)]
        return message

    def usage(self, body: JsonObject) -> JsonObject:
        """Return the tokens of the request and of the answer."""
        thought = words(self.reasoning or "")
        said = [self.text or "", *(part for call in self.calls for part in call)]
        read = request_words(body) if self.input_tokens is None else self.input_tokens
        wrote = thought + sum(map(words, said)) if self.output_tokens is None else self.output_tokens
        return {
            "prompt_tokens": read,
            "completion_tokens": wrote,
            "total_tokens": read + wrote,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": min(thought, wrote)},
        }

    @property
    def finish_reason(self) -> str:
        """Why the answer ends."""
        return self.finish or ("tool_calls" if self.calls else "stop")


Brain: TypeAlias = Callable[[JsonObject], Said | Fault]
"""What decides: it gets the body of a chat request and returns an answer, or an error. Called by many threads."""


def echo(body: JsonObject) -> Said:
    """Say what the last message says."""
    content = cast("list[JsonObject]", body["messages"])[-1].get("content")
    return Said(" ".join(_texts(content)))


def script(*said: Said | Fault) -> Brain:
    """Return a brain that answers in this order, whoever asks; after the last, every request is refused with 400."""
    answers, lock = iter(said), Lock()

    def brain(_: JsonObject) -> Said | Fault:
        with lock:
            over = f"The script has ended: it holds {len(said)} answers, and this request asks for another."
            return next(answers, Fault.bad_request(over, code="script_ended"))

    return brain


def words(text: str) -> int:
    """Count the words of a text, which stand for its tokens."""
    return len(text.split())


def request_words(body: JsonObject) -> int:
    """Count the words of a chat request: what its messages and calls say, and the descriptions of its tools."""
    return sum(words(text) for part in ("messages", "tools") for text in _texts(body.get(part)))


def completion(body: JsonObject, said: Said) -> bytes:
    """Write an answer in one piece."""
    choice: JsonObject = {
        "index": 0,
        "message": said.message(body),
        "logprobs": None,
        "finish_reason": said.finish_reason,
    }
    whole = {**_head(body, "chat.completion"), "choices": [choice], "usage": said.usage(body)}
    return json.dumps(whole, ensure_ascii=False).encode()


def events(body: JsonObject, said: Said) -> list[bytes]:
    """Write an answer as server-sent events; the last says ``[DONE]``."""
    head = _head(body, "chat.completion.chunk")
    options = body.get("stream_options")
    counted = isinstance(options, dict) and options.get("include_usage") is True
    head |= {"usage": None} if counted else {}
    out = [_event(head, delta, None) for delta in _deltas(body, said)]
    out.append(_event(head, {}, said.finish_reason))
    if counted:
        out.append(event(json.dumps(head | {"choices": [], "usage": said.usage(body)})))
    return [*out, event("[DONE]")]


def event(data: str) -> bytes:
    """Write one server-sent event."""
    return f"data: {data}\n\n".encode()


def _event(head: JsonObject, delta: JsonObject, finish: str | None) -> bytes:
    choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event(json.dumps(head | {"choices": [choice]}, ensure_ascii=False))


def _deltas(body: JsonObject, said: Said) -> Iterator[JsonObject]:
    message = said.message(body)
    yield {"role": "assistant", "content": None if message["content"] is None else ""}
    for piece in _pieces(said.reasoning or ""):
        yield {"reasoning_content": piece}
    for piece in _pieces(said.text or ""):
        yield {"content": piece}
    for index, (name, arguments) in enumerate(said.calls):
        begun = cast("dict[str, Json]", _call(body, index, name, ""))
        yield {"tool_calls": [{"index": index, **begun}]}
        for piece in _pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(body: JsonObject, index: int, name: str, arguments: str) -> Json:
    """Write a call; its id comes from the conversation so far, so that no two in one are equal."""
    function: JsonObject = {"name": name, "arguments": arguments}
    return {"id": f"call_{digest(body)[:20]}{index:02}", "type": "function", "function": function}


def _head(body: JsonObject, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{digest(body)}",
        "object": kind,
        "created": int(time.time()),
        "model": body["model"],
        "system_fingerprint": None,
    }


_PIECE, _PIECES = 7, 20  # characters at least, so that words and tags are torn; pieces at most


def _pieces(text: str) -> Iterator[str]:
    size = max(_PIECE, math.ceil(len(text) / _PIECES))
    return (text[start : start + size] for start in range(0, len(text), size))


_READ = ("content", "text", "arguments", "description")


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts that a model reads in a part of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _READ or not isinstance(item, str):
                yield from _texts(item)
