"""The tools by which a model answers, and what its calls become; whatever doesn't fit is said, never mended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from envharness_core import Attempt, Candidate, ComponentSpec, Decision, Diagnosis, Offer
from envharness_core.errors import ConfigError, DataError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.objective import Direction
from envharness_llm.designing.fitting import problem_with
from envharness_llm.designing.offering import layer_of, layers_schema
from envharness_llm.messages import Answer, ToolCall

_FIELDS = {
    "flaw": "the weakness, one sentence",
    "evidence": "what shows it, with numbers, rollouts and steps",
    "boundary": "where the policy still succeeds",
    "headroom": "how much harder or easier the task could get",
    "reliance": "what its successes rest on",
}
_WORDS = {
    "accept": Decision.ACCEPT,
    "more": Decision.MORE,
    "refine": Decision.REFINE,
    "reject": Decision.REJECT,
}


class UnusableError(Exception):
    """An answer that can't be used; says why, to the model."""


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description, "minLength": 1}


def _tool(name: str, description: str, properties: JsonObject) -> JsonObject:
    parameters: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": parameters}


def diagnose_tools() -> tuple[JsonObject, ...]:
    """Return the tool of a diagnosis."""
    direction: JsonObject = {"type": "string", "enum": ["scaffold", "harden", "leave"]}
    fields: JsonObject = {name: _text(description) for name, description in _FIELDS.items()}
    return (_tool("diagnose", "Say what limits the policy.", {**fields, "direction": direction}),)


def propose_tools(offers: Sequence[Offer]) -> tuple[JsonObject, ...]:
    """Return the tools of a proposal."""
    proposal: JsonObject = {
        "rationale": _text("which flaw the layers strike, how, and what success rate is to be expected"),
        "solvable": _text("how the task can still be solved, and the way out of each refusal"),
        "layers": layers_schema(offers),
    }
    why: JsonObject = {"reason": _text("why no layer on offer could do it")}
    return (
        _tool("propose", "Propose layers, to be judged as a whole.", proposal),
        _tool("give_up", "Propose nothing more for this task.", why),
    )


def review_tools() -> tuple[JsonObject, ...]:
    """Return the tool of a review."""
    word: JsonObject = {"type": "string", "enum": [*_WORDS]}
    return (_tool("review", "Say what to do with the candidate.", {"reason": _text("why"), "word": word}),)


def read_call(answer: Answer, tools: Sequence[JsonObject]) -> tuple[str, JsonObject]:
    """Return the name and the arguments of the one call of an answer.

    Raises:
        UnusableError: it was cut off or filtered, or holds no call, several, or one that doesn't fit.
    """
    if answer.finish == "length":
        raise UnusableError(
            "the answer was cut off at the token limit, so nothing of it counts; write a shorter one"
        )
    if answer.finish == "filtered":
        raise UnusableError("the answer was cut off by a content filter, so nothing of it counts")
    names = " or ".join(str(tool["name"]) for tool in tools)
    if len(answer.calls) != 1:
        called = f"{len(answer.calls)} calls" if answer.calls else "no tool call"
        raise UnusableError(f"the answer holds {called}; answer with exactly one, of {names}")
    call = answer.calls[0]
    tool = next((tool for tool in tools if tool["name"] == call.name), None)
    if tool is None:
        raise UnusableError(f"there is no tool {call.name!r:.80}; call {names}")
    arguments = _arguments(call)
    problem = problem_with(arguments, _outline(cast("JsonObject", tool["parameters"])), call.name)
    if problem:
        raise UnusableError(problem)
    return call.name, arguments


def is_object(text: str) -> bool:
    """Say whether a call's arguments are a JSON object, which some services ask of calls that they are shown."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def read_diagnosis(arguments: JsonObject) -> Diagnosis:
    """Return a diagnosis from arguments that fit its tool."""
    told = {name: str(text).strip() for name, text in arguments.items()}
    return Diagnosis(
        flaw=told["flaw"],
        evidence=told["evidence"],
        direction=cast("Direction", told["direction"]),
        boundary=told["boundary"],
        headroom=told["headroom"],
        reliance=told["reliance"],
    )


def read_candidate(arguments: JsonObject, offers: Sequence[Offer], history: Sequence[Attempt]) -> Candidate:
    """Return a candidate from arguments that fit its tool.

    Raises:
        UnusableError: it is empty, equals an earlier one, or has a layer that isn't on offer or doesn't fit.
    """
    given = cast("list[JsonObject]", arguments["layers"])
    if not given:
        raise UnusableError("propose.layers: empty; propose at least one layer, or give_up")
    try:
        layers = tuple(layer_of(data, offers, f"propose.layers[{i}]") for i, data in enumerate(given))
    except (ConfigError, ValueError) as error:
        raise UnusableError(str(error)) from error
    for number, attempt in enumerate(history, 1):
        if _essence(attempt.candidate.layers) == _essence(layers):
            raise UnusableError(
                f"propose.layers: the same as attempt {number}; propose something else, or give_up"
            )
    return Candidate(
        layers, f"{str(arguments['rationale']).strip()}\nSolvable: {str(arguments['solvable']).strip()}"
    )


def read_review(arguments: JsonObject) -> Decision:
    """Return a decision from arguments that fit its tool."""
    return _WORDS[str(arguments["word"])]


def _outline(parameters: JsonObject) -> JsonObject:
    """Return a tool's schema without what is inside of layers: each is checked by its own schema, under any name."""
    properties = cast("JsonObject", parameters["properties"])
    if "layers" not in properties:
        return parameters
    outline: JsonObject = {"type": "array", "items": {"type": "object", "required": ["use"]}}
    return {**parameters, "properties": {**properties, "layers": outline}}


def _arguments(call: ToolCall) -> JsonObject:
    """Return a call's arguments as strict JSON."""
    try:
        said: object = json.loads(call.arguments)
    except (ValueError, RecursionError) as error:
        raise UnusableError(f"{call.name}: the arguments aren't JSON: {error}") from error
    try:
        return copy_object(said)
    except DataError as error:
        raise UnusableError(f"{call.name}: the arguments must be a JSON object: {error}") from error


def _essence(layers: Sequence[ComponentSpec]) -> Json:
    """Return layers without what makes no difference in source code: comments on lines of their own, blank lines."""
    return [_bare(layer.as_json()) for layer in layers]


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if not isinstance(value, str):
        return value
    lines = [line.rstrip() for line in value.splitlines()]
    return [line for line in lines if line and not line.lstrip().startswith("#")]
