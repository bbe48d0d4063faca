"""Trajectories: what was proposed, what reached the world, and what was shown, step by step."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from operator import lt
from typing import Any

import msgspec
from attrs import frozen

from envharness_core.data import Action, Observation, ResetResponse, StepResponse
from envharness_core.episode import Episode
from envharness_core.events import Event, EventLog
from envharness_core.jsondata import JsonObject
from envharness_core.policy import Reply

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_LEVEL = 6
_PLAIN = b"\x93"  # how msgpack begins a list of three; zlib never begins so

Spans = tuple[tuple[int, int], ...]
"""For each leg, which of its events belong to a step, as ``[start, stop)``; an empty range for none."""


@frozen
class Step:
    """One action of the policy and what came of it.

    Args:
        action: what the policy proposed; None where its reply held no action.
        text: the policy's raw reply, with its first action only.
        usage: tokens and costs of that reply.
        spans: which events of each leg followed.
        response: what the policy was shown.
        dense: the bridge's optional dense reward, or None.
        policy_seconds, env_seconds: the time of the reply and of the step.
        dropped: how many further actions of the same reply were not played, because the episode had stopped.
    """

    action: Action | None
    text: str
    usage: JsonObject
    spans: Spans
    response: StepResponse
    dense: float | None
    policy_seconds: float
    env_seconds: float
    dropped: int = 0


@frozen
class Trajectory:
    """A whole episode: its start, its steps, and the events of each leg's bridge."""

    start: ResetResponse | None
    steps: tuple[Step, ...]
    events: tuple[tuple[Event, ...], ...]

    def events_of(self, step: Step) -> list[Event]:
        """Return the events that followed a step: none for a blocked action, several at a hand-over."""
        return [
            event
            for events, (start, stop) in zip(self.events, step.spans, strict=True)
            for event in events[start:stop]
        ]

    def raw_observation(self, step: Step) -> Observation | None:
        """Return what the bridge showed in a step, before any layer; None where the step never reached it."""
        shown = [event for event in self.events_of(step) if "response" in event.body]
        if not shown:
            return None
        response: Any = shown[-1].body["response"]
        return Observation(**response["observation"])

    def actions(self) -> list[Action]:
        """Return what actually reached the first leg's bridge as steps, a Setup's replay included."""
        return [event.action for event in self.events[0] if event.kind == "step"]


@frozen
class Rollout:
    """A played episode: how it went, and what happened in it."""

    episode: Episode
    trajectory: Trajectory


class TrajectoryWriter:
    """Writes an episode down as it happens; what was written can't be changed by who holds the same data."""

    def __init__(self, logs: Sequence[EventLog]) -> None:
        self._logs = logs
        self._start: bytes = _encode(None)
        self._steps: list[msgspec.Raw] = []
        self._marks = [0] * len(logs)

    def __len__(self) -> int:
        return len(self._steps)

    def start(self, response: ResetResponse) -> None:
        """Write down the first response; the events so far are the reset's, a Setup's replay included."""
        self._start = _encode(response)
        self._marks = [len(log) for log in self._logs]

    def step(
        self,
        reply: Reply,
        number: int,
        response: StepResponse,
        *,
        raw: bool,
        dense: float | None,
        seconds: tuple[float, float],
        last: bool,
    ) -> None:
        """Write down the action ``number`` of a reply, and what came of it.

        ``raw`` says that the response is the very one that a bridge returned last, so that its event holds it already;
        ``last`` that the episode stops here.
        """
        marks = [*map(len, self._logs)]
        spans = [(min(old, new), new) for old, new in zip(self._marks, marks, strict=True)]
        told = raw and any(map(lt, self._marks, marks))
        self._marks = marks
        actions = reply.actions
        step = (
            actions[number] if number < len(actions) else None,
            reply.text if number == 0 else "",
            reply.usage if number == 0 else {},
            spans,
            None if told else response,
            dense,
            *seconds,
            max(0, len(actions) - number - 1) if last else 0,
        )
        self._steps.append(msgspec.Raw(_encode(step)))

    def blob(self) -> bytes:
        """Return the trajectory, encoded."""
        events = [[msgspec.Raw(event) for event in log.encoded()] for log in self._logs]
        return _encode((msgspec.Raw(self._start), self._steps, events))


def compressed(blob: bytes) -> bytes:
    """Return an encoded trajectory compressed, as it is sent and stored; one that is so already stays as it is."""
    return zlib.compress(blob, _LEVEL) if blob.startswith(_PLAIN) else blob


def read_trajectory(blob: bytes) -> Trajectory:
    """Decode what ``TrajectoryWriter.blob`` returned, compressed or not.

    Raises:
        ValueError: the blob is damaged.
    """
    try:
        start, steps, encoded = _decode(blob if blob.startswith(_PLAIN) else zlib.decompress(blob))
        events = tuple(tuple(Event(*event) for event in leg) for leg in encoded)
        return Trajectory(
            start=None if start is None else _reset_response(start),
            steps=tuple(_step(events, *step) for step in steps),
            events=events,
        )
    except (zlib.error, msgspec.DecodeError, TypeError, KeyError, IndexError) as error:
        raise ValueError(f"a damaged trajectory: {error}") from error


def _step(
    events: tuple[tuple[Event, ...], ...],
    action: Any,
    text: str,
    usage: Any,
    spans: Any,
    response: Any,
    *rest: Any,
) -> Step:
    dense, policy_seconds, env_seconds, dropped = rest
    if response is None:  # written down once, with the event
        told = [event for leg, span in zip(events, spans, strict=True) for event in leg[slice(*span)]]
        response = [event.body["response"] for event in told if "response" in event.body][-1]
    return Step(
        action=None if action is None else Action(**action),
        text=text,
        usage=usage,
        spans=tuple((start, stop) for start, stop in spans),
        response=StepResponse(**{**response, "observation": Observation(**response["observation"])}),
        dense=dense,
        policy_seconds=policy_seconds,
        env_seconds=env_seconds,
        dropped=dropped,
    )


def _reset_response(start: Any) -> ResetResponse:
    return ResetResponse(Observation(**start["observation"]), start["instruction"], start["info"])
