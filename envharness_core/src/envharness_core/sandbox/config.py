"""What a user chooses about the rules sandbox; a designer never does."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators

_NUMBER = validators.instance_of((int, float))


@frozen
class SandboxConfig:
    """How rules that are given as source code run.

    Args:
        mode: ``locked``, or ``process``, which keeps the process wall, the limits and the scrubbed environment only:
            for machines on which the lockdown isn't available, and at your own risk.
        seconds: CPU seconds that one call of all hooks of a step may take.
        wall_seconds: seconds on the clock after which a call is given up on a machine that is too busy for it.
        memory_mb: address space of a worker process, in MiB.
        reply_mb: the longest answer of a call, in MiB.
    """

    mode: Literal["locked", "process"] = field(
        default="locked", validator=validators.in_(("locked", "process"))
    )
    seconds: float = field(default=1.0, validator=[_NUMBER, validators.gt(0), validators.le(3600)])
    wall_seconds: float = field(default=60.0, validator=[_NUMBER, validators.gt(0), validators.le(36000)])
    memory_mb: int = field(
        default=512, validator=[validators.instance_of(int), validators.ge(64), validators.le(1 << 20)]
    )
    reply_mb: float = field(default=1.0, validator=[_NUMBER, validators.ge(0.01), validators.le(1024)])

    @property
    def locked(self) -> bool:
        """Whether workers lock themselves down: always, but for the one word that says otherwise."""
        return self.mode != "process"
