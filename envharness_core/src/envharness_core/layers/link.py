"""Link: two environments in one longer episode, whose verdict is the conjunction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast, final

from attrs import field, frozen, validators

from envharness_core.data import (
    Action,
    Capabilities,
    EnvState,
    Observation,
    ResetResponse,
    StepResponse,
    Verdict,
)
from envharness_core.env import Env
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layer import Wrapper
from envharness_core.seeds import derive
from envharness_core.spec import StackSpec
from envharness_core.tools import Tool


@frozen
class LinkConfig:
    """What follows the inner environment.

    Args:
        next: the second leg, a stack of its own with its task.
        banner: the line that the agent reads when the second leg begins.
    """

    next: StackSpec = field()
    banner: str = field(
        default="The first task is over. The next one begins now.", validator=validators.min_len(1)
    )

    @next.validator  # noqa: A003 - users write "next"
    def _has_a_task(self, attribute: object, value: StackSpec) -> None:
        if not value.task:
            raise ValueError("the second leg needs a task")


class Leg(Protocol):
    """The second leg as the stack builder made it: its outermost layer, and its part of a checkpoint."""

    @property
    def top(self) -> Env:
        """The leg's outermost layer, without a guard."""

    def admit(self, seed: int, task: str) -> None:
        """Allow the reset with which the leg begins."""

    def require_begun(self) -> None:
        """Refuse a leg whose reset didn't come through."""

    def forget(self) -> None:
        """Clear what the leg's recorders wrote down of an earlier episode."""

    def verdict(self) -> Verdict:
        """Ask the leg's bridges."""

    def save(self) -> JsonObject:
        """Return the leg's nested checkpoint."""

    def load(self, state: JsonObject) -> None:
        """Take the leg's nested checkpoint."""


@final
class Link(Wrapper[LinkConfig]):
    """Plays the inner environment, then another; the one composite.

    The first leg's end is masked: it is graded once, the second leg is reset within the same step, and its first
    observation and instruction come behind the banner, with ``info["handoff"]``. Nothing of the second leg starts
    before that. The tools are the union; a call of a tool whose leg isn't on is malformed. The state is
    ``{"leg": 0 or 1, "state": ...}``. Success is the conjunction, the score the minimum, and metrics have a leg
    each; a leg that never started has failed.

    Args:
        graded: what grades the first leg: its recorder, or the link inside.
        leg: the second leg.
    """

    def __init__(self, inner: Env, config: LinkConfig, graded: Env, leg: Leg) -> None:
        super().__init__(inner, config)
        self._graded = graded
        self._next = leg
        self._legs = (inner, leg.top)
        self._tools = _union(inner.tools(), leg.top.tools())
        self._leg = 0
        self._seed = 0
        self._first_verdict: Verdict | None = None

    def __repr__(self) -> str:
        return f"Link({self._legs[0]!r}, {self._legs[1]!r})"

    @property
    def capabilities(self) -> Capabilities:
        first, second = (leg.capabilities for leg in self._legs)
        return Capabilities(
            upstream=f"{first.upstream}+{second.upstream}",
            version=f"{first.version}+{second.version}",
            snapshot="live" if first.snapshot == second.snapshot == "live" else "episode",
            resumable=first.resumable and second.resumable,
            deterministic=first.deterministic and second.deterministic,
            seed_in_task=first.seed_in_task and second.seed_in_task,
            worker="process" if "process" in (first.worker, second.worker) else "thread",
        )

    def tools(self) -> Sequence[Tool]:
        return self._tools

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        self._leg, self._seed, self._first_verdict = 0, seed, None
        self._next.forget()
        return super().reset(seed, options)

    def step(self, action: Action) -> StepResponse:
        response = self._current.step(action)
        target = self.handoff(response)
        return response if target is None else self._hand_over(response, target)

    def handoff(self, response: StepResponse) -> int | None:
        """Say which leg goes on after this response, or None to stay."""
        return 1 if response.ended and self._leg == 0 else None

    def observe(self) -> Observation:
        return self._current.observe()

    def evaluate(self) -> Verdict:
        if self._leg == 0:
            return _conjunction([self._graded.evaluate(), None])
        if self._first_verdict is None:  # loaded from a checkpoint: derived again
            self._first_verdict = self._graded.evaluate()
        return _conjunction([self._first_verdict, self._next.verdict()])

    def get_env_state(self) -> EnvState:
        return EnvState({"leg": self._leg, "state": dict(self._current.get_env_state())})

    def resume(self) -> None:
        self._current.resume()

    def notify_replay_complete(self) -> None:
        self._current.notify_replay_complete()

    def step_reward(self, info: JsonObject) -> float | None:
        return self._current.step_reward(info)

    def close(self) -> None:
        try:
            self._legs[0].close()
        finally:
            self._legs[1].close()

    def own_state(self) -> JsonObject:
        later: Json = self._next.save() if self._leg == 1 else None
        return {"leg": self._leg, "seed": self._seed, "next": later}

    def restore(self, state: JsonObject) -> None:
        if state.get("leg") not in (0, 1):
            raise CheckpointError(f"link: expected leg 0 or 1, got {state.get('leg')!r}")
        self._leg, self._seed = cast("int", state["leg"]), cast("int", state["seed"])
        self._first_verdict = None
        if self._leg == 1:
            self._next.load(cast("JsonObject", state["next"]))

    @property
    def _current(self) -> Env:
        return self._legs[self._leg]

    def _hand_over(self, response: StepResponse, target: int) -> StepResponse:
        self._first_verdict = self._graded.evaluate()
        options: JsonObject = {
            "task": self.config.next.task,
            "layer_seed": derive("link", self._layer_seed, *self.identity),
        }
        seed = derive("link", self._seed, *self.identity)
        self._next.admit(seed, self.config.next.task)
        first = self._legs[target].reset(seed, options)
        self._next.require_begun()
        self._leg = target
        behind = first.observation.preceded_by(first.instruction).preceded_by(self.config.banner)
        handoff: JsonObject = {"leg": target, "instruction": first.instruction}
        return StepResponse(behind, response.reward, info={**response.info, "handoff": handoff})


def _conjunction(legs: list[Verdict | None]) -> Verdict:
    metrics: list[Json] = [
        None if leg is None else {"success": leg.success, "score": leg.score, **leg.metrics} for leg in legs
    ]
    return Verdict(
        success=all(leg is not None and leg.success for leg in legs),
        score=min(0.0 if leg is None else leg.score for leg in legs),
        metrics={"legs": metrics},
    )


def _union(first: Sequence[Tool], second: Sequence[Tool]) -> tuple[Tool, ...]:
    tools = {tool.name: tool for tool in first}
    for tool in second:
        known = tools.setdefault(tool.name, tool)
        if known.schema != tool.schema:
            raise ConfigError(f"link: the legs' tools named {tool.name!r} have different schemas")
    return tuple(tools.values())
