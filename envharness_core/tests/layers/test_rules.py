"""Rules: each sentence of the architecture about the three hooks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from envharness_core.data import Action, Blocked, EnvState, Observation, StepResponse
from envharness_core.errors import LayerError, RulesError
from envharness_core.guard import Guard
from envharness_core.jsondata import JsonObject
from envharness_core.layer import Layer
from envharness_core.layers.rules import Rules
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.testing import Counter, TextWorld

Guarded = Callable[..., tuple[Guard, Recorder]]
TASK: Any = {"task": "three"}
ADD, SUBMIT = Action("add"), Action("submit")


def rules(**hooks: Any) -> type[Rules]:
    """Make a Rules class of plain functions, which take what a hook takes, without self."""
    return type("Made", (Rules,), {name: staticmethod(hook) for name, hook in hooks.items()})


def started(guarded: Guarded, *classes: Any, **kwargs: Any) -> tuple[Guard, Recorder]:
    guard, recorder = guarded(*classes, **kwargs)
    guard.reset(0, TASK)
    return guard, recorder


class StateReads(Layer):
    """Counts how often the state is read."""

    reads = 0

    def get_env_state(self) -> EnvState:
        type(self).reads += 1
        return self.inner.get_env_state()


def test_a_filter_sees_the_state_before_the_step_and_the_others_after_it(guarded: Guarded) -> None:
    seen: list[tuple[str, Any]] = []

    def note(name: str, state: EnvState) -> None:
        seen.append((name, state.count))

    def before(action: Action, state: EnvState) -> Action:
        note("filter_action", state)
        return action

    def after(action: Action, response: StepResponse, state: EnvState) -> StepResponse:
        note("modify_transition", state)
        return response

    def shown(observation: Observation, state: EnvState) -> Observation:
        note("filter_observation", state)
        return observation

    hooks = rules(filter_action=before, modify_transition=after, filter_observation=shown)
    guard, _ = started(guarded, hooks)
    guard.step(ADD)
    assert seen == [
        ("filter_observation", 0),
        ("filter_action", 0),
        ("modify_transition", 1),
        ("filter_observation", 1),
    ]


@pytest.mark.parametrize(
    ("hooks", "reads"),
    [
        ({}, 0),
        ({"filter_action": lambda action, _: action}, 1),
        ({"modify_transition": lambda _, response, __: response}, 1),
        ({"filter_observation": lambda observation, _: observation}, 2),
    ],
)
def test_state_is_read_only_for_hooks_that_are_overridden(
    guarded: Guarded, hooks: dict[str, Any], reads: int
) -> None:
    StateReads.reads = 0
    guard, _ = started(guarded, StateReads, rules(**hooks))
    guard.step(ADD)
    assert StateReads.reads == reads


def test_twelve_layers_read_the_state_at_most_once_each_at_a_reset(guarded: Guarded) -> None:
    StateReads.reads = 0
    started(guarded, StateReads, *[rules(filter_observation=lambda observation, _: observation)] * 12)
    assert StateReads.reads == 12


def test_modify_transition_gets_this_layers_filtered_action_and_not_its_own_block(guarded: Guarded) -> None:
    got: list[Action] = []

    def mapped(action: Action, _: EnvState) -> Action | Blocked:
        return Blocked("no") if action.kwargs.get("amount") == 9 else Action("add", {"amount": 2})

    def heard(action: Action, response: StepResponse, _: EnvState) -> StepResponse:
        got.append(action)
        return response

    guard, recorder = started(guarded, rules(filter_action=mapped, modify_transition=heard))
    assert guard.step(ADD).observation.data == {"count": 2}
    assert guard.step(Action("add", {"amount": 9})).info == {"blocked": "no"}
    assert got == [Action("add", {"amount": 2})]
    assert [event.action for event in recorder.log.events(1)] == [Action("add", {"amount": 2})]


def test_an_inner_block_passes_the_outer_hooks(guarded: Guarded) -> None:
    inner = rules(filter_action=lambda *_: Blocked("inside"))
    outer = rules(modify_transition=lambda _, response, __: evolve(response, info={"seen": True}))
    guard, recorder = started(guarded, inner, outer)
    assert guard.step(ADD).info == {"blocked": "inside", "seen": True}
    assert len(recorder.log) == 1


def test_a_block_shows_its_reason_before_what_was_last_shown_and_changes_nothing(guarded: Guarded) -> None:
    def only_once(action: Action, state: EnvState) -> Action | Blocked:
        if state.extras.get("done"):
            return Blocked("Enough.")
        state.extras["done"] = True
        return action

    def fake(_: Action, response: StepResponse, __: EnvState) -> StepResponse:
        return evolve(response, observation=Observation("It exploded.", {"fake": True}))

    guard, recorder = started(guarded, rules(filter_action=only_once, modify_transition=fake))
    guard.step(ADD)
    assert guard.observe() == Observation("It exploded.", {"fake": True})
    for _ in range(2):  # the reason doesn't pile up
        response = guard.step(ADD)
        shown = Observation("Enough.\n\nIt exploded.", {"fake": True})
        assert response == StepResponse(shown, info={"blocked": "Enough."})
    assert guard.observe() == Observation("It exploded.", {"fake": True})
    assert len(recorder.log) == 2


def test_a_block_counts_against_limits_outside(plugins: Plugins) -> None:
    layers = [ComponentSpec("closed", {"tool": "add"}), ComponentSpec("budget", {"steps": 2})]
    with build_stack(plugins, ComponentSpec("testing/counter"), layers) as stack:
        stack.reset(0, TASK)
        assert [stack.step(ADD).truncated for _ in range(2)] == [False, True]


def test_filter_observation_is_called_once_for_a_reset_and_once_for_a_step(guarded: Guarded) -> None:
    calls: list[str] = []

    def shown(observation: Observation, _: EnvState) -> Observation:
        calls.append(observation.text)
        return observation.preceded_by("shown")

    guard, _ = guarded(rules(filter_observation=shown))
    first = guard.reset(0, TASK)
    assert guard.observe() == guard.observe() == first.observation == Observation(
        "shown\n\nThe count is 0.", {"count": 0}
    )  # fmt: skip
    assert guard.step(ADD).observation.text == "shown\n\nThe count is 1."
    assert calls == ["The count is 0.", "The count is 1."]


@pytest.mark.parametrize("reward", [99, 99.0, -1])
def test_a_reward_passes_through_unchanged(guarded: Guarded, reward: float) -> None:
    guard, _ = started(guarded, rules(modify_transition=lambda _, r, __: evolve(r, reward=reward)))
    assert guard.step(ADD).reward == 0
    guard.step(Action("add", {"amount": 2}))
    assert guard.step(SUBMIT).reward == 1


def test_info_may_grow_and_the_bridges_own_keys_survive(guarded: Guarded) -> None:
    class Informing(Counter):
        def step(self, action: Action) -> StepResponse:
            return evolve(super().step(action), info={"own": 1, "kept": 2})

    def change(_: Action, response: StepResponse, __: EnvState) -> StepResponse:
        return evolve(response, info={"own": "forged", "more": True})

    guard, _ = started(guarded, rules(modify_transition=change), bridge=Informing())
    assert guard.step(ADD).info == {"own": 1, "kept": 2, "more": True}


def test_an_end_cannot_be_invented_but_truncation_can(guarded: Guarded) -> None:
    forged = rules(modify_transition=lambda _, r, __: evolve(r, terminated=True))
    guard, _ = started(guarded, forged)
    assert not guard.step(ADD).terminated
    cut = rules(modify_transition=lambda _, r, __: evolve(r, truncated=True))
    guard, _ = started(guarded, cut)
    response = guard.step(ADD)
    assert (response.terminated, response.truncated) == (False, True)
    guard, _ = started(guarded, cut)
    assert (guard.step(SUBMIT).terminated, guard.phase) == (True, "over")


MASK = rules(modify_transition=lambda _, r, __: evolve(r, terminated=False, truncated=False))


def test_a_masked_end_resumes_the_bridge_and_clears_its_submission(guarded: Guarded) -> None:
    guard, recorder = started(guarded, MASK)
    guard.step(Action("add", {"amount": 3}))
    response = guard.step(SUBMIT)
    assert (response.terminated, response.reward) == (False, 1.0)
    assert [event.kind for event in recorder.log.events()] == ["reset", "step", "step", "resume"]
    assert not guard.evaluate().success  # the latched submission is cleared
    assert not guard.step(ADD).ended


def test_a_masked_end_of_what_cannot_be_resumed_is_a_contract_fault(guarded: Guarded) -> None:
    guard, recorder = guarded(MASK, bridge=TextWorld(None))
    guard.reset(0, {"task": "ring"})
    for _ in range(19):
        guard.step(Action("do", {"text": "look"}))
    with pytest.raises(RulesError, match="isn't resumable") as caught:
        guard.step(Action("do", {"text": "look"}))
    assert (caught.value.hook, caught.value.kind) == ("modify_transition", "contract")
    assert guard.phase == "failed"
    assert "resume" not in [event.kind for event in recorder.log.events()]


def test_extras_are_empty_at_each_reset_and_after_a_replay(guarded: Guarded) -> None:
    seen: list[Any] = []

    def count(action: Action, state: EnvState) -> Action:
        seen.append(dict(state.extras))
        state.extras["n"] = len(seen)
        return action

    guard, _ = started(guarded, rules(filter_action=count))
    guard.step(ADD)
    guard.step(ADD)
    guard.notify_replay_complete()
    guard.step(ADD)
    guard.reset(0, TASK)
    guard.step(ADD)
    assert seen == [{}, {"n": 1}, {}, {}]


def test_two_layers_have_a_scratch_each(guarded: Guarded) -> None:
    def count(action: Action, state: EnvState) -> Action:
        state.extras["n"] = int(str(state.extras.get("n", 0))) + 1
        return action

    guard, _ = guarded(rules(filter_action=count), rules(filter_action=count))
    guard.reset(0, TASK)
    guard.step(ADD)
    outer: Any = guard._inner
    assert outer.own_state()["extras"] == outer.inner.own_state()["extras"] == {"n": 1}


HOOKS = ("filter_action", "modify_transition", "filter_observation")


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, r"got NoneType \(is a return missing\?\)"),
        ("text", "got str"),
        ({}, "got dict"),
    ],
)
def test_a_hook_that_forgets_return_is_named(guarded: Guarded, hook: str, answer: Any, says: str) -> None:
    guard, _ = guarded(rules(**{hook: lambda *_: answer}))
    with pytest.raises(RulesError, match=says) as caught:
        start_and_step(guard)
    assert (caught.value.hook, caught.value.kind) == (hook, "contract")
    assert str(caught.value).startswith(f"{hook} (contract): expected ")


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_raises_is_named_with_the_cause(guarded: Guarded, hook: str) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh no")

    guard, _ = guarded(rules(**{hook: broken}))
    with pytest.raises(RulesError, match="ZeroDivisionError: oh no") as caught:
        start_and_step(guard)
    assert (caught.value.hook, caught.value.kind) == (hook, "raised")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("hook", "answer", "says"),
    [
        ("filter_action", Action("add", {"amount": float("nan")}), "kwargs.amount: nan"),
        ("filter_action", Action("add", []), "kwargs: expected an object"),  # type: ignore[arg-type]
        ("filter_action", Action(None), "name: expected text, got NoneType"),  # type: ignore[arg-type]
        ("filter_action", Blocked(""), "Blocked needs a reason"),
        ("filter_action", Blocked(None), "Blocked needs a reason"),  # type: ignore[arg-type]
        ("modify_transition", StepResponse(None), "observation: expected an Observation"),  # type: ignore[arg-type]
        ("modify_transition", StepResponse(Observation(""), info={"h": object()}), "info.h"),  # type: ignore[dict-item]
        ("modify_transition", StepResponse(Observation(""), reward=float("nan")), "reward"),
        ("modify_transition", StepResponse(Observation(""), truncated=1), "truncated"),  # type: ignore[arg-type]
        ("filter_observation", Observation("", {"s": {1}}), "data.s: set"),  # type: ignore[dict-item]
        ("filter_observation", Observation(b"x"), "observation.text: expected text"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_data_is_named_by_hook_and_path(
    guarded: Guarded, hook: str, answer: Any, says: str
) -> None:
    guard, _ = guarded(rules(**{hook: lambda *_: answer}))
    with pytest.raises(RulesError, match=says) as caught:
        start_and_step(guard)
    assert (caught.value.hook, caught.value.kind) == (hook, "contract")


def start_and_step(guard: Guard) -> None:
    guard.reset(0, TASK)
    guard.step(ADD)


def test_a_mapped_action_that_is_malformed_is_answered(guarded: Guarded) -> None:
    guard, recorder = started(guarded, rules(filter_action=lambda *_: Action("multiply")))
    assert "unknown tool 'multiply'" in str(guard.step(ADD).info["malformed"])
    assert len(recorder.log) == 1


def test_hooks_have_no_way_to_the_verdict_or_the_world(guarded: Guarded) -> None:
    def forge(action: Action, state: EnvState) -> Action:
        state["count"] = 3
        state["success"] = True
        action.kwargs["amount"] = 3
        return Action("add")

    guard, _ = started(guarded, rules(filter_action=forge))
    given: JsonObject = {"amount": 1}
    assert guard.step(Action("add", given)).observation.data == {"count": 1}
    assert given == {"amount": 1}
    assert guard.get_env_state() == {"count": 1, "submitted": False}


def test_overriding_evaluate_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(LayerError, match="Forged overrides evaluate: a verdict is the bridge's own"):
        type("Forged", (Rules,), {"evaluate": lambda _: None})


def test_the_layers_randomness_is_its_own(guarded: Guarded) -> None:
    class Random(Rules):
        def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
            return observation.preceded_by(f"{self.random.random()}")

    state = random.getstate()
    guard, _ = guarded(Random)
    first = guard.reset(0, {**TASK, "layer_seed": 4}).observation
    assert guard.reset(1, {**TASK, "layer_seed": 4}).observation == first
    assert guard.reset(0, {**TASK, "layer_seed": 5}).observation != first
    assert random.getstate() == state
