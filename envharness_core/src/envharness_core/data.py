"""The data that crosses the contract: frozen, plain, strict JSON inside."""

from __future__ import annotations

import json
from typing import Literal

from attrs import Factory, evolve, field, frozen, validators

from envharness_core.jsondata import Json, JsonObject

_shown = json.JSONEncoder(ensure_ascii=False, default=repr).encode


@frozen
class Action:
    """A call that an agent proposes: a tool's name and its keyword arguments.

    Whether it is well formed is the guard's business: an ``Action`` may hold anything that a policy said.
    """

    name: str
    kwargs: JsonObject = Factory(dict)

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={_shown(value)}" for key, value in self.kwargs.items())
        return f"{self.name}({inside})"


@frozen
class Blocked:
    """What ``filter_action`` returns instead of an action that it refuses, with the reason that the agent reads."""

    reason: str


@frozen
class Observation:
    """What the agent sees: text, and the same as data where the bridge has it."""

    text: str
    data: JsonObject = Factory(dict)

    def preceded_by(self, text: str) -> Observation:
        """Return this observation with a line of text in front of it."""
        return evolve(self, text=f"{text}\n\n{self.text}" if self.text else text)


@frozen
class ResetResponse:
    """What a reset returns; ``instruction`` is the task as the agent is told it."""

    observation: Observation
    instruction: str
    info: JsonObject = Factory(dict)


@frozen
class StepResponse:
    """What a step returns.

    ``terminated`` is the benchmark's own end, ``truncated`` an end that a limit or a layer set.
    """

    observation: Observation
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: JsonObject = Factory(dict)

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


@frozen
class Verdict:
    """How an episode went, by the benchmark's own verifier; ``score`` is finite, usually in [0, 1]."""

    success: bool
    score: float
    metrics: JsonObject = Factory(dict)


@frozen
class TaskSummary:
    """One task of a bridge: its stable id, its split, and what a person or designer reads about it."""

    id: str
    split: str
    summary: str
    metadata: JsonObject = Factory(dict)


@frozen
class Finding:
    """One thing that a bridge needs, as its ``doctor`` found it.

    Args:
        part: what it is, such as ``games``.
        holds: whether it is there.
        detail: what was found, or what is missing and how to get it.
    """

    part: str = field(validator=validators.instance_of(str))
    holds: bool = field(validator=validators.instance_of(bool))
    detail: str = field(validator=validators.instance_of(str))


@frozen
class Capabilities:
    """What a bridge declares about itself.

    Args:
        upstream: the benchmark's package or data set.
        version: its version; recorded in every episode.
        snapshot: ``live`` if a saved state is valid at any time, ``episode`` if only at an episode's start: such a
            state is what the reset left, and a replay that came after it is repeated when the state is loaded.
        resumable: whether ``resume()`` can go on after the benchmark ended the episode.
        deterministic: whether the same task, seed and actions give the same observations and verdict.
        seed_in_task: whether the seed is part of the task, so that every rollout of a task gets the same one.
        worker: the kind of worker that an episode needs: a ``thread``, or a ``process`` of its own.
    """

    upstream: str
    version: str
    snapshot: Literal["live", "episode"] = "episode"
    resumable: bool = False
    deterministic: bool = True
    seed_in_task: bool = True
    worker: Literal["thread", "process"] = field(default="thread", kw_only=True)


class EnvState(dict[str, Json]):
    """A copy of the state that a bridge shows to hooks, readable as items and as attributes.

    ``extras`` is the reading layer's own scratch, an object that lives for one episode.
    """

    extras: JsonObject

    def __init__(self, values: JsonObject, extras: JsonObject | None = None) -> None:
        super().__init__(values)
        object.__setattr__(self, "extras", {} if extras is None else extras)

    def __getattr__(self, name: str) -> Json:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __missing__(self, name: str) -> Json:
        raise KeyError(f"the state has no field {name!r}; it has: {', '.join(sorted(self))}")
