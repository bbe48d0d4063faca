"""Doubles: small bridges and layers for tests, each with one property that matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import SystemRandom
from typing import Literal, TypeVar, cast

from attrs import field, frozen, validators

from envharness_core.component import NoConfig
from envharness_core.data import (
    Action,
    Capabilities,
    EnvState,
    Observation,
    ResetResponse,
    StepResponse,
    TaskSummary,
    Verdict,
)
from envharness_core.env import Bridge, Env
from envharness_core.errors import unknown
from envharness_core.jsondata import Json, JsonObject, canonical, copy_object
from envharness_core.layer import Layer
from envharness_core.tools import Tool

T = TypeVar("T")

_GOALS = {"three": 3, "five": 5, "eight": 8}


class Counter(Bridge[NoConfig]):
    """Counts to a goal and submits: a live snapshot, a submission that is latched, and that ``resume`` clears."""

    capabilities = Capabilities(upstream="counter", version="1", snapshot="live", resumable=True)
    splits = ("train", "test")
    env_state_schema = "count: int, the count\nsubmitted: bool, whether it was submitted"
    solutions: tuple[str, ...] = ("count",)

    def __init__(self, config: NoConfig | None = None) -> None:
        super().__init__(config or NoConfig())
        self._task, self._count, self._submitted = "", 0, False

    def tools(self) -> Sequence[Tool]:
        """Return add and submit."""
        return _counter_tools()

    def add(self, amount: int = 1) -> None:
        """Add to the count."""

    def submit(self) -> None:
        """Submit the count, which ends the episode."""

    def list_tasks(self, split: str, limit: int | None = None) -> list[TaskSummary]:
        """Return the goals of a split."""
        self.check_split(split)
        names = [name for name in _GOALS if (name == "eight") == (split == "test")]
        return [TaskSummary(name, split, f"Count to {name}.") for name in names][:limit]

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Start at zero."""
        task = self.task_of(options)
        if task not in _GOALS:
            raise unknown("task", task, _GOALS, where="counter")
        self._task, self._count, self._submitted = task, 0, False
        return ResetResponse(self.observe(), f"Count to {task} and submit.")

    def step(self, action: Action) -> StepResponse:
        """Add, or submit."""
        if action.name == "submit":
            self._submitted = True
        else:
            self._count += cast("int", action.kwargs.get("amount", 1))
        reward = float(self.evaluate().success)
        return StepResponse(self.observe(), reward=reward, terminated=self._submitted)

    def observe(self) -> Observation:
        """Return the count."""
        return Observation(f"The count is {self._count}.", {"count": self._count})

    def evaluate(self) -> Verdict:
        """Succeed iff the goal was submitted."""
        success = self._submitted and self._count == _GOALS.get(self._task)
        return Verdict(success=success, score=float(success), metrics={"count": self._count})

    def get_env_state(self) -> EnvState:
        """Return the fields of ``env_state_schema``."""
        return EnvState({"count": self._count, "submitted": self._submitted})

    def save_state(self) -> JsonObject:
        """Return everything."""
        return {"task": self._task, "count": self._count, "submitted": self._submitted}

    def load_state(self, state: JsonObject) -> None:
        """Become what was saved."""
        self._task = cast("str", state["task"])
        self._count = cast("int", state["count"])
        self._submitted = cast("bool", state["submitted"])

    def resume(self) -> None:
        """Take the submission back."""
        self._submitted = False

    def solution(self, way: str) -> Sequence[Action] | None:
        """Add what is missing, and submit; None where something else was submitted."""
        missing = _GOALS.get(self._task, 0) - self._count
        if self._submitted:
            return None if missing else ()
        return [*([Action("add", {"amount": missing})] if missing else []), Action("submit")]


@cache
def _counter_tools() -> tuple[Tool, ...]:
    return Tool.of(Counter.add), Tool.of(Counter.submit)


