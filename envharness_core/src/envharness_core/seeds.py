"""Seeds: hashes of what they are for, so that nothing depends on who asked first."""

from __future__ import annotations

import hashlib

from attrs import frozen

from envharness_core.jsondata import Json, canonical


def derive(*parts: Json) -> int:
    """Hash strict JSON values to a seed in [0, 2**63)."""
    return int.from_bytes(hashlib.blake2b(canonical(list(parts)), digest_size=8).digest()) >> 1


@frozen
class Seeds:
    """The three seeds of an episode: the world's, the layers' and the policy's, each in [0, 2**63)."""

    env: int
    layers: int
    policy: int

    @classmethod
    def of(
        cls, run: int, task: str, stream: str, index: int, *, seed_in_task: bool, world: str | None = None
    ) -> Seeds:
        """Derive an episode's seeds from the run's seed, its task, its stream and its index in that.

        The world's seed takes part of stream and index only where the bridge says that it isn't part of the task;
        ``world`` names another stream for it, whose episodes then meet the same worlds.
        """
        place: tuple[Json, ...] = () if seed_in_task else (world or stream, index)
        return cls(
            env=derive("env", run, task, *place),
            layers=derive("layers", run, task, stream, index),
            policy=derive("policy", run, task, stream, index),
        )
