"""Asking a model until an answer can be used, or often enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog
from attrs import evolve

from envharness_core.errors import ContextError, PluginError
from envharness_core.jsondata import JsonObject
from envharness_core.session import Charge
from envharness_llm.designing.answers import UnusableError, is_object, read_call
from envharness_llm.designing.pages import clipped
from envharness_llm.messages import Answer, Message, Request
from envharness_llm.model import Model

_log = structlog.get_logger()

_ECHO = 4000  # characters of an answer that are repeated to the model

T = TypeVar("T")


def ask(
    model: Model, request: Request, read: Callable[[str, JsonObject], T], *, reasks: int, charge: Charge
) -> T:
    """Return what ``read`` makes of the name and arguments of the call that a model answers with.

    An answer that can't be used is asked for again, with the reason.

    Raises:
        UnusableError: no answer could be used.
        PluginError: the conversation doesn't fit into the model.
        ProviderError: the model's service failed.
    """
    problem = ""
    for number in range(reasks + 1):
        answer = _asked(model, evolve(request, number=number), charge)
        try:
            return read(*read_call(answer, request.tools))
        except UnusableError as error:
            problem = str(error)
        _log.info(
            "designer_answer_unusable", model=request.params.model, number=number, problem=problem[:300]
        )
        request = evolve(request, messages=(*request.messages, *_again(answer, request, problem)))
    raise UnusableError(f"no usable answer in {reasks + 1} tries, the last: {problem}")


def _asked(model: Model, request: Request, charge: Charge) -> Answer:
    try:
        answer = model.ask(request)
    except ContextError as error:
        raise PluginError(
            f"the designer's prompt doesn't fit into {request.params.model}: {error}; "
            "lower designer.evidence_tokens, or take a model with more context"
        ) from error
    charge("designer", answer.usage)
    return answer


def _again(answer: Answer, request: Request, problem: str) -> tuple[Message, ...]:
    """Return an answer and what was wrong with it, as the conversation goes on.

    A call that services may refuse to be shown again is repeated as text; of what was cut off nothing is.
    """
    told = f"That can't be used: {problem}."
    if answer.finish in ("length", "filtered") or not (answer.text.strip() or answer.calls):
        return (Message("user", told),)
    names = {tool["name"] for tool in request.tools}
    if answer.calls and all(
        call.id and call.name in names and is_object(call.arguments) for call in answer.calls
    ):
        results = [Message("tool", told, call_id=call.id) for call in answer.calls]
        return (Message("assistant", answer.text, answer.calls), *results)
    calls = [f"{call.name}: {call.arguments}" for call in answer.calls]
    said = "\n".join(part for part in (answer.text.strip(), *calls) if part)
    return (Message("assistant", clipped(said, _ECHO)), Message("user", told))
