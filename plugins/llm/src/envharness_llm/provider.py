"""litellm, and all that is known of it: the only module of the project that imports it, when a model is first asked.

How much a model should reason is said by litellm's ``reasoning_effort``: ``low``, ``medium`` and ``high`` as they
are, ``off`` as ``none``. litellm translates it for each provider, and leaves it out where a model can't reason.
OpenAI's models that always reason refuse ``none``; for those nothing is said, and they reason as they like.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar

from attrs import frozen

from envharness_core import waiting
from envharness_core.jsondata import Json, JsonObject, digest
from envharness_core.redaction import REDACTED, redact_text
from envharness_llm.backoff import counts_by_minute, named_wait
from envharness_llm.failure import Failure, kind_of
from envharness_llm.heard import BrokenAnswer, Heard, vectors_of
from envharness_llm.keys import Key
from envharness_llm.messages import Answer, Message, Request
from envharness_llm.settings import Price, Settings

T = TypeVar("T")

_IMPORTING = Lock()
_ITS_WARNINGS = (
    r".*`ReadOnly` qualifier",
    r"Accessing the .* attribute on the instance is deprecated",
    r"Pydantic serializer warnings",
)
_SHOWN = 600  # characters of what a service said that an error shows
_CLASSES = re.compile(r"(?:[\w.]*(?:Error|Exception): |\w+Exception - )*")


@frozen
class Provider:
    """Asks services through litellm, once each: it neither waits nor repeats.

    Args:
        settings: time limits, prices, and whether to stream.
    """

    settings: Settings

    def complete(self, request: Request, key: Key) -> Answer | Failure:
        """Ask a model for the next message of a conversation."""

        def ask(litellm: ModuleType) -> Answer:
            arguments = self._common(request.params.model, key) | _asked(litellm, request)
            heard = (_streamed if self.settings.stream else _whole)(litellm, arguments, self.settings.timeout)
            return heard.answer(self._usage(litellm, request.params.model, heard.usage, "completion"))

        return _tried(ask, key)

    def embed(
        self, model: str, texts: Sequence[str], key: Key
    ) -> tuple[list[list[float]], JsonObject] | Failure:
        """Ask a model for the vectors of some texts, in order."""

        def ask(litellm: ModuleType) -> tuple[list[list[float]], JsonObject]:
            arguments = self._common(model, key)
            # Services refuse an empty text, so a blank stands for it.
            answer = litellm.embedding(
                input=[text or " " for text in texts], encoding_format="float", **arguments
            )
            vectors = vectors_of(answer.data or [], len(texts))
            return vectors, self._usage(litellm, model, getattr(answer, "usage", None), "embedding")

        return _tried(ask, key)

    def _common(self, model: str, key: Key) -> dict[str, Any]:
        return {
            "model": model,
            "api_base": key.api_base,
            "api_key": key.secret,
            "timeout": self.settings.timeout,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }

    def _usage(self, litellm: ModuleType, model: str, reported: Any, kind: str) -> JsonObject:
        """Count what a call used; litellm estimates the tokens of a service that doesn't report them."""
        usage: JsonObject = {"calls": 1, "input_tokens": _count(reported, "prompt_tokens")}
        if kind == "completion":
            usage["output_tokens"] = _count(reported, "completion_tokens")
        for name, group, part in (
            ("cached_tokens", "prompt_tokens_details", "cached_tokens"),
            ("reasoning_tokens", "completion_tokens_details", "reasoning_tokens"),
        ):
            if count := _count(getattr(reported, group, None), part):
                usage[name] = count
        cost = self._cost(litellm, model, reported, kind)
        return usage | ({"unpriced_calls": 1} if cost is None else {"cost_usd": cost})

    def _cost(self, litellm: ModuleType, model: str, reported: Any, kind: str) -> float | None:
        given, said = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
        price = self.settings.prices.get(model)
        if price is not None:
            return _priced(price, given, said)
        if not given and not said:
            return None
        try:
            parts = litellm.cost_per_token(model=model, usage_object=reported, call_type=kind)
        except Exception:  # noqa: BLE001 - a model that its table doesn't hold, however it says so
            return None
        return float(sum(parts))


def _priced(price: Price, given: int, said: int) -> float:
    return (given * price.input + said * price.output) / 1e6


def _tried(ask: Callable[[ModuleType], T], key: Key) -> T | Failure:
    try:
        return ask(_litellm())
    except Exception as error:  # noqa: BLE001 - whatever a library of a hundred services raises
        return _failure(error, key)


def _litellm() -> ModuleType:
    """Import litellm without its calls home, its hints on the terminal and its reading of .env files."""
    with waiting(), _IMPORTING:  # which takes seconds that aren't the policy's
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        import litellm

        if litellm.client_session is None:
            litellm.suppress_debug_info = True
            litellm.telemetry = False
            logging.getLogger("LiteLLM").setLevel(logging.ERROR)
            litellm.client_session = _connections(litellm)
        _let_pass()
        return litellm


