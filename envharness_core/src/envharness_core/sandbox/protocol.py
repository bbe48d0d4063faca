"""The messages between the runner, the zygote and a worker: length-prefixed msgpack, data only.

A frame is a little-endian u32 and so many bytes: ``[nonce, message]``, with a nonce that the runner draws for each
call and the worker repeats. Messages are arrays that begin with their type's name; anything else is a fault.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

import msgspec

from envharness_core.data import Action, Observation, StepResponse
from envharness_core.jsondata import JsonObject

LENGTH = struct.Struct("<I")

NO_NONCE = 0
"""The nonce of what a worker says unasked."""


class Message(msgspec.Struct, array_like=True, tag=True):
    """A message; its type's name is its tag."""


M = TypeVar("M", bound=Message)


class Source(msgspec.Struct, array_like=True):
    """One layer's source code, the seed of its random stream, and whether to say first what is wrong with it."""

    code: str
    seed: int
    check: bool = False


class Begin(Message):
    """Make the layers of a run, innermost first."""

    sources: list[Source]
    resumable: bool


class Seen(msgspec.Struct, array_like=True):
    """An observation from a worker: its data as JSON text, whose objects have text for keys whoever wrote it."""

    text: str
    data: bytes


class Show(Message):
    """Take what each layer last showed, as when a checkpoint was loaded; None where that was what is inside."""

    shown: list[Observation | None]


class Reset(Message):
    """Filter the first observation."""

    observation: Observation
    state: msgspec.Raw


class Before(Message):
    """Filter an action; the state is the one before the step."""

    action: Action
    state: msgspec.Raw


class After(Message):
    """Reshape a response; the state is the one after the step.

    ``action`` is None where ``Before`` was asked. ``start`` is the first layer to be asked: 0, or for a blocked step
    the one outside of the layer that blocked it.
    """

    action: Action | None
    response: StepResponse
    state: msgspec.Raw
    start: int = 0


class Renew(Message):
    """Make the layers anew: a replay is over."""


class Recall(Message):
    """Say what each layer last showed."""


Request = Begin | Show | Reset | Before | After | Renew | Recall


class Ready(Message):
    """The worker is locked down, as far as was asked for."""


class Unlocked(Message):
    """The worker couldn't lock itself down, and ends."""

    missing: str


class Done(Message):
    """Nothing more to say."""


class Loaded(Message):
    """Which hooks each layer defines, innermost first."""

    hooks: list[list[str]]


class Shown(Message):
    """What each layer last showed; None where that was what is inside."""

    shown: list[Seen | None]


class Filtered(Message):
    """The first observation, None for what was given; ``changed`` says whether any layer changed it."""

    seen: Seen | None
    changed: bool


class Passed(Message):
    """The action that all filters let through: its name and, as JSON text, its arguments; None for the given one."""

    name: str | None
    kwargs: bytes | None


class Stopped(Message):
    """A layer blocked the action; ``shown`` is what it last showed, None where that was what is inside of the run."""

    layer: int
    reason: str
    shown: Seen | None


class Reshaped(Message):
    """What the layers made of a response; there is no reward in it.

    ``seen`` and ``info`` (JSON text) are None where they are what was given. ``changed`` says whether any of those
    asked changed the observation, be it back again, ``resumed`` whether one masked an end.
    """

    seen: Seen | None
    terminated: bool
    truncated: bool
    info: bytes | None
    changed: bool
    resumed: bool
    clamped: list[str]


class Fault(Message):
    """What went wrong, as ``RulesError`` has it; ``layer`` counts from the innermost."""

    layer: int
    hook: str
    kind: str
    detail: str
    line: int | None
    trace: str


Reply = Ready | Unlocked | Done | Loaded | Shown | Filtered | Passed | Stopped | Reshaped | Fault

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(tuple[int, Request]).decode
decode_reply = msgspec.msgpack.Decoder(tuple[int, Reply]).decode
as_text = msgspec.json.Encoder().encode
from_text = msgspec.json.Decoder(dict[str, Any]).decode
decode_state = msgspec.msgpack.Decoder(dict[str, Any]).decode


def seen(observation: Observation) -> Seen:
    """Return an observation as a worker sends it."""
    return Seen(observation.text, as_text(observation.data))


def frame(nonce: int, message: Message) -> bytes:
    """Return a message as it is written to a pipe."""
    body = encode((nonce, message))
    return LENGTH.pack(len(body)) + body


def raw(state: JsonObject) -> msgspec.Raw:
    """Return a state encoded, to be decoded once for each layer that reads it."""
    return msgspec.Raw(encode(state))
