"""Hooks: the three functions of a Rules layer, called with copies and held to what they may change.

The same code holds trusted hooks in the runner's process and generated ones in the sandbox.
"""

from __future__ import annotations

import msgspec

from envharness_core.checked import checked_observation, checked_response, checked_text
from envharness_core.data import Action, Blocked, EnvState, Observation, StepResponse
from envharness_core.errors import PLUGIN_FAULTS, DataError, RulesError
from envharness_core.jsondata import Json, JsonObject, copy_object

HOOKS = ("filter_action", "modify_transition", "filter_observation")
"""The hooks that a Rules layer may define."""

RESERVED = ("blocked", "malformed", "handoff", "setup", "step_reward_error", "transient_error")
"""Keys of info by which the core says what it did itself."""

_encode = msgspec.msgpack.Encoder().encode


class PassThrough:
    """The three hooks, each of which changes nothing; a layer of rules overrides those that it wants."""

    def filter_action(self, action: Action, env_state: EnvState) -> Action | Blocked:
        """Return the action to do instead, or ``Blocked`` with a reason; sees the state before the step."""
        return action

    def modify_transition(self, action: Action, response: StepResponse, env_state: EnvState) -> StepResponse:
        """Return the response to give instead; gets this layer's filtered action and the state after the step."""
        return response

    def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
        """Return what to show instead; called once for a reset and once for a step that isn't blocked."""
        return observation


class Hooks:
    """The hooks of one layer.

    A hook gets copies. What it may change is fixed by type: an action's name and arguments, observations, info (the
    keys that were there survive), ``truncated``, and ``terminated`` from true to false where the bridge is resumable.
    The reward passes through.

    Args:
        owner: the object that has the hooks; those that it leaves as they are aren't called.
    """

    def __init__(self, owner: PassThrough) -> None:
        self.owner = owner
        cls = type(owner)
        self.defined = tuple(name for name in HOOKS if getattr(cls, name) is not getattr(PassThrough, name))
        self.filters_actions = "filter_action" in self.defined
        self.modifies = "modify_transition" in self.defined
        self.filters_observations = "filter_observation" in self.defined
        self.reshapes = self.modifies or self.filters_observations
        """Whether anything is called after a step."""
        self.extras: JsonObject = {}
        """What hooks know as ``env_state.extras``."""
        self.clamped: set[str] = set()
        """What hooks tried to change in vain: ``terminated`` to true, or ``reward``."""

    def action(self, action: Action, state: JsonObject) -> Action | Blocked:
        """Ask ``filter_action``; ``state`` is the hook's to keep.

        Raises:
            RulesError: it raised, or returned what it may not.
        """
        given = Action(action.name, copy_object(action.kwargs))
        try:
            answer: object = self.owner.filter_action(given, EnvState(state, self.extras))
        except PLUGIN_FAULTS as error:
            raise _raised("filter_action", error) from error
        try:
            if isinstance(answer, Action):
                name = checked_text(answer.name, "name")
                return Action(name, copy_object(answer.kwargs, "kwargs"))
            if isinstance(answer, Blocked):
                return Blocked(_reason(answer.reason))
        except DataError as error:
            raise RulesError("filter_action", "contract", str(error)) from error
        raise _wrong("filter_action", "an Action or Blocked", answer)

    def response(
        self, action: Action, response: StepResponse, state: JsonObject, *, resumable: bool
    ) -> StepResponse:
        """Ask those hooks that come after a step; ``state`` is theirs to keep.

        Where the given response has ended and the returned one hasn't, the end was masked.

        Raises:
            RulesError: one raised, returned what it may not, or masked the end of what isn't resumable.
        """
        seen = EnvState(state, self.extras)
        if self.modifies:
            response = self._modified(action, response, seen, resumable=resumable)
        if not self.filters_observations:
            return response
        shown = self._filtered(checked_observation(response.observation), seen)
        return StepResponse(
            same_or(response.observation, shown),
            response.reward,
            response.terminated,
            response.truncated,
            response.info,
        )

    def observation(self, observation: Observation, state: JsonObject) -> Observation:
        """Ask ``filter_observation``; ``state`` is the hook's to keep.

        Raises:
            RulesError: it raised, or returned what it may not.
        """
        return self._filtered(checked_observation(observation), EnvState(state, self.extras))

    def _modified(
        self, action: Action, response: StepResponse, state: EnvState, *, resumable: bool
    ) -> StepResponse:
        given = checked_response(response)
        own_action = Action(action.name, copy_object(action.kwargs))
        try:
            answer: object = self.owner.modify_transition(own_action, given, state)
        except PLUGIN_FAULTS as error:
            raise _raised("modify_transition", error) from error
        if not isinstance(answer, StepResponse):
            raise _wrong("modify_transition", "a StepResponse", answer)
        try:
            checked = checked_response(answer)
        except DataError as error:
            raise RulesError("modify_transition", "contract", str(error)) from error
        if checked.terminated and not response.terminated:
            self.clamped.add("terminated")
        if checked.reward != response.reward:
            self.clamped.add("reward")
        masks = response.ended and not (checked.terminated or checked.truncated)
        if masks and not resumable:
            raise RulesError(
                "modify_transition", "contract", "the bridge isn't resumable, so its end can't be masked"
            )
        return StepResponse(
            same_or(response.observation, checked.observation),
            response.reward,
            response.terminated and not masks,
            checked.truncated,
            with_additions(response.info, checked.info),
        )

    def _filtered(self, given: Observation, state: EnvState) -> Observation:
        try:
            answer: object = self.owner.filter_observation(given, state)
        except PLUGIN_FAULTS as error:
            raise _raised("filter_observation", error) from error
        if not isinstance(answer, Observation):
            raise _wrong("filter_observation", "an Observation", answer)
        try:
            return checked_observation(answer)
        except DataError as error:
            raise RulesError("filter_observation", "contract", str(error)) from error


def same_or(given: Observation, shown: Observation) -> Observation:
    """Return what was given where what is shown is the same to the last bit, so that it needn't be told again."""
    return given if shown == given and _encode(shown) == _encode(given) else shown


def with_additions(info: JsonObject, proposed: JsonObject) -> JsonObject:
    """Return the info with what hooks may add to it: what was there stays, and so do the core's own words."""
    added = {key: value for key, value in proposed.items() if key not in info and key not in RESERVED}
    return {**added, **info} if added else info


def unless_same(given: Observation, shown: Observation) -> Observation | None:
    """Return what a layer shows, or None where that is what it was given: then it is read from inside again."""
    return None if shown == given else shown


def saved_observation(observation: Observation | None) -> JsonObject | None:
    """Return an observation as plain data, for a checkpoint."""
    return None if observation is None else {"text": observation.text, "data": observation.data}


def loaded_observation(saved: Json) -> Observation | None:
    """Take back what ``saved_observation`` returned."""
    return None if saved is None else Observation(**copy_object(saved))  # type: ignore[arg-type]


def _reason(reason: object) -> str:
    if not isinstance(reason, str) or not reason:
        raise RulesError("filter_action", "contract", "Blocked needs a reason in words")
    return checked_text(reason, "reason")


def _raised(hook: str, error: BaseException) -> RulesError:
    try:
        text = str(error)
    except PLUGIN_FAULTS:
        text = "which can't be printed"
    return RulesError(hook, "raised", f"{type(error).__name__}: {text}")


def _wrong(hook: str, expected: str, got: object) -> RulesError:
    hint = " (is a return missing?)" if got is None else ""
    return RulesError(hook, "contract", f"expected {expected}, got {type(got).__name__}{hint}")
