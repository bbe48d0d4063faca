"""What the runner asks of the zygote, and what that answers, over their control socket."""

from __future__ import annotations

import msgspec

from envharness_core.sandbox.protocol import Message

WARM = b"warm"
"""What the zygote says once, when it is ready to fork."""


class Spawn(Message):
    """Fork a worker; its ends of two pipes come along, the one that it reads from first.

    ``memory`` is its address space and ``reply`` its longest reply, in bytes, and ``seconds`` the CPU time of a call; a
    ``probe`` only reports what holds.
    """

    memory: int
    reply: int
    seconds: float
    locked: bool
    probe: bool = False


class Retire(Message):
    """Reap a worker that has ended or was killed."""

    pid: int


class Spawned(Message):
    """A worker's process id; its pidfd comes along where there are such."""

    pid: int


class Retired(Message):
    """How a worker ended: an exit code, or minus a signal's number."""

    code: int


class Refused(Message):
    """Why no worker could be forked."""

    reason: str


Order = Spawn | Retire
Answer = Spawned | Retired | Refused

decode_order = msgspec.msgpack.Decoder(Order).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
