"""Rules: three hooks on the step loop, with what they may change fixed by type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from envharness_core.component import ConfigT
from envharness_core.data import (
    Action,
    Blocked,
    Observation,
    ResetResponse,
    StepResponse,
)
from envharness_core.env import Env
from envharness_core.errors import LayerError, nearest
from envharness_core.hooks import (
    HOOKS,
    Hooks,
    PassThrough,
    loaded_observation,
    saved_observation,
    unless_same,
)
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.layer import Layer
from envharness_core.warn import warn


class Rules(PassThrough, Layer[ConfigT]):
    """A layer of three hooks; a trusted subclass in a plugin overrides those that it wants.

    The layer keeps the observation that it last showed, where that isn't what it was given: ``observe()`` returns it,
    and so does a blocked step, with the reason in front. A hook gets copies. What it may change is fixed: an action's
    name and arguments, observations, info (the keys that were there survive), ``truncated``, and ``terminated`` from
    true to false where the bridge is resumable. The reward passes through. ``env_state.extras`` is scratch, empty at
    each reset and after a replay, where
    the random stream begins anew as well. The smallest one::

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
        self._hooks = Hooks(self)
        self._shown: Observation | None = None
        """What was last shown; None where that was what is inside."""
        self._told: set[str] = set()

    @property
    def extras(self) -> JsonObject:
        """What hooks know as ``env_state.extras``."""
        return self._hooks.extras

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        response = super().reset(seed, options)
        self._hooks.extras = {}
        self._shown = None
        if not self._hooks.filters_observations:
            return response
        shown = self._hooks.observation(response.observation, self.inner.get_env_state())
        self._shown = unless_same(response.observation, shown)
        return evolve(response, observation=shown)

    def step(self, action: Action) -> StepResponse:
        hooks = self._hooks
        if hooks.filters_actions:
            allowed = hooks.action(action, self.inner.get_env_state())
            if isinstance(allowed, Blocked):
                shown = self.observe().preceded_by(allowed.reason)
                return StepResponse(shown, info={"blocked": allowed.reason})
            action = allowed
        response = self.inner.step(action)
        return self._reshaped(action, response) if hooks.reshapes else response

    def observe(self) -> Observation:
        return self.inner.observe() if self._shown is None else self._shown

    def notify_replay_complete(self) -> None:
        super().notify_replay_complete()
        self._hooks.extras = {}
        self._random = None

    def own_state(self) -> JsonObject:
        return {"extras": self._hooks.extras, "shown": saved_observation(self._shown)}

    def restore(self, state: JsonObject) -> None:
        self._hooks.extras = copy_object(state["extras"])
        self._shown = loaded_observation(state["shown"])

    def _reshaped(self, action: Action, response: StepResponse) -> StepResponse:
        resumable = self.capabilities.resumable
        state = self.inner.get_env_state()
        reshaped = self._hooks.response(action, response, state, resumable=resumable)
        if response.ended and not reshaped.ended:
            self.inner.resume()
        self._shown = unless_same(response.observation, reshaped.observation)
        if self._hooks.clamped - self._told:
            self._told |= self._hooks.clamped
            warn("rules_clamped", layer=type(self).__name__, kept=sorted(self._told))
        return reshaped