class Dice(Counter):
    """Adds what a die that nobody can seed shows, and says that it isn't deterministic."""

    capabilities = Capabilities(
        upstream="dice", version="1", snapshot="live", resumable=True, deterministic=False
    )
    solutions = ()

    def step(self, action: Action) -> StepResponse:
        """Roll, or submit."""
        rolled = Action("add", {"amount": SystemRandom().randint(1, 6)})
        return super().step(rolled if action.name == "add" else action)


@frozen
class FailingConfig:
    """Where a bridge fails.

    Args:
        call: the call that raises.
        after: how many calls of it succeed before, in each instance.
    """

    call: Literal["reset", "step", "observe", "evaluate", "close", "step_reward", "solution", "rest"] = "step"
    after: int = field(default=0, validator=validators.ge(0))


class Failing(Counter):
    """A counter whose runtime breaks down."""

    def __init__(self, config: FailingConfig) -> None:
        super().__init__()
        self._failing = config
        self._calls = 0

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Reset, until that fails."""
        self._fail("reset")
        return super().reset(seed, options)

    def step(self, action: Action) -> StepResponse:
        """Step, until that fails."""
        self._fail("step")
        return super().step(action)

    def observe(self) -> Observation:
        """Observe, until that fails."""
        self._fail("observe")
        return super().observe()

    def evaluate(self) -> Verdict:
        """Grade, until that fails."""
        self._fail("evaluate")
        return super().evaluate()

    def step_reward(self, info: JsonObject) -> float | None:
        """Offer nothing, until that fails."""
        self._fail("step_reward")
        return super().step_reward(info)

    def solution(self, way: str) -> Sequence[Action] | None:
        """Solve, until that fails."""
        self._fail("solution")
        return super().solution(way)

    def rest(self) -> None:
        """Rest, until that fails."""
        self._fail("rest")

    def close(self) -> None:
        """Close, until that fails."""
        self._fail("close")

    def _fail(self, call: str) -> None:
        if call == self._failing.call:
            self._calls += 1
            if self._calls > self._failing.after:
                raise ConnectionError(f"the runtime went away during {call}")


class PassThrough(Layer[NoConfig]):
    """Changes nothing."""


class Drawing(Layer[NoConfig]):
    """Changes nothing, but draws from its random stream at each step."""

    def step(self, action: Action) -> StepResponse:
        """Draw, and pass on."""
        self.random.random()
        return self.inner.step(action)


class Watch(Layer[NoConfig]):
    """Changes nothing, and notices what its neighbours do with the data that it hands them.

    ``problems`` says what was written to, ``closes`` counts how often it was closed.
    """

    def __init__(self, inner: Env, config: NoConfig) -> None:
        super().__init__(inner, config)
        self.closes = 0
        self._handed: list[tuple[str, Callable[[], bytes], bytes]] = []

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Reset, and remember options and response."""
        given = self._hand("the options", copy_object(options))
        response = super().reset(seed, given)
        self._hand("a reset's info", response.info)
        self._hand("a reset's observation", response.observation.data)
        return response

    def step(self, action: Action) -> StepResponse:
        """Step, and remember action and response."""
        given = Action(action.name, self._hand("an action", copy_object(action.kwargs)))
        response = self.inner.step(given)
        self._hand("a response's info", response.info)
        self._hand("a response's observation", response.observation.data)
        return response

    def observe(self) -> Observation:
        """Observe, and remember what."""
        observation = self.inner.observe()
        self._hand("an observation", observation.data)
        return observation

    def close(self) -> None:
        """Count, and close."""
        self.closes += 1
        super().close()

    def problems(self) -> list[str]:
        """Say which of the data that was handed over has been written to since."""
        return [f"{what} was written to" for what, now, then in self._handed if _said(now) != then]

    def _hand(self, what: str, data: JsonObject) -> JsonObject:
        self._handed.append((what, lambda: canonical(data), canonical(data)))
        return data


def _said(encode: Callable[[], bytes]) -> bytes:
    try:
        return encode()
    except (TypeError, ValueError):
        return b"no longer JSON"
