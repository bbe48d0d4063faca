"""Link: two environments in one longer episode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.checks.drive import perform
from envharness_core.checks.replaying import require_bare_verdict
from envharness_core.data import Action
from envharness_core.errors import ConfigError, SetupError
from envharness_core.jsondata import Json
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack
from envharness_core.testing import actions

COUNTER = ComponentSpec("testing/counter")
TASK: Any = {"task": "three"}
ADD, SUBMIT, STOP = Action("add", {"amount": 3}), Action("submit"), Action("stop")
WIN_24 = [
    Action("combine", {"i": 2, "j": 3, "op": "*"}),
    Action("combine", {"i": 0, "j": 1, "op": "*"}),
    Action("combine", {"i": 0, "j": 1, "op": "*"}),
]  # 3 * 4 = 12, 1 * 2 = 2, 2 * 12 = 24


def link(use: str = "toy24", task: str = "1-2-3-4", **config: Json) -> ComponentSpec:
    return ComponentSpec("link", {"next": {"bridge": use, "task": task}, **config})


def kinds(stack: Stack) -> list[list[str]]:
    return [[event.kind for event in leg] for leg in stack.events()]


def test_the_hand_over_happens_within_the_step_that_ends_the_first_leg(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [link(banner="Next!")]) as stack:
        first = stack.reset(7, TASK)
        assert first.instruction == "Count to three and submit."
        stack.step(ADD)
        assert kinds(stack) == [["reset", "step"], []]  # nothing of the next leg before
        response = stack.step(SUBMIT)
        assert (response.terminated, response.truncated, response.reward) == (False, False, 1.0)
        assert response.observation.text.startswith("Next!\n\nMake 24 from 1, 2, 3, 4.")
        assert response.observation.text.endswith("[0] 1  [1] 2  [2] 3  [3] 4")
        assert response.observation.data["numbers"] == ["1", "2", "3", "4"]
        handoff: Any = response.info["handoff"]
        assert handoff["leg"] == 1
        assert handoff["instruction"].startswith("Make 24")
        assert kinds(stack) == [["reset", "step", "step", "evaluate"], ["reset"]]
        assert [stack.step(action).terminated for action in WIN_24] == [False, False, True]
        verdict = stack.evaluate()
        assert (verdict.success, verdict.score) == (True, 1.0)
        assert kinds(stack)[0].count("evaluate") == 1  # one evaluation of the first leg


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_verdict_is_the_conjunction_and_metrics_have_a_leg_each(
    plugins: Plugins, first: bool, second: bool
) -> None:
    todo = [*([ADD] if first else []), SUBMIT, *(WIN_24 if second else [STOP])]
    with build_stack(plugins, COUNTER, [link()]) as stack:
        perform(stack, "three", todo)
        verdict = stack.evaluate()
        assert verdict.success == (first and second)
        assert verdict.score == float(first and second)
        legs: Any = verdict.metrics["legs"]
        assert [leg["success"] for leg in legs] == [first, second]
        require_bare_verdict(plugins, stack, "link")


def test_a_leg_that_never_started_has_failed(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [link()]) as stack:
        perform(stack, "three", [ADD])
        verdict = stack.evaluate()
        assert (verdict.success, verdict.score) == (False, 0.0)
        legs: Any = verdict.metrics["legs"]
        assert legs[1] is None


def test_tools_are_the_union_and_those_of_the_other_leg_are_malformed(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [link()]) as stack:
        assert [tool.name for tool in stack.tools()] == ["add", "submit", "combine", "undo", "stop"]
        stack.reset(0, TASK)
        assert "unknown tool 'undo'" in str(stack.step(Action("undo")).info["malformed"])
        stack.step(SUBMIT)
        assert "unknown tool 'submit'" in str(stack.step(SUBMIT).info["malformed"])
        assert stack.phase == "running"


def test_equal_tools_are_shared_and_different_ones_of_one_name_refused(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [link("testing/counter", "five")]) as stack:
        assert [tool.name for tool in stack.tools()] == ["add", "submit"]
    with pytest.raises(ConfigError, match="legs' tools named 'add' have different schemas"):
        build_stack(
            Plugins({**plugins.modules, "tracked": "tracked_bridges"}),
            COUNTER,
            [link("tracked/clashing", "three")],
        )


def test_the_state_says_which_leg_is_on(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [link()]) as stack:
        stack.reset(0, TASK)
        assert stack.get_env_state() == {"leg": 0, "state": {"count": 0, "submitted": False}}
        stack.step(SUBMIT)
        assert stack.get_env_state().leg == 1


def test_a_reset_goes_back_to_the_first_leg_and_forgets_the_second(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [link()]) as stack:
        perform(stack, "three", [ADD, SUBMIT, STOP])
        stack.reset(0, TASK)
        assert kinds(stack) == [["reset"], []]
        assert stack.get_env_state().leg == 0
        assert not stack.evaluate().success


def test_a_truncated_leg_hands_over_too(plugins: Plugins) -> None:
    inner = [ComponentSpec("budget", {"steps": 1}), link()]
    with build_stack(plugins, COUNTER, inner) as stack:
        stack.reset(0, TASK)
        response = stack.step(ADD)
        assert "handoff" in response.info
        assert not response.ended
        assert "resume" not in kinds(stack)[0]  # Link resumes nothing


def test_a_setup_that_crosses_is_refused_with_its_index(plugins: Plugins) -> None:
    crossing = ComponentSpec("setup", {"actions": [{"name": "add"}, {"name": "submit"}]})
    with (
        build_stack(plugins, COUNTER, [link(), crossing]) as stack,
        pytest.raises(SetupError, match=r"setup action 1, submit\(\): crosses into the next leg"),
    ):
        stack.reset(0, TASK)


def test_links_nest_on_both_sides(plugins: Plugins) -> None:
    nested: Json = {"bridge": "testing/counter", "task": "five", "layers": [link().as_json()]}
    layers = [link("testing/counter", "five"), ComponentSpec("link", {"next": nested})]
    todo = [ADD, SUBMIT, Action("add", {"amount": 5}), SUBMIT, Action("add", {"amount": 5}), SUBMIT, *WIN_24]
    with build_stack(plugins, COUNTER, layers) as stack:
        tape: Any = perform(stack, "three", todo)
        assert ["handoff" in step["response"]["info"] for step in tape[1:-1]] == [
            False, True, False, True, False, True, False, False, False
        ]  # fmt: skip
        assert stack.evaluate().success
        require_bare_verdict(plugins, stack, "nested links")
    with build_stack(plugins, COUNTER, layers) as stack:
        perform(stack, "three", [*todo[:5], *todo[5:6], STOP])
        assert not stack.evaluate().success


def test_layers_of_the_second_leg_are_its_own(plugins: Plugins) -> None:
    leg: Json = {"bridge": "testing/counter", "task": "five", "layers": [{"use": "budget", "steps": 1}]}
    with build_stack(plugins, COUNTER, [ComponentSpec("link", {"next": leg})]) as stack:
        stack.reset(0, TASK)
        assert [stack.step(action).truncated for action in (ADD, ADD, SUBMIT, ADD)] == [
            False,
            False,
            False,
            True,
        ]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"next": {"bridge": "testing/counter"}}, "the second leg needs a task"),
        ({}, "next: missing"),
        ({"next": {"bridge": "testing/countr", "task": "five"}}, "did you mean 'testing/counter'"),
        ({"next": {"bridge": "testing/counter", "task": "five"}, "banner": ""}, "banner"),
    ],
)
def test_a_wrong_config_says_where(plugins: Plugins, config: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        build_stack(plugins, COUNTER, [ComponentSpec("link", config)])


@given(data=st.data(), seed=st.integers(0, 99))
def test_whatever_is_done_the_legs_replayed_bear_the_verdict_out(
    plugins: Plugins, data: st.DataObject, seed: int
) -> None:
    with build_stack(plugins, COUNTER, [link("testing/text_world", "ring")]) as stack:
        todo = data.draw(st.lists(actions(stack.tools(), malformed=True), max_size=12))
        perform(stack, "three", [*todo, SUBMIT, Action("do", {"text": "go kitchen"})], seed=seed)
        require_bare_verdict(plugins, stack, "link")
        perform(stack, "three", todo, seed=seed + 1)
        require_bare_verdict(plugins, stack, "link")
