"""Rules: three hooks on the step loop, with what they may change fixed by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import evolve, field, frozen, validators

from envharness_core.component import ConfigT
from envharness_core.data import (
    Action,
    Blocked,
    EnvState,
    Observation,
    ResetResponse,
    StepResponse,
)
from envharness_core.env import Env
from envharness_core.errors import PLUGIN_FAULTS, ConfigError, DataError, LayerError, RulesError, nearest
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.layer import Layer
from envharness_core.recorder import checked_observation, checked_response

T = TypeVar("T")

HOOKS = ("filter_action", "modify_transition", "filter_observation")
"""The hooks that a Rules layer may define."""


class Rules(Layer[ConfigT]):
    """A layer of three hooks; a trusted subclass in a plugin overrides those that it wants.

    The layer keeps the observation that it last showed: ``observe()`` returns it, and so does a blocked step, with the
    reason in front. A hook gets copies. What it may change is fixed: an action's name and arguments, observations, info
    (the keys that were there survive), ``truncated``, and ``terminated`` from true to false where the bridge is
    resumable. The reward passes through. ``env_state.extras`` is scratch, empty at each reset and after a replay.
    The smallest one::

        class NoShouting(Rules):
            def filter_action(self, action, env_state):
                text = action.kwargs.get("text", "")
                return Blocked("Please don't shout.") if text.isupper() else action
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith(("filter_", "modify_")) and name not in HOOKS:
                raise LayerError(
                    f"{cls.__module__}.{cls.__qualname__}: there is no hook {name!r}{nearest(name, HOOKS)}; "
                    f"hooks: {', '.join(HOOKS)}"
                )

    def __init__(self, inner: Env, config: ConfigT) -> None:
        super().__init__(inner, config)
        cls = type(self)
        self._filters_actions = cls.filter_action is not Rules.filter_action
        self._modifies = cls.modify_transition is not Rules.modify_transition
        self._filters_observations = cls.filter_observation is not Rules.filter_observation
        self.extras: JsonObject = {}
        """What hooks know as ``env_state.extras``."""
        self._shown = Observation("")

    def filter_action(self, action: Action, env_state: EnvState) -> Action | Blocked:
        """Return the action to do instead, or ``Blocked`` with a reason; sees the state before the step."""
        return action

    def modify_transition(self, action: Action, response: StepResponse, env_state: EnvState) -> StepResponse:
        """Return the response to give instead; gets this layer's filtered action and the state after the step."""
        return response

    def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
        """Return what to show instead; called once for a reset and once for a step that isn't blocked."""
        return observation

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        response = super().reset(seed, options)
        self.extras = {}
        self._shown = response.observation
        if not self._filters_observations:
            return response
        self._shown = self._filtered(response.observation, self._state())
        return evolve(response, observation=self._shown)

    def step(self, action: Action) -> StepResponse:
        if self._filters_actions:
            allowed = self._allowed(action)
            if isinstance(allowed, Blocked):
                shown = self._shown.preceded_by(allowed.reason)
                return StepResponse(shown, info={"blocked": allowed.reason})
            action = allowed
        response = self.inner.step(action)
        if self._modifies or self._filters_observations:
            response = self._reshaped(action, response)
        self._shown = response.observation
        return response

    def observe(self) -> Observation:
        return self._shown

    def notify_replay_complete(self) -> None:
        super().notify_replay_complete()
        self.extras = {}

    def own_state(self) -> JsonObject:
        shown: JsonObject = {"text": self._shown.text, "data": self._shown.data}
        return {"extras": self.extras, "shown": shown}

    def restore(self, state: JsonObject) -> None:
        self.extras = copy_object(state["extras"])
        self._shown = Observation(**copy_object(state["shown"]))  # type: ignore[arg-type]

    def _state(self) -> EnvState:
        return EnvState(self.inner.get_env_state(), self.extras)

    def _allowed(self, action: Action) -> Action | Blocked:
        given = Action(action.name, copy_object(action.kwargs))
        answer = self._call("filter_action", self.filter_action, given, self._state())
        if isinstance(answer, Blocked):
            if not isinstance(answer.reason, str) or not answer.reason:
                raise RulesError("filter_action", "contract", "Blocked needs a reason in words")
            return answer
        if not isinstance(answer, Action):
            raise _wrong("filter_action", "an Action or Blocked", answer)
        if not isinstance(answer.name, str):
            raise _wrong("filter_action", "a tool's name as text", answer.name)
        return Action(answer.name, _strict("filter_action", lambda: copy_object(answer.kwargs, "kwargs")))

    def _reshaped(self, action: Action, response: StepResponse) -> StepResponse:
        state = self._state()
        if self._modifies:
            response = self._modified(action, response, state)
        if self._filters_observations:
            shown = self._filtered(response.observation, state)
            response = evolve(response, observation=shown)
        return response

    def _modified(self, action: Action, response: StepResponse, state: EnvState) -> StepResponse:
        given = checked_response(response)
        own_action = Action(action.name, copy_object(action.kwargs))
        answer = self._call("modify_transition", self.modify_transition, own_action, given, state)
        if not isinstance(answer, StepResponse):
            raise _wrong("modify_transition", "a StepResponse", answer)
        checked = _strict("modify_transition", lambda: checked_response(answer))
        terminated = response.terminated and checked.terminated
        if response.ended and not (terminated or checked.truncated):
            self._mask_end()
        return StepResponse(
            checked.observation,
            response.reward,
            terminated,
            checked.truncated,
            {**checked.info, **response.info},
        )

    def _mask_end(self) -> None:
        if not self.capabilities.resumable:
            raise RulesError(
                "modify_transition", "contract", "the bridge isn't resumable, so its end can't be masked"
            )
        self.inner.resume()

    def _filtered(self, observation: Observation, state: EnvState) -> Observation:
        given = checked_observation(observation)
        answer = self._call("filter_observation", self.filter_observation, given, state)
        if not isinstance(answer, Observation):
            raise _wrong("filter_observation", "an Observation", answer)
        return _strict("filter_observation", lambda: checked_observation(answer))

    def _call(self, hook: str, function: Callable[..., T], *args: Any) -> T:
        try:
            return function(*args)
        except PLUGIN_FAULTS as error:
            raise RulesError(hook, "raised", f"{type(error).__name__}: {error}") from error


@frozen
class SourceConfig:
    """Rules written by a designer.

    Args:
        source: Python source that defines ``class _Rules(Rules)``.
    """

    source: str = field(validator=validators.min_len(1))


def refuse_source(inner: Env, config: SourceConfig) -> Layer[SourceConfig]:
    """Refuse rules given as source code: they run in the rules sandbox only, and this version has none.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        "rules: source code runs only in the rules sandbox, which this version doesn't have yet; "
        "install a plugin with a trusted Rules subclass instead"
    )


def _wrong(hook: str, expected: str, got: object) -> RulesError:
    hint = " (is a return missing?)" if got is None else ""
    return RulesError(hook, "contract", f"expected {expected}, got {type(got).__name__}{hint}")


def _strict(hook: str, check: Callable[[], T]) -> T:
    try:
        return check()
    except DataError as error:
        raise RulesError(hook, "contract", str(error)) from error
