"""The designer that asks a language model: it diagnoses, writes layers and refines them, and fails closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import structlog
from attrs import Factory, field, frozen, validators

from envharness_core import Attempt, Candidate, Decision, Designer, Diagnosis, Evidence
from envharness_core.errors import PluginError
from envharness_core.jsondata import JsonObject
from envharness_core.seeds import derive
from envharness_llm.asks_model import AsksModel
from envharness_llm.designing import answers
from envharness_llm.designing.asking import ask
from envharness_llm.designing.brief import Brief, as_text
from envharness_llm.designing.texts import texts_of
from envharness_llm.messages import Message, Params, Reasoning, Request
from envharness_llm.model import Model

_log = structlog.get_logger()

T = TypeVar("T")

_VARIED: float | None = 1.0
_PLACEHOLDER = "(made up, to show the prompt: no model has been asked for a diagnosis)"


def _are_texts(_: object, __: object, prompts: dict[str, str]) -> None:
    texts_of(prompts).check()


@frozen
class DesignerConfig:
    """Which model designs, and what it is told.

    Args:
        model: as litellm names it, such as ``openai/gpt-4o``.
        temperature: from 0 to 2; None leaves it to the model. 1 because attempts have to differ, a candidate that
            comes twice being lost, and because models that reason take nothing else.
        max_tokens: tokens of an answer at most; None leaves it to the model. What is cut off there doesn't count.
        reasoning: how much a model that can reason should.
        evidence_tokens: what rollouts may take of a prompt, at about 4 characters a token, from 500 on; long texts are
            clipped in the middle, and rollouts that don't fit are left out and counted.
        reasks: how often an answer that can't be used is asked for again, 0 to 10.
        weakness: a sentence to design against, at most 1,000 characters; the objective's words stay.
        review: whether the model reads what the gate would accept, and may be stricter.
        prompts: texts instead of the packaged ones: ``system``, ``diagnose``, ``propose``, ``review``, ``layers``,
            ``rules``, ``band``, ``autonomous`` and ``weakness``, with placeholders such as ``${situation}``.
    """

    model: str = field(validator=validators.min_len(1))
    temperature: float | None = field(
        default=_VARIED,
        validator=validators.optional(validators.and_(validators.ge(0.0), validators.le(2.0))),
    )
    max_tokens: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    reasoning: Reasoning | None = None
    evidence_tokens: int = field(default=24_000, validator=[validators.ge(500), validators.le(10_000_000)])
    reasks: int = field(default=2, validator=[validators.ge(0), validators.le(10)])
    weakness: str = field(default="", validator=validators.max_len(1000))
    review: bool = False
    prompts: dict[str, str] = field(default=Factory(dict), validator=_are_texts)


class ModelDesigner(AsksModel[Model], Designer[DesignerConfig]):
    """Has a model diagnose and write candidates.

    A diagnosis that can't be had costs the task, a proposal the attempt, and a review that can't be had rejects: what
    a model didn't say clearly is never taken for consent.

    Args:
        config: which model, and what it is told.
        model: what answers instead of the client of the session that the designer is attached to.
    """

    waits = True

    def __init__(self, config: DesignerConfig, model: Model | None = None) -> None:
        super().__init__(config)
        self._model = model
        self._brief = Brief(texts_of(config.prompts), config.evidence_tokens, config.weakness)
        self._params = Params(config.model, config.temperature, config.max_tokens, config.reasoning)

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        request = self._request(
            self._brief.diagnose(evidence), answers.diagnose_tools(), derive("diagnose", evidence.seed)
        )
        try:
            return self._ask(request, lambda _, arguments: answers.read_diagnosis(arguments))
        except answers.UnusableError as error:
            raise PluginError(f"no diagnosis from {self.config.model}: {error}") from error

    def propose(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]
    ) -> Candidate | None:
        def read(name: str, arguments: JsonObject) -> Candidate | None:
            if name == "give_up":
                _log.info("designer_gave_up", task=evidence.task.id, reason=str(arguments["reason"])[:300])
                return None
            return answers.read_candidate(arguments, evidence.layers, history)

        request = self._request(
            self._brief.propose(evidence, diagnosis, history),
            answers.propose_tools(evidence.layers),
            derive("propose", evidence.seed, len(history)),
        )
        try:
            return self._ask(request, read)
        except answers.UnusableError as error:
            return Candidate((), f"no candidate from {self.config.model}: {error}")

    def review(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt], attempt: Attempt
    ) -> Decision:
        if not self.config.review:
            return Decision.ACCEPT
        looks = (len(history), len(attempt.episodes), len(attempt.confirmation))
        request = self._request(
            self._brief.review(evidence, diagnosis, history, attempt),
            answers.review_tools(),
            derive("review", evidence.seed, *looks),
        )
        try:
            return self._ask(request, lambda _, arguments: answers.read_review(arguments))
        except answers.UnusableError:
            return Decision.REJECT

    def show(self, evidence: Evidence, stage: Literal["diagnose", "propose"]) -> str:
        if stage == "diagnose":
            return as_text(self._brief.diagnose(evidence), answers.diagnose_tools())
        diagnosis = Diagnosis(_PLACEHOLDER, _PLACEHOLDER, "harden")
        return as_text(self._brief.propose(evidence, diagnosis, ()), answers.propose_tools(evidence.layers))

    def _request(self, messages: tuple[Message, ...], tools: tuple[JsonObject, ...], seed: int) -> Request:
        return Request(self._params, messages, "designer", seed, tools=tools, must_call=True)

    def _ask(self, request: Request, read: Callable[[str, JsonObject], T]) -> T:
        if self._model is None:
            raise PluginError(
                "the llm designer has no model yet; attach it to a session, or make it with a model"
            )
        return ask(self._model, request, read, reasks=self.config.reasks, charge=self._session.charge)
