"""The policy that asks a language model: what it is told, what it says, and what comes of that."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from attrs import define, evolve, field, frozen, validators

from envharness_core import Observation, Policy, Reply, Tool
from envharness_core.errors import ConfigError, OrderError
from envharness_core.jsondata import JsonObject
from envharness_llm.asks_model import AsksModel
from envharness_llm.history import Exchange, History
from envharness_llm.messages import Answer, Message, Params, Reasoning, Request
from envharness_llm.model import Model
from envharness_llm.parsing import Format, Planned, Reading, read_reply, said
from envharness_llm.prompts import Template, how_to_write, packaged, system_prompt

_SYSTEM = ("format", "instruction", "skills", "tools")
_OBSERVATION = ("format", "instruction", "observation")
_FUNCTION = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_AT_LEAST_1 = validators.optional(validators.ge(1))


def _is_temperature(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0 <= value <= 2:
        raise ConfigError(f"'temperature' must be from 0 to 2, got {value!r}")


def _is_system(_: object, __: object, text: str | None) -> None:
    if text is not None:
        Template(text).require(_SYSTEM, "system")


def _is_observation(_: object, __: object, text: str) -> None:
    Template(text).require(_OBSERVATION, "observation")
    if "observation" not in Template(text).names():
        raise ConfigError(
            "'observation' shows the agent nothing; put ${observation} where the observation goes"
        )


@frozen
class PolicyConfig:
    """Which model plays, and how it is asked.

    Args:
        model: as litellm names it, such as ``openai/gpt-4o-mini``.
        format: how it writes actions: ``tools`` (function calling), ``think_action`` (``<think>`` and ``<action>``
            blocks) or ``text`` (the last line that is a call).
        temperature: from 0 to 2; None leaves it to the model.
        max_tokens: tokens of a reply at most; nothing of a reply that is cut off there is done.
        reasoning: how much a model that can reason should.
        window: exchanges of the history that are shown, at least 1; all where it isn't set.
        context_tokens: what the conversation may take, at about 3 bytes a token; the oldest exchanges go first.
        system: the system prompt, with ``${tools}``, ``${format}``, ``${skills}`` (else they come at its end) and
            ``${instruction}`` (else the task is in the first message). The format's own where it isn't set.
        observation: each message that shows an observation, with ``${observation}``, and ``${format}`` or
            ``${instruction}`` where a model should be reminded.
        reask: how often a reply without a usable call is asked again within a step, before the world answers it as
            malformed.
    """

    model: str = field(validator=validators.min_len(1))
    format: Format = "tools"
    temperature: float | None = field(default=0.4, validator=_is_temperature)
    max_tokens: int | None = field(default=None, validator=_AT_LEAST_1)
    reasoning: Reasoning | None = None
    window: int | None = field(default=None, validator=_AT_LEAST_1)
    context_tokens: int | None = field(default=None, validator=_AT_LEAST_1)
    system: str | None = field(default=None, validator=_is_system)
    observation: str = field(default="${observation}", validator=_is_observation)
    reask: int = field(default=0, validator=[validators.ge(0), validators.le(10)])


@define
class _Turn:
    """A reply that is being carried out."""

    message: Message
    left: deque[Planned]
    doing: Planned | None = None
    results: list[str] = field(factory=list)


class ModelPolicy(AsksModel[Model], Policy[PolicyConfig]):
    """Asks a language model what to do, and does its calls one by one, each result as the answer to its call.

    Args:
        config: which model, and how.
        model: what answers instead of the client of the session that the policy is attached to.
    """

    def __init__(self, config: PolicyConfig, model: Model | None = None) -> None:
        super().__init__(config)
        self.repeats = config.temperature == 0
        self._model = model
        self._params = Params(config.model, config.temperature, config.max_tokens, config.reasoning)
        self._observation = Template(config.observation)

    def check(self, tools: Sequence[Tool]) -> None:
        if self.config.format != "tools":
            return
        for tool in tools:
            if not _FUNCTION.fullmatch(tool.name):
                raise ConfigError(
                    f"policy.format: {tool.name!r} can't be called as a function (letters, digits, _ and -, at most "
                    '64 of them); use "think_action" or "text"'
                )

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        way, system = self.config.format, self.config.system
        template = packaged(way) if system is None else Template(system)
        self._tools = tuple(tools)
        self._functions = tuple(map(_function, tools)) if way == "tools" else ()
        self._task = "" if "instruction" in template.names() else f"Task: {instruction}\n\n"
        self._values = {"format": how_to_write(way, tools), "instruction": instruction}
        self._system = system_prompt(template, way, tools, instruction, skills)
        self._seed = seed
        self._asked = 0
        self._history: History | None = None
        self._turn: _Turn | None = None

    def act(self, observation: Observation) -> Reply:
        shown = self._observation.fill({**self._values, "observation": observation.text})
        if self._history is None:
            task = f"{self._task}{shown}"
            self._history = History(self._system, task, self.config.window, self.config.context_tokens)
        elif self._turn is not None:
            self._turn.results.append(_result(self._turn, shown))
            if self._turn.left:
                return self._next(self._turn)
            self._history.add(Exchange(self._turn.message, tuple(self._turn.results)))
        return self._replied(self._history)

    def _replied(self, history: History) -> Reply:
        """Ask the model, again where it is to be, and return its first call with all that was said and used."""
        texts: list[str] = []
        usage: JsonObject = {}
        retries: tuple[Message, ...] = ()
        for left in range(self.config.reask, -1, -1):
            answer = self._ask((*history.messages(), *retries))
            reading = read_reply(answer, self.config.format, self._tools)
            texts.append(_raw(answer))
            usage = _sum(usage, answer.usage, {"truncated": 1} if reading.cut else {})
            message = self._message(history, answer, reading)
            if reading.usable or not left:
                break
            retries += Exchange(message, _problems(reading)).messages()
        self._turn = _Turn(message, deque(reading.plan))
        first = self._next(self._turn) if reading.plan else Reply((), problem=reading.problem)
        return evolve(first, text="\n\n".join(texts), usage=usage)

    def _ask(self, messages: tuple[Message, ...]) -> Answer:
        if self._model is None:
            raise OrderError(
                "the llm policy has no model yet; attach it to a session, or make it with a model"
            )
        request = Request(self._params, messages, "policy", self._seed, self._asked, self._functions)
        self._asked += 1
        return self._model.ask(request)

    def _message(self, history: History, answer: Answer, reading: Reading) -> Message:
        """Return how the reply stands in the conversation: with the calls that are answered one by one, no others."""
        text = answer.text if self.config.format == "tools" else said(answer)
        return history.said(text, answer.calls if reading.native else ())

    def _next(self, turn: _Turn) -> Reply:
        turn.doing = planned = turn.left.popleft()
        return Reply((), problem=planned.problem) if planned.action is None else Reply((planned.action,))


def _function(tool: Tool) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def _raw(answer: Answer) -> str:
    """Return all of a reply, as it is kept in the trajectory."""
    thought = f"<think>\n{answer.reasoning}\n</think>\n" if answer.reasoning else ""
    return f"{thought}{said(answer)}"


def _problems(reading: Reading) -> tuple[str, ...]:
    problems = [planned.problem for planned in reading.plan] or [reading.problem]
    return tuple(f"Malformed call: {problem}" for problem in problems)


def _result(turn: _Turn, shown: str) -> str:
    """Say which call a result is of where the chat doesn't, and what the guard couldn't know of it."""
    planned = turn.doing
    if planned is None or planned.action is None:
        return shown
    lines = [f"{planned.action.name}: {planned.problem}"] if planned.problem else []
    several = turn.left or turn.results
    if several and not turn.message.calls:
        lines.insert(0, f"Result {len(turn.results) + 1}, of {planned.action.name}:")
    return "\n".join([*lines, shown])


def _sum(*usages: JsonObject) -> JsonObject:
    """Add up what can be added; of the rest the last word counts."""
    total: JsonObject = {}
    for usage in usages:
        for key, amount in usage.items():
            before = total.get(key, 0)
            summed = isinstance(amount, int | float) and isinstance(before, int | float)
            total[key] = before + amount if summed else amount  # type: ignore[operator]
    return total
