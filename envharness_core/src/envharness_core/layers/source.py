"""Rules as source code: hooks that a designer wrote, run in the rules sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, cast

import msgspec
from attrs import evolve, field, frozen, validators
from msgspec import Raw

from envharness_core.checked import checked_text
from envharness_core.data import Action, Capabilities, Observation, ResetResponse, StepResponse
from envharness_core.env import Env
from envharness_core.errors import CheckpointError, DataError, RulesError
from envharness_core.hooks import loaded_observation, saved_observation, with_additions
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.layer import Layer
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.faults import LONGEST
from envharness_core.sandbox.host import Sandbox, shared
from envharness_core.sandbox.wire import Wire
from envharness_core.seeds import derive
from envharness_core.text import printable
from envharness_core.warn import warn

_LONGEST = 200_000


@frozen
class SourceConfig:
    """Rules written by a designer.

    Args:
        source: Python source that defines ``class _Rules(Rules)`` with at least one of the hooks
            ``filter_action(self, action, env_state)``, ``modify_transition(self, action, response, env_state)`` and
            ``filter_observation(self, observation, env_state)``. It runs in the rules sandbox: only pure modules can be
            imported, and nothing outside can be reached.
    """

    source: str = field(validator=[validators.min_len(1), validators.max_len(_LONGEST)])

    @source.validator
    def _can_be_encoded(self, attribute: object, value: str) -> None:
        checked_text(value, "source")


class SourceRules(Layer[SourceConfig]):
    """Hooks given as source code; what they may change is what trusted ``Rules`` may.

    Each maximal run of adjacent layers of this kind shares one worker process, made anew at each reset, and takes two
    calls a step. Its outermost layer leads: it asks the worker for all of them. What comes back is a stranger's word,
    checked here. Faults are ``RulesError``s. A snapshot is valid at an episode's start only.
    """

    def __init__(self, inner: Env, config: SourceConfig, sandbox: Sandbox | None = None) -> None:
        super().__init__(inner, config)
        self._sandbox = sandbox or shared(SandboxConfig())
        self._sandbox.require()
        self.run: Run = inner.run if isinstance(inner, SourceRules) else Run(inner, self._sandbox)
        self.run.members.append(self)
        self.place = ""
        """Where the layer stands, such as ``layers[1]``; set by the stack."""
        self._capabilities = evolve(inner.capabilities, snapshot="episode")

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def stream(self) -> int:
        """The seed of the layer's random stream, the one that ``Layer.random`` has."""
        return derive(self._layer_seed, *self.identity)

    def check(self) -> None:
        wire = self._sandbox.worker()
        try:
            wire.ask(
                "source", p.Begin([p.Source(self.config.source, 0, check=True)], resumable=True), p.Loaded
            )
        finally:
            wire.close()

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        response = super().reset(seed, options)
        if not self._leads:
            return response
        return evolve(response, observation=self.run.reset(response.observation))

    def step(self, action: Action) -> StepResponse:
        return self.run.step(action) if self._leads else self.inner.step(action)

    def observe(self) -> Observation:
        return self.run.observed(self)

    def notify_replay_complete(self) -> None:
        super().notify_replay_complete()
        if self._leads:
            self.run.renew()

    def rest(self) -> None:
        self.run.close()

    def close(self) -> None:
        self.run.close()
        super().close()

    def own_state(self) -> JsonObject:
        given = self.run.saved() if self is self.run.members[0] else None
        return {"shown": saved_observation(self.run.shown(self)), "given": given}

    def restore(self, state: JsonObject) -> None:
        given = state["given"]
        if given is not None:
            start = cast("JsonObject", given)
            loaded_observation(start["observation"])
            copy_object(start["state"], "given.state")
        self.run.restore(self, loaded_observation(state["shown"]), cast("JsonObject | None", given))

    @property
    def _leads(self) -> bool:
        return self is self.run.members[-1]


