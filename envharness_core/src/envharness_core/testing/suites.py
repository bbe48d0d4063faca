"""Suites: the contract as a test class, for ``TestMine = layer_suite("my_plugin/mine")`` in any module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envharness_core.chain import Chain
from envharness_core.checks.bench import LayerBench
from envharness_core.checks.bridge_bench import BridgeBench
from envharness_core.checks.drive import World, do, perform, snapshot
from envharness_core.checks.replaying import replay, require_bare_verdict
from envharness_core.checks.results import Check, require_same
from envharness_core.contract import (
    BRIDGE_CHECKS,
    LAYER_CHECKS,
    bridge_bench,
    layer_bench,
    run_check,
    with_doubles,
)
from envharness_core.errors import CheckpointError, SetupError
from envharness_core.jsondata import Json
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack
from envharness_core.testing.strategies import actions, stacks

_SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def layer_suite(
    use: str, plugins: Plugins | None = None, worlds: Sequence[World] = (), /, **config: Json
) -> type:
    """Return a test class that holds a layer to the contract: each check, and properties over random stacks.

    Args:
        use: the layer, as ``plugin/component``.
        plugins: where it is found; None takes what is installed.
        worlds: bridges and tasks to try it over; none takes Toy24 and the doubles.
        config: the layer's config.
    """
    spec = ComponentSpec(use, config)
    found = cache(lambda: with_doubles(plugins or Plugins()))

    def bench() -> AbstractContextManager[LayerBench]:
        return layer_bench(found(), spec, worlds=worlds)

    methods = {f"test_{check.__name__}": _test(check, bench) for check in LAYER_CHECKS}
    properties = {
        "test_any_stack_keeps_the_verdict": _stacked(bench, _keeps_the_verdict),
        "test_any_stack_repeats": _stacked(bench, _repeats),
    }
    return type(f"TestLayer_{use.replace('/', '_')}", (), {**methods, **properties})


def bridge_suite(
    use: str,
    plugins: Plugins | None = None,
    texts: Sequence[str] = (),
    tasks: Sequence[str] = (),
    /,
    **config: Json,
) -> type:
    """Return a test class that holds a bridge to the contract: each check, and properties over random actions.

    Args:
        use: the bridge, as ``plugin/component``.
        plugins: where it is found; None takes what is installed.
        texts: what text arguments may be, beside the lists of strings in the observation's data.
        tasks: which tasks to play; none takes the first two.
        config: the bridge's config.
    """
    spec = ComponentSpec(use, config)
    found = cache(lambda: plugins or Plugins())

    def bench() -> AbstractContextManager[BridgeBench]:
        return bridge_bench(found(), spec, texts=texts, tasks=tasks)

    methods = {f"test_{check.__name__}": _test(check, bench) for check in BRIDGE_CHECKS}
    properties = {
        "test_any_actions_replay": _acted(bench, _replays),
        "test_any_actions_round_trip": _acted(bench, _round_trips),
    }
    return type(f"TestBridge_{use.replace('/', '_')}", (), {**methods, **properties})


def _test(check: Check[Any], make: Callable[[], AbstractContextManager[Any]]) -> Callable[[object], None]:
    """Return a new test method for one check."""

    def test(_: object) -> None:
        with make() as bench:
            result = run_check(check, bench)
        if not result.passed:
            pytest.fail(f"{result.name}: {result.detail}\n({result.law})", pytrace=False)

    test.__doc__ = check.__doc__
    return test


def _stacked(
    make: Callable[[], AbstractContextManager[LayerBench]],
    law: Callable[[LayerBench, World, tuple[ComponentSpec, ...], st.DataObject], None],
) -> Callable[[object], None]:
    """Return a new property over random stacks: Hypothesis refuses one that two classes share."""

    @_SETTINGS
    @given(data=st.data())
    def test(_: object, data: st.DataObject) -> None:
        with make() as bench:
            world = data.draw(st.sampled_from(bench.fitting()), label="world")
            tools = bench.bare(world).tools()
            inside = data.draw(stacks(world, tools=tools, max_size=2), label="inside")
            outside = data.draw(st.lists(_shaping, max_size=2), label="outside")
            layers = (*inside, bench.spec, *outside)
            if _can_be_reset(bench, world, layers):
                law(bench, world, layers, data)

    test.__doc__ = law.__doc__
    return test


def _can_be_reset(bench: LayerBench, world: World, layers: tuple[ComponentSpec, ...]) -> bool:
    """Whether a stack can be built and reset: one that drew a Setup may end the episode in another one's replay."""
    try:
        with build_stack(bench.plugins, world.bridge, layers) as stack:
            stack.reset(0, {"task": world.task})
    except SetupError:
        return False
    return True


