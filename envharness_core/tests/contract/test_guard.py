"""The guard: the order of calls, malformed calls, and what layers may not return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.checks.drive import snapshot
from envharness_core.data import Action, StepResponse
from envharness_core.errors import BridgeError, EpisodeOver, LayerError, OrderError
from envharness_core.guard import Guard
from envharness_core.layer import Layer
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.testing import malformed_actions

Guarded = Callable[..., tuple[Guard, Recorder]]
TASK: Any = {"task": "three"}


def test_nothing_goes_before_reset(guarded: Guarded) -> None:
    guard, _ = guarded()
    calls: list[Callable[[], object]] = [
        lambda: guard.step(Action("add")),
        guard.observe,
        guard.evaluate,
        guard.get_env_state,
        guard.save_state,
        guard.resume,
        guard.notify_replay_complete,
    ]
    for call in calls:
        with pytest.raises(OrderError, match="call reset first"):
            call()
    assert guard.tools()
    assert guard.capabilities.upstream == "counter"


def test_no_step_after_the_end_until_reset_or_resume(guarded: Guarded) -> None:
    guard, _ = guarded()
    guard.reset(0, TASK)
    assert guard.step(Action("submit")).terminated
    for _ in range(2):
        with pytest.raises(EpisodeOver, match="reset to start another"):
            guard.step(Action("add"))
    guard.evaluate()
    guard.observe()
    guard.resume()
    assert not guard.step(Action("add")).ended
    with pytest.raises(OrderError, match="hasn't ended"):
        guard.resume()


def test_nothing_goes_after_close(guarded: Guarded) -> None:
    guard, _ = guarded()
    guard.reset(0, TASK)
    guard.close()
    guard.close()
    for call in (lambda: guard.reset(0, TASK), lambda: guard.step(Action("add")), guard.evaluate):
        with pytest.raises(OrderError, match="closed"):
            call()


def test_after_an_error_the_episode_has_failed(plugins: Plugins) -> None:
    with build_stack(plugins, ComponentSpec("testing/failing", {"call": "step", "after": 1})) as stack:
        stack.reset(0, TASK)
        stack.step(Action("add"))
        with pytest.raises(BridgeError, match=r"Failing\.step: ConnectionError"):
            stack.step(Action("add"))
        assert repr(stack.phase) == "'failed'"
        with pytest.raises(OrderError, match="broke off with an error"):
            stack.step(Action("add"))
        stack.evaluate()
        stack.reset(0, TASK)
        assert repr(stack.phase) == "'running'"  # a repr, for mypy believes that calls change nothing


@pytest.mark.parametrize("seed", [True, "1", 1.0, None, -1, 2**64])
def test_a_seed_is_an_integer_of_64_bits(guarded: Guarded, seed: Any) -> None:
    guard, _ = guarded()
    with pytest.raises(OrderError, match="the seed must be an integer"):
        guard.reset(seed, TASK)
    guard.reset(2**64 - 1, TASK)


@pytest.mark.parametrize("kwargs", [None, [], [1], "text", 5, {"amount": "1"}, {1: 2}, {"amount": 10**30}])
def test_malformed_arguments_are_answered_and_the_episode_lives(guarded: Guarded, kwargs: Any) -> None:
    guard, recorder = guarded()
    guard.reset(0, TASK)
    before, shown = len(recorder.log), guard.observe()
    response = guard.step(Action("add", kwargs))
    problem = response.info["malformed"]
    assert response == StepResponse(
        shown.preceded_by(f"Malformed call: {problem}"), info={"malformed": problem}
    )
    assert len(recorder.log) == before
    assert guard.step(Action("add")).observation.data == {"count": 1}


def test_an_empty_text_is_no_arguments_at_all(guarded: Guarded) -> None:
    guard, recorder = guarded()
    guard.reset(0, TASK)
    empty: Any = ""
    assert "malformed" not in guard.step(Action("add", empty)).info
    assert guard.step(Action("submit", empty)).terminated
    assert [event.body["action"] for event in recorder.log.events(1)] == [
        {"name": "add", "kwargs": {}},
        {"name": "submit", "kwargs": {}},
    ]


@pytest.mark.parametrize("action", [None, "add", {"name": "add"}])
def test_what_is_no_action_is_malformed(guarded: Guarded, action: Any) -> None:
    guard, _ = guarded()
    guard.reset(0, TASK)
    assert "expected an Action" in str(guard.step(action).info["malformed"])


@given(data=st.data())
def test_whatever_is_malformed_leaves_the_world_untouched(guarded: Guarded, data: st.DataObject) -> None:
    guard, recorder = guarded()
    guard.reset(0, TASK)
    before = snapshot(guard)
    response = guard.step(data.draw(malformed_actions(guard.tools())))
    assert "malformed" in response.info
    response.observation.text.encode()
    assert snapshot(guard) == before
    assert [event.kind for event in recorder.log.events() if event.kind == "step"] == []


def _returning(**methods: Any) -> type[Layer]:
    return type("Odd", (Layer,), {name: lambda *_, value=value: value for name, value in methods.items()})


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("step", None),
        ("step", StepResponse(observation=None)),  # type: ignore[arg-type]
        ("step", "done"),
        ("observe", None),
        ("observe", "text"),
        ("get_env_state", {"handle": object()}),
        ("get_env_state", None),
        ("reset", None),
        ("reset", "started"),
    ],
)
def test_what_a_layer_may_not_return_is_a_layer_error(guarded: Guarded, call: str, value: Any) -> None:
    guard, _ = guarded(_returning(**{call: value}))
    if call != "reset":
        guard.reset(0, TASK)
    args: dict[str, tuple[Any, ...]] = {"reset": (0, TASK), "step": (Action("add"),)}
    with pytest.raises(LayerError, match="a layer returned what isn't allowed"):
        getattr(guard, call)(*args.get(call, ()))


def test_the_guard_gives_actions_as_copies(guarded: Guarded) -> None:
    class Greedy(Layer):
        def step(self, action: Action) -> StepResponse:
            action.kwargs.clear()
            return self.inner.step(action)

    guard, _ = guarded(Greedy)
    guard.reset(0, TASK)
    kwargs: Any = {"amount": 2}
    guard.step(Action("add", kwargs))
    assert kwargs == {"amount": 2}