def _connections(litellm: ModuleType) -> Any:
    """Make the connections that all calls share: of those that litellm makes itself, threads lose some unclosed."""
    from litellm.llms.custom_httpx.http_handler import get_ssl_configuration

    limits = litellm.httpx.Limits(max_connections=None, max_keepalive_connections=100)
    client = litellm.httpx.Client(verify=get_ssl_configuration(), follow_redirects=True, limits=limits)
    atexit.register(client.close)
    return client


def _let_pass() -> None:
    """Let litellm use pydantic as it does: the filters that it sets when imported go when somebody resets them.

    They are set for the whole process, as litellm does, since a context of filters is shared by all threads.
    """
    known = {pattern.pattern for _, pattern, *_ in warnings.filters if isinstance(pattern, re.Pattern)}
    for message in _ITS_WARNINGS:
        if message not in known:
            warnings.filterwarnings("ignore", message=message)


def _asked(litellm: ModuleType, request: Request) -> dict[str, Any]:
    params = request.params
    arguments: dict[str, Any] = {
        "messages": [_message(message) for message in request.messages],
        "seed": _seed(request),
        "temperature": params.temperature,
        "max_tokens": params.max_tokens,
        "reasoning_effort": _effort(litellm, request),
    }
    if request.tools:
        arguments["tools"] = [{"type": "function", "function": dict(tool)} for tool in request.tools]
        arguments["tool_choice"] = "required" if request.must_call else None
    return {name: value for name, value in arguments.items() if value is not None}


def _seed(request: Request) -> int:
    """Return 31 bits, as services take them; whoever says the same words once more wants another answer."""
    return int(digest([str(request.seed), request.number])[:8], 16) >> 1


def _effort(litellm: ModuleType, request: Request) -> str | None:
    model, reasoning = request.params.model, request.params.reasoning
    if reasoning != "off":
        return reasoning
    provider, _, name = model.rpartition("/")
    known = litellm.model_cost.get(name, {}) if provider in ("", "openai", "azure") else {}
    always = known.get("supports_reasoning") and not known.get("supports_none_reasoning_effort")
    return None if always else "none"


def _message(message: Message) -> dict[str, Json]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls: list[Json] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}


def _whole(litellm: ModuleType, arguments: dict[str, Any], _: float) -> Heard:
    raw: list[str] = []

    def show(details: Mapping[str, object]) -> None:
        response = details.get("original_response")
        if details.get("log_event_type") == "post_api_call" and isinstance(response, str):
            raw.append(response)

    heard = Heard()
    response = litellm.completion(**arguments, logger_fn=show)
    heard.take_whole(response, raw[0] if raw else None)
    return heard


def _streamed(litellm: ModuleType, arguments: dict[str, Any], timeout: float) -> Heard:
    until = time.monotonic() + timeout
    stream = litellm.completion(**arguments, stream=True, stream_options={"include_usage": True})
    heard = Heard()
    try:
        for chunk in stream:
            heard.take_piece(chunk)
            if time.monotonic() > until:
                raise BrokenAnswer(f"the answer took longer than {timeout:g} s")
        if not stream.received_finish_reason:  # where none came, litellm makes one up
            heard.finish = None
        reported = [chunk.usage for chunk in stream.chunks if getattr(chunk, "usage", None) is not None]
        heard.usage = reported[-1] if reported else heard.usage  # what came, not what litellm makes of it
    finally:
        getattr(stream, "close", lambda: None)()  # which older ones leave to the garbage collector
    return heard


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if type(value) is int and value > 0 else 0


def _failure(error: Exception, key: Key) -> Failure:
    """Read what litellm raises, which names the same thing by class, by status or by words."""
    inner = getattr(error, "original_exception", None)  # of a stream that broke off
    error = inner if isinstance(inner, Exception) else error
    names = {cls.__name__ for cls in type(error).__mro__}
    body = getattr(error, "body", None)
    body = body if isinstance(body, dict) else {}
    words = str(body.get("message") or error)
    code = str(body.get("code") or body.get("type") or "")
    if "ContextWindowExceededError" in names:
        code = "context_length_exceeded"
    status = getattr(error, "status_code", None)
    status = status if type(status) is int else None
    headers = _headers(error)
    return Failure(
        kind_of(status, code, words, policy="ContentPolicyViolationError" in names),
        _shown(words, key),
        status if headers else None,  # litellm makes one up where nothing answered
        named_wait(headers, words, time.time()),
        counts_by_minute(headers, words),
    )


def _headers(error: Exception) -> Mapping[str, str]:
    for holder, name in ((getattr(error, "response", None), "headers"), (error, "litellm_response_headers")):
        headers = getattr(holder, name, None)
        if headers:
            return {str(header): str(value) for header, value in dict(headers).items()}
    return {}


def _shown(words: str, key: Key) -> str:
    """Return what was said without litellm's own class names, and without the key, which some services repeat."""
    words = _CLASSES.sub("", words, count=1)
    if key.variable and key.secret:
        words = words.replace(key.secret, REDACTED)
    words = " ".join(redact_text(words).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."
