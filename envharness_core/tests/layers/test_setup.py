"""Setup: what it replays, what it says of it, and what can't be replayed."""

from __future__ import annotations

from typing import Any

import pytest

from envharness_core.data import Action
from envharness_core.errors import ConfigError, SetupError
from envharness_core.jsondata import Json
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack

COUNTER = ComponentSpec("testing/counter")
TASK: Any = {"task": "three"}


def setup(*actions: tuple[str, Json]) -> ComponentSpec:
    return ComponentSpec("setup", {"actions": [{"name": name, "kwargs": kwargs} for name, kwargs in actions]})


def test_the_agent_starts_after_the_replay_with_the_task_as_it_was_told(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [setup(("add", {"amount": 2}), ("add", {}))]) as stack:
        first = stack.reset(0, TASK)
        assert first.observation.text == "The count is 3."
        assert first.instruction == "Count to three and submit."
        assert first.info == {"setup": [{"actions": 2, "blocked": []}]}
        assert [event.kind for event in stack.events()[0]] == ["reset", "step", "step", "notify"]
        stack.step(Action("submit"))
        assert stack.evaluate().success


def test_setups_stack_and_say_so_innermost_first(plugins: Plugins) -> None:
    both = [setup(("add", {})), setup(("add", {}), ("add", {}))]
    with build_stack(plugins, COUNTER, both) as stack:
        first = stack.reset(0, TASK)
        assert first.info["setup"] == [{"actions": 1, "blocked": []}, {"actions": 2, "blocked": []}]
        assert first.observation.data == {"count": 3}
        assert stack.reset(1, TASK).observation == first.observation


def test_the_text_worlds_step_limit_is_given_back(plugins: Plugins) -> None:
    world = ComponentSpec("testing/text_world", {"limit": 3})
    with build_stack(plugins, world, [setup(("do", {"text": "look"}), ("do", {"text": "look"}))]) as stack:
        stack.reset(0, {"task": "ring"})
        look = Action("do", {"text": "look"})
        assert [stack.step(look).truncated for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("actions", "index", "action", "problem"),
    [
        ([("add", {}), ("multiply", {})], 1, "multiply()", "malformed: unknown tool 'multiply'"),
        ([("add", {"amount": "2"})], 0, 'add(amount="2")', "malformed: add: Expected `int`, got `str`"),
        ([("add", {}), ("submit", {})], 1, "submit()", "ends the episode"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_index_and_action(
    plugins: Plugins, actions: list[tuple[str, Json]], index: int, action: str, problem: str
) -> None:
    with pytest.raises(SetupError) as caught, build_stack(plugins, COUNTER, [setup(*actions)]) as stack:
        stack.reset(0, TASK)
    assert (caught.value.index, caught.value.action) == (index, action)
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"setup action {index}, {action}: ")


def test_a_replay_that_a_layer_inside_ends_is_refused(plugins: Plugins) -> None:
    layers = [ComponentSpec("budget", {"steps": 2}), setup(("add", {}), ("add", {}))]
    with (
        build_stack(plugins, COUNTER, layers) as stack,
        pytest.raises(SetupError, match=r"setup action 1, add\(\): ends the episode"),
    ):
        stack.reset(0, TASK)


@pytest.mark.parametrize("actions", [[], "add", [{"kwargs": {}}], [{"name": "add", "arguments": {}}]])
def test_a_wrong_config_is_the_users_error(plugins: Plugins, actions: Any) -> None:
    with pytest.raises(ConfigError, match="actions"):
        build_stack(plugins, COUNTER, [ComponentSpec("setup", {"actions": actions})])


def test_faults_start_their_streak_anew_after_a_replay(plugins: Plugins) -> None:
    layers = [ComponentSpec("faults", {"rate": 1.0, "streak": 2}), setup(("add", {}))]
    with build_stack(plugins, COUNTER, layers) as stack:
        stack.reset(0, TASK)
        failed = ["transient_error" in stack.step(Action("add")).info for _ in range(4)]
        assert failed == [True, True, False, True]
