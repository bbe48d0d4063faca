"""What a service reads: requests checked as strictly as OpenAI's services do, and embeddings of texts."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeGuard, cast

from envharness_core.errors import DataError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.testing.model_faults import Fault, Refused
from envharness_core.testing.model_said import words

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = ("system", "developer", "user", "assistant", "tool")
_BATCH, _WIDTH, _WIDEST = 2048, 256, 4096


def parse(raw: bytes) -> JsonObject:
    """Return the object that a request's body holds.

    Raises:
        Refused: it isn't a strict JSON object.
    """
    try:
        return copy_object(json.loads(raw), "body")
    except (ValueError, RecursionError, DataError) as error:
        _refuse(None, f"The body of the request isn't a JSON object: {error}")


def check_chat(body: JsonObject) -> None:
    """Refuse a chat request that OpenAI's services refuse.

    Raises:
        Refused: names the field.
    """
    _check_model(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        _refuse("messages", "'messages' must be a list of at least one message.")
    for index, message in enumerate(messages):
        _check_message(f"messages[{index}]", message)
    _check_pairs(cast("list[JsonObject]", messages))
    _check_tools(body)
    for name, (holds, wanted) in _NUMBERS.items():
        value = body.get(name)
        if value is not None and not holds(value):
            _refuse(name, f"'{name}' must be {wanted}.")


def embed(body: JsonObject) -> bytes:
    """Answer an embeddings request: hashed words, signed, of length 1; equal texts give equal vectors.

    Raises:
        Refused: names the field.
    """
    _check_model(body)
    texts = _inputs(body.get("input"))
    width = body.get("dimensions", _WIDTH)
    if not _is_whole(width) or not 1 <= width <= _WIDEST:
        _refuse("dimensions", f"'dimensions' must be a whole number from 1 to {_WIDEST}.")
    form = body.get("encoding_format", "float")
    if form not in ("float", "base64"):
        _refuse("encoding_format", "'encoding_format' must be 'float' or 'base64'.")
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": _written(vector(text, width), form)}
        for index, text in enumerate(texts)
    ]
    read = sum(map(words, texts))
    usage: JsonObject = {"prompt_tokens": read, "total_tokens": read}
    return json.dumps({"object": "list", "data": data, "model": body["model"], "usage": usage}).encode()


def vector(text: str, width: int) -> list[float]:
    """Return the embedding of a text, in 32-bit floats."""
    sums = [0.0] * width
    for word in re.findall(r"\w+", text.lower()) or [text]:
        hashed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
        sums[(hashed >> 1) % width] += 1.0 if hashed & 1 else -1.0
    length = math.hypot(*sums)
    if not length:  # words that took each other away
        return [1.0] + [0.0] * (width - 1)
    return list(struct.unpack(f"<{width}f", struct.pack(f"<{width}f", *(each / length for each in sums))))


def _written(values: list[float], form: Json) -> Json:
    if form == "base64":
        return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    return [*values]


def _inputs(value: Json) -> list[str]:
    given = value if isinstance(value, list) else [value]
    texts = [item for item in given if isinstance(item, str) and item]
    if not texts or len(texts) != len(given) or len(texts) > _BATCH:
        _refuse("input", f"'input' must be a text, or a list of 1 to {_BATCH} texts, none of them empty.")
    return texts


def _check_model(body: JsonObject) -> None:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        _refuse("model", "'model' must be the name of a model.")


def _check_message(place: str, message: Json) -> None:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        _refuse(place, f"'{place}' must be an object with a role, one of {', '.join(_ROLES)}.")
    content, role, calls = message.get("content"), message["role"], message.get("tool_calls")
    if calls is not None and (role != "assistant" or not isinstance(calls, list) or not calls):
        _refuse(place, f"'{place}.tool_calls' must be a list of at least one call, of an assistant.")
    for index, call in enumerate(calls or ()):
        _check_call(f"{place}.tool_calls[{index}]", call)
    if not isinstance(content, str | list) and not (content is None and calls):
        _refuse(place, f"'{place}.content' must be a text or a list of parts.")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        _refuse(place, f"'{place}.tool_call_id' must be the id of the call that it answers.")


def _check_call(place: str, call: Json) -> None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not isinstance(function, dict):
        _refuse(place, f"'{place}' must have an id and a function.")
    if not _is_name(function.get("name")) or not isinstance(function.get("arguments"), str):
        _refuse(place, f"'{place}.function' must have a name of {_NAME.pattern} and arguments as text.")


def _check_pairs(messages: list[JsonObject]) -> None:
    """Refuse a call without its result, and a result without its call: a history that was cut badly."""
    waiting: list[Json] = []
    end: JsonObject = {"role": "end"}
    for index, message in enumerate([*messages, end]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                _refuse(
                    f"messages[{index}]", "A tool message must follow an assistant's message with its call."
                )
            waiting.remove(message["tool_call_id"])
        elif waiting:
            _refuse(f"messages[{index}]", f"Tool messages must answer each tool_call_id; missing: {waiting}.")
        waiting += [call["id"] for call in cast("list[JsonObject]", message.get("tool_calls") or [])]


def _check_tools(body: JsonObject) -> None:
    tools = body.get("tools")
    if tools is None:
        if body.get("tool_choice") not in (None, "none"):
            _refuse("tool_choice", "'tool_choice' is only allowed with 'tools'.")
        return
    if not isinstance(tools, list) or not tools:
        _refuse("tools", "'tools' must be a list of at least one tool.")
    names = [_tool_name(f"tools[{index}]", tool) for index, tool in enumerate(tools)]
    choice = body.get("tool_choice")
    named = choice.get("function") if isinstance(choice, dict) else None
    if choice in (None, "none", "auto", "required") or (
        isinstance(named, dict) and named.get("name") in names
    ):
        return
    _refuse("tool_choice", "'tool_choice' must be none, auto, required, or the function of one of the tools.")


def _tool_name(place: str, tool: Json) -> str:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    if not isinstance(function, dict):
        _refuse(place, f"'{place}' must be of type function and have one.")
    name, parameters = function.get("name"), function.get("parameters", {"type": "object"})
    if not _is_name(name):
        _refuse(f"{place}.function.name", f"'{place}.function.name' must match {_NAME.pattern}.")
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        _refuse(
            f"{place}.function.parameters", f"'{place}.function.parameters' must be a schema of type object."
        )
    return name


def _is_name(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_whole(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_positive(value: Json) -> bool:
    return _is_whole(value) and value > 0


def _between(low: float, high: float) -> Callable[[Json], bool]:
    return lambda value: (
        (isinstance(value, float) or _is_whole(value)) and low <= cast("float", value) <= high
    )


_NUMBERS: Mapping[str, tuple[Callable[[Json], bool], str]] = {
    "max_completion_tokens": (_is_positive, "a whole number from 1"),
    "max_tokens": (_is_positive, "a whole number from 1"),
    "n": (lambda value: value == 1, "1: this server gives one answer to a request"),
    "seed": (_is_whole, "a whole number"),
    "stream": (lambda value: isinstance(value, bool), "true or false"),
    "temperature": (_between(0, 2), "a number from 0 to 2"),
    "top_p": (_between(0, 1), "a number from 0 to 1"),
}


def _refuse(param: str | None, message: str) -> NoReturn:
    raise Refused(Fault.bad_request(message, param=param)) from None
