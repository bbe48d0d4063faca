"""The laws of the architecture, as properties over random stacks and actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.checks.bench import WORLDS
from envharness_core.checks.drive import World, as_json, perform, seen_state, snapshot, stepped
from envharness_core.checks.replaying import require_bare_verdict
from envharness_core.checks.results import require_same
from envharness_core.data import Action
from envharness_core.errors import SetupError
from envharness_core.jsondata import Json
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack, wrap
from envharness_core.testing import actions, setups, stacks, worlds

PASS = ComponentSpec("testing/pass_through")
OVER = pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.bridge.use)
SHAPING = st.sampled_from(
    [ComponentSpec(f"shaping/{name}") for name in ("no_repeats", "vandal", "marked")]
    + [ComponentSpec("faults", {"rate": 0.5})]
)


def drawn_actions(data: st.DataObject, stack: Stack, longest: int = 10) -> list[Action]:
    return data.draw(st.lists(actions(stack.tools(), malformed=True), max_size=longest), label="actions")


def drawn_stack(data: st.DataObject, plugins: Plugins, world: World) -> tuple[ComponentSpec, ...]:
    with build_stack(plugins, world.bridge) as bare:
        inner = data.draw(stacks(world, tools=bare.tools(), max_size=2), label="layers")
    outer = data.draw(st.lists(SHAPING, max_size=2), label="more layers")
    return (*[layer for layer in inner if layer.use != "budget"], *outer)


@given(world=worlds(), depth=st.integers(1, 4), data=st.data())
def test_identity_pass_through_layers_show_nothing(
    plugins: Plugins, world: World, depth: int, data: st.DataObject
) -> None:
    with (
        build_stack(plugins, world.bridge) as bare,
        build_stack(plugins, world.bridge, [PASS] * depth) as stack,
    ):
        assert stack.tools() == bare.tools()
        assert stack.capabilities == bare.capabilities
        todo = drawn_actions(data, bare)
        require_same(perform(bare, world.task, todo), perform(stack, world.task, todo), "the tape")
        assert stack.events() == bare.events()
        require_same(snapshot(bare), snapshot(stack), "the end")


@given(world=worlds(), data=st.data())
def test_associativity_wrapping_in_two_goes_equals_one(
    plugins: Plugins, world: World, data: st.DataObject
) -> None:
    layers = drawn_stack(data, plugins, world)
    cut = data.draw(st.integers(0, len(layers)))
    with build_stack(plugins, world.bridge, layers) as at_once:
        inner = build_stack(plugins, world.bridge, layers[:cut])
        with wrap(plugins, inner, layers[cut:]) as in_two:
            assert in_two.layers == at_once.layers
            todo = drawn_actions(data, at_once)
            require_same(perform(at_once, world.task, todo), perform(in_two, world.task, todo), "the tape")


@given(world=worlds(), data=st.data())
def test_verdict_equals_the_bare_bridges(plugins: Plugins, world: World, data: st.DataObject) -> None:
    layers = drawn_stack(data, plugins, world)
    if world.bridge.use != "testing/text_world":  # which can't be resumed
        layers = (*layers, *data.draw(st.lists(st.just(ComponentSpec("shaping/second_chance")), max_size=1)))
    with build_stack(plugins, world.bridge, layers) as stack:
        for seed in (1, 2):
            perform(stack, world.task, drawn_actions(data, stack), seed=seed, layer_seed=seed)
            require_bare_verdict(plugins, stack, repr(stack))


@given(world=worlds(), data=st.data())
def test_reward_passes_through_setups_and_rules(plugins: Plugins, world: World, data: st.DataObject) -> None:
    layers = [layer for layer in drawn_stack(data, plugins, world) if layer.use != "faults"]
    with build_stack(plugins, world.bridge, layers) as stack:
        stack.reset(0, {"task": world.task})
        for action in drawn_actions(data, stack):
            before = len(stack.events()[0])
            response = stack.step(action)
            reached: list[Any] = [e.body["response"] for e in stack.events()[0][before:] if e.kind == "step"]
            assert response.reward == sum(inner["reward"] for inner in reached)
            if response.ended:
                break


@given(world=worlds(), data=st.data())
def test_blocked_leaves_the_world_as_it_was(plugins: Plugins, world: World, data: st.DataObject) -> None:
    layers = (*drawn_stack(data, plugins, world), ComponentSpec("shaping/no_repeats"))
    with build_stack(plugins, world.bridge, layers) as stack:
        stack.reset(0, {"task": world.task})
        action = data.draw(actions(stack.tools()))
        if stack.step(action).ended:
            return
        bridge = snapshot(stack.bridge)
        shown = stack.observe()
        before = [len(leg) for leg in stack.events()]
        response = stack.step(action)
        assert response.info == {"blocked": "You just did that."}
        assert response.observation == shown.preceded_by("You just did that.")
        assert not response.ended
        assert response.reward == 0
        assert [len(leg) for leg in stack.events()] == before
        require_same(bridge, snapshot(stack.bridge), "the world")
        assert stack.observe() == shown


@given(world=worlds(), data=st.data())
def test_setup_equals_doing_it_by_hand_and_notifying(
    plugins: Plugins, world: World, data: st.DataObject
) -> None:
    inner = [layer for layer in drawn_stack(data, plugins, world) if layer.use != "setup"]
    setup = data.draw(setups(world), label="setup")
    replayed = [Action(**action) for action in cast("Any", setup.config["actions"])]
    with (
        build_stack(plugins, world.bridge, inner) as by_hand,
        build_stack(plugins, world.bridge, [*inner, setup]) as stack,
    ):
        start = stack.reset(3, {"task": world.task, "layer_seed": 4})
        first = by_hand.reset(3, {"task": world.task, "layer_seed": 4, "replays": 1})
        for action in replayed:
            by_hand.step(action)
        by_hand.notify_replay_complete()
        assert start.instruction == first.instruction
        require_same(snapshot(by_hand), snapshot(stack), "the start")
        assert stack.observe() == start.observation
        assert [event for event in stack.events()[0] if event.kind != "evaluate"] == [
            event for event in by_hand.events()[0] if event.kind != "evaluate"
        ]
        for action in drawn_actions(data, stack, 6):
            one, two = (stepped(env, action) for env in (by_hand, stack))
            assert one == two
            if one is None or one.ended:
                break


@OVER
def test_setup_is_charged_to_nobody(plugins: Plugins, world: World) -> None:
    replay = {"core/toy24": ["undo", {}], "testing/text_world": ["do", {"text": "look"}]}
    name, kwargs = cast("tuple[str, Json]", replay.get(world.bridge.use, ["add", {}]))
    action: Json = {"name": name, "kwargs": kwargs}
    layers = [ComponentSpec("budget", {"steps": 4}), ComponentSpec("setup", {"actions": [action] * 3})]
    with build_stack(plugins, world.bridge, layers) as stack:
        stack.reset(0, {"task": world.task})
        ended = [stack.step(Action(name, cast("Any", kwargs))).truncated for _ in range(4)]
        assert ended == [False, False, False, True]


def test_order_a_rules_inside_blocks_the_replay_and_one_outside_does_not(plugins: Plugins) -> None:
    setup = ComponentSpec("setup", {"actions": [{"name": "add", "kwargs": {"amount": 2}}]})
    closed = ComponentSpec("closed", {"tool": "add", "reason": "no"})
    counter = ComponentSpec("testing/counter")
    with build_stack(plugins, counter, [closed, setup]) as inside:
        first = inside.reset(0, {"task": "three"})
        assert first.info["setup"] == [{"actions": 1, "blocked": [0]}]
        assert seen_state(inside)["count"] == 0
    with build_stack(plugins, counter, [setup, closed]) as outside:
        first = outside.reset(0, {"task": "three"})
        assert first.info["setup"] == [{"actions": 1, "blocked": []}]
        assert seen_state(outside)["count"] == 2
        assert outside.step(Action("add")).info == {"blocked": "no"}


@given(world=worlds(), data=st.data())
def test_isolation_what_a_hook_writes_to_is_a_copy(
    plugins: Plugins, world: World, data: st.DataObject
) -> None:
    with (
        build_stack(plugins, world.bridge) as bare,
        build_stack(plugins, world.bridge, [ComponentSpec("shaping/vandal")]) as stack,
    ):
        todo = data.draw(
            st.lists(actions(bare.tools()), max_size=10)
        )  # Rules show their last observation again
        require_same(perform(bare, world.task, todo), perform(stack, world.task, todo), "the tape")
        assert stack.events() == bare.events()


@given(world=worlds(), data=st.data())
def test_isolation_writing_to_what_a_stack_returned_changes_nothing(
    plugins: Plugins, world: World, data: st.DataObject
) -> None:
    layers = drawn_stack(data, plugins, world)
    with (
        build_stack(plugins, world.bridge, layers) as one,
        build_stack(plugins, world.bridge, layers) as two,
    ):
        for stack in (one, two):
            stack.reset(0, {"task": world.task})
        for action in drawn_actions(data, one, 6):
            response, other = one.step(action), two.step(action)
            assert response == other
            one.get_env_state().clear()
            one.evaluate().metrics.clear()
            two.evaluate()
            assert as_json(two.observe()) == as_json(one.observe())
            assert one.events() == two.events()
            if response.ended:
                break


@given(world=worlds(), data=st.data(), seed=st.integers(0, 2**63))
def test_determinism_seeds_repeat_and_a_reset_forgets(
    plugins: Plugins, world: World, data: st.DataObject, seed: int
) -> None:
    layers = drawn_stack(data, plugins, world)
    with (
        build_stack(plugins, world.bridge, layers) as one,
        build_stack(plugins, world.bridge, layers) as two,
    ):
        todo = drawn_actions(data, one)
        perform(two, world.task, drawn_actions(data, two), seed=1, layer_seed=1)
        tapes = [perform(stack, world.task, todo, seed=seed, layer_seed=seed) for stack in (one, two)]
        require_same(tapes[0], tapes[1], "the tape")


@pytest.mark.parametrize("depth", [2, 3])
def test_determinism_two_layers_of_a_kind_do_not_share_a_stream(plugins: Plugins, depth: int) -> None:
    faults = ComponentSpec("faults", {"rate": 0.5, "streak": 9})
    with build_stack(plugins, ComponentSpec("testing/counter"), [faults] * depth) as stack:
        stack.reset(0, {"task": "three", "layer_seed": 1})
        streams = [tuple(layer.random.random() for _ in range(3)) for _, layer in stack.chain.layers]
    assert len(set(streams)) == depth


@given(world=worlds(), data=st.data(), place=st.integers(0, 2))
def test_determinism_inserting_a_layer_shifts_nobodys_stream(
    plugins: Plugins, world: World, data: st.DataObject, place: int
) -> None:
    faults = [ComponentSpec("faults", {"rate": 0.5}), ComponentSpec("faults", {"rate": 0.3})]
    more = [*faults[:place], ComponentSpec("testing/drawing"), *faults[place:]]
    with (
        build_stack(plugins, world.bridge, faults) as without,
        build_stack(plugins, world.bridge, more) as with_another,
    ):
        todo = drawn_actions(data, without)
        tapes: Sequence[Json] = [
            perform(stack, world.task, todo, layer_seed=8) for stack in (without, with_another)
        ]
        require_same(tapes[0], tapes[1], "the tape")


def test_a_setup_that_is_not_possible_says_where(plugins: Plugins) -> None:
    twice: Json = [{"name": "add", "kwargs": {}}, {"name": "submit", "kwargs": {}}]
    with build_stack(
        plugins, ComponentSpec("testing/counter"), [ComponentSpec("setup", {"actions": twice})]
    ) as stack:
        with pytest.raises(SetupError, match=r"setup action 1, submit\(\): ends the episode") as caught:
            stack.reset(0, {"task": "three"})
        assert (caught.value.index, caught.value.action) == (1, "submit()")
