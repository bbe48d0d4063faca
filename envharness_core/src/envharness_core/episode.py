"""Episodes: data in, data out, so that any worker with the plugins installed can play one."""

from __future__ import annotations

from typing import cast

from attrs import Factory, evolve, field, frozen, validators

from envharness_core.data import Verdict
from envharness_core.jsondata import Json, JsonObject, digest
from envharness_core.outcome import Outcome
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec

_HOUR: float | None = 3600.0  # seconds


@frozen
class Limits:
    """What an episode may take.

    Args:
        steps: actions of the policy, at least 1; blocked, failed and malformed ones count.
        seconds: the policy's own time, in seconds; None is unlimited. What it waits for a provider doesn't count.
        wall_seconds: the episode's time, in seconds, the environment's included; None is unlimited. An episode that
            takes longer ends without a verdict.
    """

    steps: int = field(default=50, validator=validators.ge(1))
    seconds: float | None = field(default=None, validator=validators.optional(validators.gt(0)))
    wall_seconds: float | None = field(default=_HOUR, validator=validators.optional(validators.gt(0.0)))

    def as_json(self) -> JsonObject:
        """Return the limits as plain data."""
        return {"steps": self.steps, "seconds": self.seconds, "wall_seconds": self.wall_seconds}


@frozen
class Design:
    """Everything that the episodes of one batch share: the stack, the policy, the limits.

    Args:
        bridge: the innermost bridge.
        upstream: its benchmark and version, as ``name version``.
        task: the task's id.
        layers: the stack, innermost first.
        policy: who plays.
        limits: what an episode may take.
        skills: advice that the policy is given.
    """

    bridge: ComponentSpec
    upstream: str
    task: str
    layers: tuple[ComponentSpec, ...]
    policy: ComponentSpec
    limits: Limits
    skills: tuple[str, ...] = ()
    key: str = field(init=False, eq=False)
    """The content hash of all this."""
    stack_key: str = field(init=False, eq=False, repr=False)
    """What designs with the same stack have in common, whatever their tasks."""
    policy_key: str = field(init=False, eq=False, repr=False)
    """What designs with the same policy have in common."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "key", digest(self.as_json()))
        object.__setattr__(self, "stack_key", repr((self.bridge, self.layers)))
        object.__setattr__(self, "policy_key", repr(self.policy))

    def as_json(self) -> JsonObject:
        """Return the design as plain data."""
        return {
            "bridge": self.bridge.as_json(),
            "upstream": self.upstream,
            "task": self.task,
            "layers": [layer.as_json() for layer in self.layers],
            "policy": self.policy.as_json(),
            "limits": self.limits.as_json(),
            "skills": list(self.skills),
        }

    def under(self, layers: tuple[ComponentSpec, ...]) -> Design:
        """Return the design with another stack."""
        return evolve(self, layers=layers)


@frozen
class EpisodeSpec:
    """One episode to play: a design, its place in a stream, and its seeds."""

    design: Design
    stream: str
    index: int
    seeds: Seeds
    key: str = field(init=False, eq=False)
    """The episode's identity: design, stream, index and seeds, 32 hexadecimal characters."""

    def __attrs_post_init__(self) -> None:
        key = episode_key(self.design.key, self.stream, self.index, self.seeds)
        object.__setattr__(self, "key", key)


def episode_key(design: str, stream: str, index: int, seeds: Seeds) -> str:
    """Return an episode's identity, made of its design's, its place and its seeds."""
    place: list[Json] = [stream, index, seeds.env, seeds.layers, seeds.policy]
    return digest([design, *place])


@frozen
class Episode:
    """How an episode went, without its trajectory.

    ``steps`` counts the policy's actions, ``seconds`` the policy's and the world's time together. ``verdict`` is None
    where nothing may be said about the policy; ``error`` then says what happened.
    """

    key: str
    task: str
    stream: str
    index: int
    outcome: Outcome
    verdict: Verdict | None
    steps: int
    seconds: float
    usage: JsonObject = Factory(dict)
    error: str = ""

    @property
    def graded(self) -> bool:
        """Whether the episode says something about the policy."""
        return self.verdict is not None

    @property
    def success(self) -> bool:
        """Whether a verdict says so; False also where there is none."""
        return self.verdict is not None and self.verdict.success

    def as_json(self) -> JsonObject:
        """Return the episode as plain data."""
        verdict: Json = None
        if self.verdict is not None:
            verdict = {
                "success": self.verdict.success,
                "score": self.verdict.score,
                "metrics": self.verdict.metrics,
            }
        return {
            "key": self.key,
            "task": self.task,
            "stream": self.stream,
            "index": self.index,
            "outcome": str(self.outcome),
            "verdict": verdict,
            "steps": self.steps,
            "seconds": self.seconds,
            "usage": self.usage,
            "error": self.error or None,
        }


@frozen
class Record:
    """A played episode with its trajectory, encoded; what executors return and stores keep."""

    episode: Episode
    blob: bytes = field(repr=False)
    stop: str = ""
    """Why nothing more should be played, such as a key that was refused; empty for nothing. Not stored."""


def graded(episodes: tuple[Episode, ...]) -> tuple[Episode, ...]:
    """Return the graded episodes in rollout order."""
    return tuple(sorted((item for item in episodes if item.graded), key=lambda item: item.index))


def wins(episodes: tuple[Episode, ...]) -> int:
    """Count the successes."""
    return sum(cast("int", item.success) for item in episodes)
