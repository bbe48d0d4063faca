"""Events: what actually reached a bridge, in order, as the recorder wrote it down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, cast

import msgspec
from attrs import Factory, frozen

from envharness_core.data import Action, StepResponse
from envharness_core.jsondata import JsonObject

EventKind: TypeAlias = Literal["reset", "step", "notify", "resume", "evaluate"]
"""What can reach a bridge and change it, or be asked of it for the record."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def encoded(action: Action) -> msgspec.Raw:
    """Return an action as an event holds it, out of everybody's reach."""
    return msgspec.Raw(_encode(action))


@frozen
class Event:
    """One thing that reached a bridge.

    ``body`` holds, by kind: ``reset`` its seed, options and response; ``step`` its action and response; ``evaluate``
    its verdict; ``notify`` and ``resume`` nothing.
    """

    kind: EventKind
    body: JsonObject = Factory(dict)

    @property
    def action(self) -> Action:
        """The action of a step."""
        return Action(**cast("dict[str, JsonObject]", self.body["action"]))  # type: ignore[arg-type]

    def as_json(self) -> JsonObject:
        """Return the event as plain data."""
        return {"kind": self.kind, "body": self.body}


class EventLog:
    """An append-only list of events, held encoded: nobody who was given the same data can change it."""

    def __init__(self) -> None:
        self._events: list[bytes] = []

    def __len__(self) -> int:
        return len(self._events)

    def append(self, kind: EventKind, **body: object) -> None:
        """Write an event down; the body may hold attrs classes."""
        self._events.append(_encode((kind, body)))

    def append_step(self, action: msgspec.Raw, response: StepResponse) -> None:
        """Write a step down; the action is ``encoded``, as it was before the bridge had it."""
        self._events.append(_encode(("step", {"action": action, "response": response})))

    def encoded(self, start: int = 0) -> list[bytes]:
        """Return the events from ``start`` on, each encoded as msgpack ``[kind, body]``."""
        return self._events[start:]

    def events(self, start: int = 0) -> list[Event]:
        """Return fresh copies of the events from ``start`` on."""
        return [Event(*_decode(event)) for event in self._events[start:]]

    def replace(self, events: Iterable[Event]) -> None:
        """Start over with these events, as when a checkpoint is loaded."""
        self._events = [_encode((event.kind, event.body)) for event in events]

    def clear(self) -> None:
        """Forget everything, as at a reset."""
        self._events = []
