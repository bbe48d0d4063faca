"""What is said to a model and what it answers, as plain data that names no provider."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import Factory, frozen

from envharness_core.jsondata import JsonObject

Role: TypeAlias = Literal["policy", "designer", "extractor", "embedder"]
"""On whose account a call goes."""

Reasoning: TypeAlias = Literal["off", "low", "medium", "high"]
"""How much a model that can reason should; ``off`` asks for none, None leaves it to the model."""

Finish: TypeAlias = Literal["stop", "tool_calls", "length", "filtered", "other"]
"""Why a model stopped; at ``length`` its token limit cut it off, and nothing that it said may be executed."""


@frozen
class ToolCall:
    """A call as a model wrote it.

    Args:
        id: what its result refers to.
        name: the tool's.
        arguments: the JSON text, unparsed: it may be anything.
    """

    id: str
    name: str
    arguments: str


@frozen
class Message:
    """A part of a conversation.

    Args:
        role: who speaks; ``tool`` gives the result of a call.
        text: what is said.
        calls: of an assistant's message.
        call_id: of a tool's message, the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@frozen
class Params:
    """How a model is asked.

    Args:
        model: as litellm names it, such as ``openai/gpt-4o-mini``.
        temperature: 0 or more; None leaves it to the model.
        max_tokens: tokens of an answer at most; None leaves it to the model.
        reasoning: how much to reason.
    """

    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning: Reasoning | None = None


@frozen
class Request:
    """A call of a model.

    Args:
        params: which model, and how.
        messages: the conversation so far.
        tools: function schemas as the chat APIs take them: ``{"name", "description", "parameters"}``.
        must_call: whether the answer has to be a call of one of the tools.
        role: on whose account it goes.
        seed: of whoever asks: run, task, stream and rollout index are hashed into it, so that the same words said in
            another rollout are another call.
        number: how many calls of the same seed came before.
    """

    params: Params
    messages: tuple[Message, ...]
    role: Role
    seed: int
    number: int = 0
    tools: tuple[JsonObject, ...] = ()
    must_call: bool = False


@frozen
class Answer:
    """What a model answered.

    Args:
        text: what it said, without the reasoning that its service reports apart.
        calls: the tools that it called, in order.
        reasoning: what its service reports of its reasoning.
        finish: why it stopped.
        usage: ``calls``, ``input_tokens``, ``output_tokens``, and where known ``cached_tokens``,
            ``reasoning_tokens`` and ``cost_usd`` (US dollars); ``unpriced_calls`` where the price isn't known.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish: Finish = "stop"
    usage: JsonObject = Factory(dict)
