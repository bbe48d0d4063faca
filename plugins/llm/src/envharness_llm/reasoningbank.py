"""The extractor that asks a language model: lessons of successes, of failures, and of how they differ."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import Factory, field, frozen, validators

from envharness_core import Experience, Extractor, Skill
from envharness_core.errors import PluginError
from envharness_core.seeds import derive
from envharness_core.warn import note
from envharness_llm.asks_model import AsksModel
from envharness_llm.distilling.asking import ask
from envharness_llm.distilling.brief import Brief
from envharness_llm.distilling.choosing import by_turns, distinct
from envharness_llm.distilling.items import remember_tool
from envharness_llm.distilling.modes import MODES, Mode
from envharness_llm.distilling.texts import texts_of
from envharness_llm.messages import Params, Reasoning, Request
from envharness_llm.model import Model

NAME = "llm/reasoningbank"

_LOW: float | None = 0.2


def _are_texts(_: object, __: object, prompts: dict[str, str]) -> None:
    texts_of(prompts).check()


def _are_modes(_: object, __: object, modes: tuple[Mode, ...]) -> None:
    if not modes or len(set(modes)) < len(modes):
        raise ValueError(
            f"'modes' must name at least one of {', '.join(MODES)}, and none twice; got {modes!r}"
        )


@frozen
class ReasoningBankConfig:
    """Which model distils skills, and what it is told.

    Args:
        model: as litellm names it, such as ``openai/gpt-4o-mini``.
        temperature: from 0 to 2; None leaves it to the model.
        max_tokens: tokens of an answer at most; None leaves it to the model. Of an answer that is cut off there
            nothing counts.
        reasoning: how much a model that can reason should.
        modes: what is looked for, a call each where the rollouts allow it: ``contrast`` (what successes did that
            failures didn't, over three rollouts or more), ``failure``, ``success``, and ``pair`` (where a failure and
            a success part). Their skills come by turns, in this order.
        per_call: skills of a call at most, 1 to 20.
        evidence_tokens: what rollouts may take of a prompt, at about 4 characters a token, from 500 on; long texts are
            clipped in the middle, and rollouts that don't fit are left out and counted.
        reasks: how often an answer that can't be used is asked for again, 0 to 10; one that was cut off, once.
        prompts: texts instead of the packaged ones: ``system``, ``contrast``, ``failure``, ``success``, ``pair`` and
            ``reshaped``, with placeholders such as ``${count}``.
    """

    model: str = field(validator=validators.min_len(1))
    temperature: float | None = field(
        default=_LOW,
        validator=validators.optional(validators.and_(validators.ge(0.0), validators.le(2.0))),
    )
    max_tokens: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    reasoning: Reasoning | None = None
    modes: tuple[Mode, ...] = field(default=MODES, validator=_are_modes)
    per_call: int = field(default=3, validator=[validators.ge(1), validators.le(20)])
    evidence_tokens: int = field(default=16_000, validator=[validators.ge(500), validators.le(10_000_000)])
    reasks: int = field(default=2, validator=[validators.ge(0), validators.le(10)])
    prompts: dict[str, str] = field(default=Factory(dict), validator=_are_texts)


class ReasoningBank(AsksModel[Model], Extractor[ReasoningBankConfig]):
    """Has a model say what rollouts teach, in as many ways of looking at them as there are rollouts for.

    A way in which no answer can be used yields nothing and a warning; the others still count.

    Args:
        config: which model, and what it is told.
        model: what answers instead of the client of the session that the extractor is attached to.
    """

    waits = True

    def __init__(self, config: ReasoningBankConfig, model: Model | None = None) -> None:
        super().__init__(config)
        self._model = model
        self._brief = Brief(texts_of(config.prompts), config.evidence_tokens, config.per_call)
        self._params = Params(config.model, config.temperature, config.max_tokens, config.reasoning)

    def extract(self, experience: Experience, seed: int) -> Sequence[Skill]:
        distilled = [self._distilled(mode, experience, seed) for mode in self.config.modes]
        return _reported(by_turns(distilled), experience)

    def _distilled(self, mode: Mode, experience: Experience, seed: int) -> Sequence[Skill]:
        """Return what a mode yields, the best first."""
        told = self._brief.told(mode, experience)
        if told is None:
            return ()
        count = self.config.per_call
        request = Request(
            self._params,
            told.messages,
            "extractor",
            derive("reasoningbank", seed, mode),
            tools=(remember_tool(count),),
            must_call=True,
        )
        origin = experience.provenance(NAME, told.rollouts)
        items = ask(self._ready(), request, reasks=self.config.reasks, charge=self._session.charge)
        skills = _reported(
            [Skill(item.title, item.description, item.content, origin) for item in items], experience
        )
        for skill in skills[count:]:
            reason = f"the item {skill.title[:60]!r} is one more than the {count} that were asked for"
            note("extractor_item_dropped", task=experience.task.id, reason=reason)
        return skills[:count]

    def _ready(self) -> Model:
        if self._model is None:
            raise PluginError(
                "the reasoningbank extractor has no model yet; attach it to a session, or make it with a model"
            )
        return self._model


def _reported(skills: Sequence[Skill], experience: Experience) -> list[Skill]:
    """Return skills without repetitions, and log those."""
    kept, gone = distinct(skills)
    for reason in gone:
        note("extractor_item_dropped", task=experience.task.id, reason=reason)
    return kept
