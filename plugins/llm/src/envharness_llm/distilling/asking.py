"""Asking a model what is worth remembering, until an answer can be used or often enough."""

from __future__ import annotations

from attrs import evolve

from envharness_core.errors import ContextError, PluginError
from envharness_core.session import Charge
from envharness_core.warn import note, warn
from envharness_llm.designing.pages import clipped
from envharness_llm.distilling.items import Found, Item, read_items
from envharness_llm.messages import Answer, Message, Request
from envharness_llm.model import Model
from envharness_llm.parsing import outside_reasoning, said

_ECHO = 4000  # characters of an answer that are repeated to the model
_CUT_TWICE = "it was cut off twice, so that asking again is no use; raise extractor.max_tokens"
_GROWN = "the conversation has outgrown the model's context"


def ask(model: Model, request: Request, *, reasks: int, charge: Charge) -> tuple[Item, ...]:
    """Return the complete items of the first answer that can be used; none, with a warning, where there is none.

    An answer that can't be used is asked for again, with the reason; one that was cut off only once.

    Raises:
        PluginError: the prompt doesn't fit into the model.
        ProviderError: the model's service failed.
    """
    problem, cuts = "", 0
    for number in range(reasks + 1):
        answer = _asked(model, evolve(request, number=number), charge)
        if answer is None:
            problem = _GROWN
            break
        found = read_items(answer)
        _report(found, request, number)
        if not found.problem:
            return found.items
        problem, cuts = found.problem, cuts + found.cut
        if cuts > 1:
            problem = _CUT_TWICE
            break
        request = evolve(request, messages=(*request.messages, *_again(answer, problem)))
    warn("extractor_learnt_nothing", model=request.params.model, problem=problem[:300])
    return ()


def _asked(model: Model, request: Request, charge: Charge) -> Answer | None:
    """Ask once; None where what was said since the first time doesn't fit any more."""
    try:
        answer = model.ask(request)
    except ContextError as error:
        if request.number:
            return None
        raise PluginError(
            f"the extractor's prompt doesn't fit into {request.params.model}: {error}; "
            "lower extractor.evidence_tokens, or take a model with more context"
        ) from error
    charge("extractor", answer.usage)
    return answer


def _report(found: Found, request: Request, number: int) -> None:
    for reason in found.dropped:
        note("extractor_item_dropped", model=request.params.model, reason=reason)
    if found.problem:
        note(
            "extractor_answer_unusable",
            model=request.params.model,
            number=number,
            problem=found.problem[:300],
        )


def _again(answer: Answer, problem: str) -> tuple[Message, ...]:
    """Return an answer and what was wrong with it, as the conversation goes on.

    Calls are repeated as text, since services may refuse to be shown a broken one; of what was cut off nothing is.
    """
    told = Message("user", f"That can't be used: {problem}.")
    spoken, _ = outside_reasoning(said(answer))
    if answer.finish in ("length", "filtered") or not spoken.strip():
        return (told,)
    return Message("assistant", clipped(spoken.strip(), _ECHO)), told
