"""The recorder: the border of every bridge, innermost in every stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, cast, final

from envharness_core.checked import (
    checked_number,
    checked_observation,
    checked_reset,
    checked_response,
    checked_verdict,
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
from envharness_core.env import Bridge, Env
from envharness_core.errors import (
    PLUGIN_FAULTS,
    BridgeError,
    CheckpointError,
    ConfigError,
    DataError,
    EnvHarnessError,
    LayerError,
    VerifierError,
    unknown,
)
from envharness_core.events import Event, EventLog, encoded
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.tools import Tool, Toolbox


@final
class Recorder(Env):
    """A bridge behind its border.

    Calls are checked against the bridge's tools, so that a malformed one never reaches it; what comes back is checked
    and copied once; what did reach it is written to ``log``, from the last reset on.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._name = type(bridge).__name__
        with self._border("tools"):
            self._tools = tuple(bridge.tools())
            self._toolbox = Toolbox(self._tools)
        self._ended = False
        self._moved = False
        self._closed = False
        self._guarded = False
        self._admitted: tuple[int, Json] | None = None
        self.log = EventLog()
        self.emitted: StepResponse | None = None
        """The response that was last returned: whoever holds this very object knows that it is checked."""

    def __repr__(self) -> str:
        return f"Recorder({self._name})"

    @property
    def bridge(self) -> Bridge:
        """The bridge itself; for the stack that built it, not for layers."""
        return self._bridge

    @property
    def capabilities(self) -> Capabilities:
        return self._bridge.capabilities

    def tools(self) -> Sequence[Tool]:
        return self._tools

    def seal(self) -> None:
        """Have each reset allowed by ``admit`` from now on; what puts the recorder under a guard calls it."""
        self._guarded = True

    def admit(self, seed: int, task: Json) -> None:
        """Allow the next reset, with this seed and this task.

        Core code calls it as an episode or a leg begins: a layer can neither begin another one nor swap its task.
        """
        self._admitted = (seed, task)

    def require_begun(self) -> None:
        """Refuse an episode whose reset didn't come through.

        Raises:
            LayerError: a layer kept it.
        """
        if self._admitted is not None:
            self._admitted = None
            raise LayerError(
                f"a layer didn't pass the reset on to {self._name}: call super().reset(seed, options)"
            )

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        if self._guarded:
            self._refuse_another(seed, options.get("task"))
        self.log.clear()
        self._ended = self._moved = False
        given = copy_object(options, "options")
        with self._border("reset"):
            checked = checked_reset(self._bridge.reset(seed, copy_object(given)))
        self.log.append("reset", seed=seed, options=given, response=checked)
        return checked

    def step(self, action: Action) -> StepResponse:
        if self._ended:
            raise LayerError(
                f"a step reached {self._name} after its end: a layer that masks an end calls inner.resume() first"
            )
        problem = self._toolbox.problem_with(action)
        if problem is not None:
            return malformed(self.observe(), problem)
        given = Action(action.name, copy_object(action.kwargs, "kwargs"))
        reached = encoded(given)  # before the bridge has it
        with self._border("step"):
            checked = checked_response(self._bridge.step(given))
        self.log.append_step(reached, checked)
        self._moved = True
        self._ended = checked.ended
        self.emitted = checked
        return checked

    def observe(self) -> Observation:
        with self._border("observe"):
            return checked_observation(self._bridge.observe(), "observation")

    def evaluate(self) -> Verdict:
        """Ask the bridge.

        Raises:
            VerifierError: it raised, or what it returned is no verdict.
        """
        try:
            verdict = checked_verdict(self._bridge.evaluate())
        except PLUGIN_FAULTS as error:
            raise VerifierError(f"{self._name}.evaluate: {_said(error)}") from error
        self.log.append("evaluate", verdict=verdict)
        return verdict

    def get_env_state(self) -> EnvState:
        with self._border("get_env_state"):
            return EnvState(copy_object(self._bridge.get_env_state(), "state"))

    def resume(self) -> None:
        if not self.capabilities.resumable:
            raise LayerError(f"{self._name} is not resumable, so its end can't be masked")
        if not self._ended:  # it was a layer that had ended the episode
            return
        with self._border("resume"):
            self._bridge.resume()
        self.log.append("resume")
        self._ended = False

    def notify_replay_complete(self) -> None:
        with self._border("notify_replay_complete"):
            self._bridge.notify_replay_complete()
        self.log.append("notify")
        self._moved = False

    def step_reward(self, info: JsonObject) -> float | None:
        dense = self._bridge.step_reward(info)
        return None if dense is None else checked_number(dense, "step_reward")

    def solution(self, way: str = "") -> tuple[Action, ...] | None:
        """Ask the bridge for actions that solve the task from here; for the stack that built it, not for layers.

        Args:
            way: one of the bridge's ``solutions``; the first by default.

        Raises:
            ConfigError: the bridge knows no such way.
        """
        known = self._bridge.solutions
        if not known:
            raise ConfigError(f"{self._name} knows no solutions to its tasks: use another bridge or policy")
        if way and way not in known:
            raise unknown("way", way, known, where=f"solutions of {self._name}")
        with self._border("solution"):
            found = self._bridge.solution(way or known[0])
            return None if found is None else self._checked_solution(found)

    def rest(self) -> None:
        """Have the bridge let go of what only an episode needs."""
        with self._border("rest"):
            self._bridge.rest()

    def save_state(self) -> JsonObject:
        """Return the bridge's state and the events that led to it.

        Raises:
            CheckpointError: the bridge's states are valid at an episode's start only, and this isn't one.
        """
        if self._moved and self.capabilities.snapshot == "episode":
            raise CheckpointError(
                f"{self._name} can be saved at an episode's start only: save before the first step"
            )
        with self._border("save_state"):
            state = copy_object(self._bridge.save_state(), "state")
        events: list[Json] = [event.as_json() for event in self.log.events()]
        return {"bridge": state, "events": events, "ended": self._ended, "moved": self._moved}

    def load_state(self, state: JsonObject) -> None:
        try:
            events = [Event(**event) for event in cast("list[Any]", state["events"])]
            bridge, ended, moved = state["bridge"], bool(state["ended"]), bool(state["moved"])
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"env.state: not a recorder's state ({error!r})") from error
        with self._border("load_state"):
            self._bridge.load_state(copy_object(bridge, "env.state.bridge"))
            if self.capabilities.snapshot == "episode":
                self._repeat(events)
        self.log.replace(events)
        self._ended, self._moved = ended, moved

    def _repeat(self, events: Sequence[Event]) -> None:
        """Repeat a replay that came before the start: such a bridge's state is what a reset left."""
        for event in events:
            if event.kind == "step":
                problem = self._toolbox.problem_with(event.action)
                if problem is not None:
                    raise CheckpointError(f"env.state.events: {problem}")
                self._bridge.step(event.action)
            elif event.kind == "notify":
                self._bridge.notify_replay_complete()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with self._border("close"):
            self._bridge.close()

    def _checked_solution(self, found: object) -> tuple[Action, ...]:
        if not isinstance(found, Sequence) or not all(isinstance(action, Action) for action in found):
            raise DataError("", f"expected a sequence of Actions, got {found!r:.200}")
        for index, action in enumerate(found):
            problem = self._toolbox.problem_with(action)
            if problem is not None:
                raise DataError(f"[{index}]", problem)
        return tuple(Action(action.name, copy_object(action.kwargs, "kwargs")) for action in found)

    def _refuse_another(self, seed: int, task: Json) -> None:
        admitted, self._admitted = self._admitted, None
        if admitted is None:
            raise LayerError(f"a layer reset {self._name} within an episode; only the runner begins one")
        if admitted != (seed, task):
            raise LayerError(
                f"a layer reset {self._name} with seed {seed} and task {task!r} instead of {admitted[0]} and "
                f"{admitted[1]!r}; a layer may change how a task is played, not which"
            )

    def _border(self, call: str) -> _Border:
        return _Border(self._name, call)


class _Border:
    """What a bridge raises, or returns that isn't allowed, is a ``BridgeError`` that names bridge and call."""

    __slots__ = ("_call", "_name")

    def __init__(self, name: str, call: str) -> None:
        self._name = name
        self._call = call

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, DataError):
            raise BridgeError(f"{self._name}.{self._call} returned {error}") from error
        if isinstance(error, PLUGIN_FAULTS) and not isinstance(error, EnvHarnessError):
            raise BridgeError(f"{self._name}.{self._call}: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, EnvHarnessError) else f"{type(error).__name__}: {error}"