class Run:
    """A run of adjacent layers, innermost first, over the environment inside of them, and its worker.

    The worker starts at a reset, or with the first call after a checkpoint was loaded: loading itself runs nothing.
    """

    def __init__(self, base: Env, sandbox: Sandbox) -> None:
        self.members: list[SourceRules] = []
        self._base = base
        self._sandbox = sandbox
        self._wire: Wire | None = None
        self._filters_actions = self._reshapes = False
        self._given: JsonObject | None = None
        """What the layers were given at the reset; None where they have begun anew since."""
        self._shown: Observation | None = None
        """What the outermost layer shows; None where that is what is inside of the run."""
        self._moved = False
        self._restored: dict[int, Observation | None] = {}
        """What each layer showed, of a run that was loaded and hasn't gone on yet."""
        self._told: set[str] = set()

    def reset(self, observation: Observation) -> Observation:
        """Make the layers anew and filter the first observation."""
        self._restored, self._moved = {}, False
        self._given = self._shown = None
        if self._begin():
            state = copy_object(self._base.get_env_state(), "state")
            self._given = {"observation": saved_observation(observation), "state": state}
            observation, self._shown = self._filtered(observation, state)
        return observation

    def step(self, action: Action) -> StepResponse:
        """Filter the action, do it, and reshape what came of it."""
        self._go_on()
        self._moved = True
        proposed: Action | None = action
        if self._filters_actions:
            state = self._state()
            answer = self._ask("filter_action", p.Before(action, state), p.Passed | p.Stopped)
            if isinstance(answer, p.Stopped):
                return self._stopped(answer, state)
            proposed = None
            if answer.name is not None:
                action = Action(answer.name, _told("filter_action", answer.kwargs or b"{}", "kwargs"))
        response = self._base.step(action)
        if not self._reshapes:
            return response
        return self._reshaped(response, p.After(proposed, response, self._state()), None)

    def renew(self) -> None:
        """Begin anew after a replay: fresh instances, empty scratch, rewound streams; what was shown stays."""
        self._go_on()
        self._ask("source", p.Renew(), p.Done)
        self._given = None
        self._moved = False

    def observed(self, member: SourceRules) -> Observation:
        """Return what a layer shows."""
        if member is self.members[-1] and not self._restored:
            shown = self._shown
        else:
            layers = self.members[: self.members.index(member) + 1]
            shown = next((own for own in map(self.shown, reversed(layers)) if own is not None), None)
        return self._base.observe() if shown is None else shown

    def shown(self, member: SourceRules) -> Observation | None:
        """Return what a layer last showed; None where that was what is inside of it."""
        index = self.members.index(member)
        if self._restored:
            return self._restored.get(index)
        if not self._reshapes or self._wire is None:
            return None
        shown = self._ask("source", p.Recall(), p.Shown).shown
        return _seen(shown[index]) if len(shown) == len(self.members) and shown[index] else None

    def saved(self) -> JsonObject | None:
        """Return what a loaded run has to be given again, to stand where this one does.

        Raises:
            CheckpointError: the episode has gone on.
        """
        if self._moved:
            raise CheckpointError("rules as source code can be saved at an episode's start only")
        return self._given

    def restore(self, member: SourceRules, shown: Observation | None, given: JsonObject | None) -> None:
        """Stand where the saved run stood, once something is asked."""
        self.close()
        self._restored[self.members.index(member)] = shown
        if member is self.members[0]:
            self._given, self._moved = given, False

    def close(self) -> None:
        """End the worker; idempotent."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _begin(self) -> bool:
        """Start a worker with the layers; return whether any filters observations."""
        self.close()
        self._wire = self._sandbox.worker()
        sources = [p.Source(member.config.source, member.stream) for member in self.members]
        resumable = self._base.capabilities.resumable
        loaded = self._ask("source", p.Begin(sources, resumable), p.Loaded)
        defined = {hook for hooks in loaded.hooks for hook in hooks}
        self._filters_actions = "filter_action" in defined
        self._reshapes = bool(defined & {"modify_transition", "filter_observation"})
        return "filter_observation" in defined

    def _go_on(self) -> None:
        """Start the worker of a run that was loaded, and bring it to where the saved one stood."""
        if not self._restored:
            return
        self._begin()
        if self._given is not None:
            given = copy_object(self._given)
            observation = cast("Observation", loaded_observation(given["observation"]))
            self._filtered(observation, cast("JsonObject", given["state"]))
        shown = [self._restored.get(index) for index in range(len(self.members))]
        self._ask("source", p.Show(shown), p.Done)
        self._shown = next((own for own in reversed(shown) if own is not None), None)
        self._restored = {}

    def _filtered(
        self, observation: Observation, state: JsonObject
    ) -> tuple[Observation, Observation | None]:
        """Return the filtered first observation, and the same where a layer changed it."""
        answer = self._ask("filter_observation", p.Reset(observation, p.raw(state)), p.Filtered)
        shown = observation if answer.seen is None else _seen(answer.seen)
        return shown, shown if answer.changed else None

    def _state(self) -> Raw:
        return p.raw(self._base.get_env_state())

    def _ask(self, hook: str, request: p.Message, kind: type[p.M] | UnionType) -> Any:
        if self._wire is None:
            raise RulesError(hook, "died", "its process has ended; reset to start another")
        try:
            return self._wire.ask(hook, request, kind)
        except RulesError as error:
            self._wire = None
            if len(self.members) > 1 and error.layer is not None and error.layer < len(self.members):
                error.name_layer(self.members[error.layer].place)
            raise
        except BaseException:
            self._wire = None
            raise

    def _stopped(self, answer: p.Stopped, state: Raw) -> StepResponse:
        """Answer a blocked step: the layers outside of the one that blocked see it as any other."""
        if not answer.reason or not 0 <= answer.layer < len(self.members):
            raise RulesError("filter_action", "protocol", "it blocked in a way that isn't one")
        own = None if answer.shown is None else _seen(answer.shown)
        shown = self._base.observe() if own is None else own
        response = StepResponse(shown.preceded_by(answer.reason), info={"blocked": answer.reason})
        start = answer.layer + 1
        if not self._reshapes or start == len(self.members):
            return response
        return self._reshaped(response, p.After(None, response, state, start), own)

    def _reshaped(
        self, response: StepResponse, request: p.After, otherwise: Observation | None
    ) -> StepResponse:
        """Put together what the hooks may have changed and what they may not; nothing is taken on trust.

        ``otherwise`` is what the run shows where none of the layers asked changes the observation.
        """
        made = self._ask("modify_transition", request, p.Reshaped)
        terminated = response.terminated and not made.resumed
        ended = terminated or made.truncated
        unasked = made.resumed and not self._base.capabilities.resumable
        if unasked or (response.ended and not ended and not made.resumed):
            raise RulesError("modify_transition", "protocol", "it masked an end that it may not mask")
        observation = response.observation if made.seen is None else _seen(made.seen)
        info = response.info
        if made.info is not None:
            info = with_additions(info, _told("modify_transition", made.info, "info"))
        if made.resumed:
            self._base.resume()
        self._shown = observation if made.changed else otherwise
        self._note(made.clamped)
        return StepResponse(observation, response.reward, terminated, made.truncated, info)

    def _note(self, clamped: list[str]) -> None:
        new = set(clamped) & {"reward", "terminated"} - self._told
        if new:
            self._told |= new
            warn("rules_clamped", layer="rules", kept=sorted(self._told))


def _seen(seen: p.Seen) -> Observation:
    return Observation(seen.text, _told("filter_observation", seen.data, "observation.data"))


def _told(hook: str, text: bytes, path: str) -> JsonObject:
    """Return data that a worker sent as JSON text.

    Raises:
        RulesError: it isn't that, or holds what isn't allowed.
    """
    try:
        return copy_object(p.from_text(text), path)
    except (DataError, msgspec.MsgspecError, RecursionError) as error:
        problem = printable(str(error)[:LONGEST])
        raise RulesError(hook, "protocol", problem) from None
