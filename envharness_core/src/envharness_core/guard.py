"""The guard: the order of calls, enforced once, outermost in every stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Literal, TypeAlias, TypeVar, cast

from envharness_core.checked import (
    checked_observation,
    checked_reset,
    checked_response,
    malformed,
)
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
from envharness_core.errors import CheckpointError, DataError, EpisodeOver, LayerError, OrderError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.layer import Layer, Wrapper
from envharness_core.recorder import Recorder
from envharness_core.tools import Tool, Toolbox

T = TypeVar("T")

Phase: TypeAlias = Literal["new", "running", "over", "failed", "closed"]
"""Where an episode is: not begun, going on, ended, broken by an error, released."""


class Guard(Env):
    """A stack's outside: refuses calls at the wrong time, malformed calls, and what layers may not return.

    After an error in ``step`` the episode has failed: only ``reset``, ``evaluate`` and ``close`` go on.
    """

    def __init__(self, inner: Env, recorders: Sequence[Recorder]) -> None:
        self._inner = inner
        self._recorders = tuple(recorders)
        for recorder in self._recorders:
            recorder.seal()
        self._tools = tuple(inner.tools())
        self._toolbox = Toolbox(self._tools)
        self._untouched = _passes_steps(inner)
        self.phase: Phase = "new"

    def __repr__(self) -> str:
        return f"Guard({self._inner!r})"

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    def tools(self) -> Sequence[Tool]:
        return self._tools

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        self._refuse_closed("reset")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise OrderError(f"reset: the seed must be an integer in [0, 2**64), got {seed!r}")
        given = copy_object(options, "options")
        layer_seed = given.get("layer_seed", seed)
        if isinstance(layer_seed, bool) or not isinstance(layer_seed, int) or layer_seed < 0:
            raise OrderError(f"reset: options.layer_seed must be an integer of 0 or more, got {layer_seed!r}")
        self.phase = "failed"
        self._recorders[0].admit(seed, given.get("task"))
        response = self._inner.reset(seed, given)
        checked = _checked(checked_reset, response)
        self._recorders[0].require_begun()
        self.phase = "running"
        return checked

    def step(self, action: Action) -> StepResponse:
        if self.phase != "running":
            self._refuse_step()
        action, problem = self._well_formed(action)
        if problem is not None:
            return malformed(self.observe(), problem)
        self.phase = "failed"
        response = self._inner.step(action)
        if not self.emitted(response):
            response = _checked(checked_response, response)
        self.phase = "over" if response.ended else "running"
        return response

    def emitted(self, response: StepResponse | None) -> bool:
        """Say whether a response is the very object that the bridge's recorder returned last: checked, and untouched.

        Known only where no layer's code stands between: one might have changed what is inside the object.
        """
        return self._untouched and response is not None and self._recorders[0].emitted is response

    def observe(self) -> Observation:
        self._refuse_new("observe")
        return _checked(checked_observation, self._inner.observe())

    def evaluate(self) -> Verdict:
        self._refuse_new("evaluate")
        return self._inner.evaluate()

    def get_env_state(self) -> EnvState:
        self._refuse_new("get_env_state")
        return EnvState(_checked(_checked_state, self._inner.get_env_state()))

    def resume(self) -> None:
        self._refuse_new("resume")
        if self.phase != "over":
            raise OrderError("resume: the episode hasn't ended")
        if not self.capabilities.resumable:
            raise OrderError("resume: the bridge isn't resumable; reset instead")
        self._inner.resume()
        self.phase = "running"

    def notify_replay_complete(self) -> None:
        self._refuse_new("notify_replay_complete")
        self._inner.notify_replay_complete()

    def step_reward(self, info: JsonObject) -> float | None:
        return self._inner.step_reward(info)

    def save_state(self) -> JsonObject:
        self._refuse_new("save_state")
        return {"phase": self.phase}

    def load_state(self, state: JsonObject) -> None:
        phase = state.get("phase")
        if phase not in ("running", "over", "failed"):
            raise CheckpointError(f"guard.phase: expected running, over or failed, got {phase!r}")
        self.phase = cast("Phase", phase)

    def close(self) -> None:
        if self.phase == "closed":
            return
        self.phase = "closed"
        with ExitStack() as closing:  # a layer that fails to close, or forgets to, leaves no bridge open
            for recorder in self._recorders:
                closing.callback(recorder.close)
            self._inner.close()

    def _well_formed(self, action: Action) -> tuple[Action, str | None]:
        given: object = action  # a policy may hand over anything, whatever its annotations say
        if not isinstance(given, Action):
            return Action(""), f"expected an Action, got {type(given).__name__}"
        said: object = action.kwargs
        if said == "":  # what some models send for a tool without arguments
            action = Action(action.name)
        problem = self._toolbox.problem_with(action)
        if problem is not None:
            return action, problem
        try:
            return Action(action.name, copy_object(action.kwargs, "kwargs")), None
        except DataError as error:
            return action, f"{action.name}: {error}"

    def _refuse_step(self) -> None:
        if self.phase == "over":
            raise EpisodeOver("step: the episode is over; reset to start another")
        if self.phase == "failed":
            raise OrderError("step: the episode broke off with an error; reset to start another")
        self._refuse_new("step")

    def _refuse_new(self, call: str) -> None:
        self._refuse_closed(call)
        if self.phase == "new":
            raise OrderError(f"{call}: call reset first")

    def _refuse_closed(self, call: str) -> None:
        if self.phase == "closed":
            raise OrderError(f"{call}: the environment is closed")


def _checked_state(state: object) -> JsonObject:
    return copy_object(state, "state")


def _passes_steps(env: Env) -> bool:
    """Say whether every layer leaves ``step`` as the base has it, down to a recorder."""
    while isinstance(env, Layer) and getattr(env.step, "__func__", None) is Wrapper.step:
        env = env.inner
    return isinstance(env, Recorder)


def _checked(check: Callable[[object], T], value: object) -> T:
    try:
        return check(value)
    except DataError as error:
        raise LayerError(f"a layer returned what isn't allowed: {error}") from error