_shaping = st.sampled_from(
    [
        ComponentSpec("faults", {"rate": 0.4}),
        ComponentSpec("budget", {"steps": 6}),
        ComponentSpec("testing/drawing"),
    ]
)


def _keeps_the_verdict(
    bench: LayerBench, world: World, layers: tuple[ComponentSpec, ...], data: st.DataObject
) -> None:
    """Verdict: in any stack, it equals the bare bridge's after the events that reached it."""
    with build_stack(bench.plugins, world.bridge, layers) as stack:
        todo = data.draw(st.lists(actions(stack.tools(), malformed=True), max_size=10), label="actions")
        perform(stack, world.task, todo, seed=1, layer_seed=2)
        require_bare_verdict(bench.plugins, stack, repr(stack))


def _repeats(bench: LayerBench, world: World, layers: tuple[ComponentSpec, ...], data: st.DataObject) -> None:
    """Determinism: in any stack, the same seeds repeat, and a reset forgets."""
    seed = data.draw(st.integers(0, 2**31), label="seed")
    with (
        build_stack(bench.plugins, world.bridge, layers) as one,
        build_stack(bench.plugins, world.bridge, layers) as two,
    ):
        todo = data.draw(st.lists(actions(one.tools(), malformed=True), max_size=10), label="actions")
        tape = perform(one, world.task, todo, seed=seed, layer_seed=seed + 1)
        require_same(tape, perform(two, world.task, todo, seed=seed, layer_seed=seed + 1), "another stack")
        require_same(
            tape, perform(one, world.task, todo, seed=seed, layer_seed=seed + 1), "after a dirty episode"
        )


def _acted(
    make: Callable[[], AbstractContextManager[BridgeBench]],
    law: Callable[[BridgeBench, st.DataObject], None],
) -> Callable[[object], None]:
    """Return a new property over random actions."""

    @_SETTINGS
    @given(data=st.data())
    def test(_: object, data: st.DataObject) -> None:
        with make() as bench:
            law(bench, data)

    test.__doc__ = law.__doc__
    return test


def _played(bench: BridgeBench, data: st.DataObject, *, longest: int) -> Stack:
    stack = Stack(Chain(ComponentSpec("bridge"), Recorder(bench.fresh())))
    drawn = actions(stack.tools(), texts=bench.texts, malformed=True)
    todo = data.draw(st.lists(drawn, max_size=longest), label="actions")
    task = data.draw(st.sampled_from(bench.tasks), label="task")
    perform(stack, task, todo, seed=data.draw(st.integers(0, 2**31), label="seed"))
    return stack


def _replays(bench: BridgeBench, data: st.DataObject) -> None:
    """Determinism: whatever is done, the same events on another instance give the same responses and verdict."""
    stack = _played(bench, data, longest=10)
    if stack.capabilities.deterministic:
        (events,) = stack.events()
        responses, verdict = replay(bench.fresh(), events)
        require_same(
            [event.body["response"] for event in events if event.kind == "step"], responses, "responses"
        )
        require_same(snapshot(stack)["verdict"], verdict, "verdict")


def _round_trips(bench: BridgeBench, data: st.DataObject) -> None:
    """Round trip: wherever a state may be saved, a fresh instance that loads it goes on alike."""
    stack = _played(bench, data, longest=6)
    recorder = stack.chain.recorder
    try:
        saved = recorder.save_state()
    except CheckpointError:
        if stack.capabilities.snapshot == "live":
            raise
        return
    other = Recorder(bench.fresh())
    other.load_state(saved)
    require_same(snapshot(recorder), snapshot(other), "loaded")
    if stack.phase == "running" and stack.capabilities.deterministic:
        todo = data.draw(st.lists(actions(stack.tools(), texts=bench.texts), max_size=4), label="then")
        require_same(do(recorder, todo), do(other, todo), "going on after loading")
