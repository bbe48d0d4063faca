"""What a bridge and its engine's process say to each other: tagged msgpack arrays, data only."""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, array_like=True, tag=True):
    """A message; its type's name is its tag."""


class Begin(Message):
    """Start a game anew; ``game`` is the JSON text of its file, None where the engine should know it by its key."""

    key: str
    game: bytes | None


class Do(Message):
    """Do a command."""

    command: str


class Plan(Message):
    """Say which commands win from here, as the engine's planner finds them."""


class Shown(Message):
    """What a game shows after a reset or a command.

    Args:
        text: the engine's own words, to the character.
        admissible: the commands that it takes now, sorted.
        won: its own flag.
        inventory: the names of what the agent holds, sorted.
        understood: whether the command was one that the game takes here; true after a reset.
    """

    text: str
    admissible: list[str]
    won: bool
    inventory: list[str]
    understood: bool = True


class Unknown(Message):
    """The engine doesn't know the game by its key."""


class Planned(Message):
    """The planner's commands; None where it finds none."""

    commands: list[str] | None


Request = Begin | Do | Plan
Answer = Shown | Unknown | Planned

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
