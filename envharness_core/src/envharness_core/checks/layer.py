"""What a layer promises, check by check, over the doubles and Toy24."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from types import ModuleType
from typing import Any, cast

from envharness_core import checkpoint
from envharness_core.checks.bench import DRAWING, WATCH, LayerBench
from envharness_core.checks.drive import World, as_json, ended, ends, go_on, play
from envharness_core.checks.replaying import require_bare_verdict
from envharness_core.checks.results import Check, require, require_same
from envharness_core.data import Capabilities
from envharness_core.errors import CheckpointError, EnvHarnessError
from envharness_core.events import Event
from envharness_core.jsondata import canonical, copy_object
from envharness_core.layer import Layer, Wrapper
from envharness_core.layers.link import Link
from envharness_core.layers.rules import Rules
from envharness_core.layers.setup import Setup
from envharness_core.layers.source import SourceRules
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack
from envharness_core.testing.doubles import Watch
from envharness_core.tools import Tool

_DRAWS = 80  # tries until two streams must have shown a difference
_DRAWS_NOTHING = "it draws nothing"


def builds(bench: LayerBench) -> str | None:
    """Contract: the component is found, takes its config, and can be put over at least one world."""
    require(bench.fitting(), f"it fits none of the worlds: {bench.misfits()}")
    for world in bench.fitting():
        bench.stack(world).check()
        layer = _layer(bench.stack(world))
        require(isinstance(layer, Layer | Link), f"expected a Layer, got {type(layer).__name__}")
        bench.stack(world).reset(bench.seed, {"task": world.task})
    return "over " + ", ".join(world.bridge.use for world in bench.fitting())


def declares_itself(bench: LayerBench) -> None:
    """Contract: tools and capabilities are those of an environment, and don't change within an episode."""
    for world in bench.fitting():
        stack = bench.stack(world)
        layer = _layer(stack)
        tools, capabilities = list(layer.tools()), layer.capabilities
        require(isinstance(capabilities, Capabilities), "capabilities: expected Capabilities")
        require(tools and all(isinstance(tool, Tool) for tool in tools), "tools: expected Tools")
        names = [tool.name for tool in tools]
        require(len(set(names)) == len(names), f"tools: a name comes twice: {names}")
        bench.tapes(stack, world)
        require(list(layer.tools()) == tools, "tools: they changed within an episode")
        require(layer.capabilities == capabilities, "capabilities: they changed within an episode")


def returns_strict_json(bench: LayerBench) -> None:
    """Data only: what a layer returns and keeps is strict JSON, without handles."""
    for world in bench.fitting():
        stack = bench.stack(world)
        layer = _layer(stack)
        for number in range(3):
            play(stack, world.task, bench.driver(number), seed=number)
            as_json(layer.observe())
            copy_object(layer.get_env_state(), "state")
            with suppress(*[CheckpointError] * (layer.capabilities.snapshot == "episode")):
                copy_object(layer.own_state(), "own_state")


def verdict_is_the_bridges(bench: LayerBench) -> None:
    """Verdict: it equals the bare bridge's after the events that actually reached it."""
    for world in bench.fitting():
        stack = bench.stack(world)
        for number in range(3):
            play(stack, world.task, bench.driver(number), seed=number)
            shown, asked = as_json(stack.evaluate()), as_json(_layer(stack).evaluate())
            require_same(shown, asked, f"{world.bridge.use}: what the layer's evaluate() says")
            require_bare_verdict(bench.plugins, stack, world.bridge.use)


def patches_nothing(bench: LayerBench) -> None:
    """Isolation: neither the bridge, nor its class, nor what is around it is patched."""
    for world in bench.fitting():
        stack = bench.stack(world)
        around = [stack.bridge, stack.chain.recorder, stack]
        before = {type(thing): _attributes(type(thing)) for thing in around}
        bench.tapes(stack, world)
        for thing in around:
            own = getattr(thing, "__dict__", {})
            shadowed = [name for name in own if callable(getattr(type(thing), name, None))]
            require(not shadowed, f"{type(thing).__name__}: methods replaced on the instance: {shadowed}")
            after = _attributes(type(thing))
            changed = [name for name, value in before[type(thing)].items() if after.get(name) is not value]
            require(not changed, f"{type(thing).__name__}: attributes replaced on the class: {changed}")


def same_seed_repeats(bench: LayerBench) -> None:
    """Determinism: the same seeds give the same episodes."""
    for world in bench.fitting():
        one, two = (bench.tapes(bench.stack(world), world) for _ in range(2))
        require_same(one, two, f"{world.bridge.use}: two stacks with the same seeds")


def draws_from_its_own_stream(bench: LayerBench) -> None:
    """Determinism: no randomness but self.random, which is seeded, saved and its own."""
    for world in bench.fitting():
        stack = bench.stack(world)
        layer = _layer(stack)
        shared = list(_shared_streams(layer))
        before = [stream.getstate() for _, stream in shared]
        common = random.getstate()
        bench.tapes(stack, world)
        require(random.getstate() == common, "it draws from the global random module; use self.random")
        for (name, stream), state in zip(shared, before, strict=True):
            require(
                stream.getstate() == state, f"it draws from {name}, which other layers share; use self.random"
            )
        for name, value in [*vars(layer).items(), *_slots(layer.config)]:
            kept = isinstance(value, Random) and value is not layer.random
            require(not kept, f"it keeps a random stream of its own in {name!r}; use self.random")


def two_of_a_kind_draw_apart(bench: LayerBench) -> str | None:
    """Determinism: two layers of a kind in one stack don't share a stream."""
    random_ones = [world for world in bench.fitting() if _varies(bench, world, by="layer_seed")]
    for world in random_ones:
        apart = _varies(bench, world, by="occurrence")
        require(apart, "two layers of this kind in one stack draw the same; use self.random")
    return None if random_ones else _DRAWS_NOTHING


def reset_forgets(bench: LayerBench) -> None:
    """Determinism: an episode after dirty ones equals one on a fresh stack."""
    for world in bench.fitting():
        used = bench.stack(world)
        for number in range(6):
            seeds = {"seed": number, "layer_seed": 10 + number}
            fresh = play(bench.stack(world), world.task, bench.driver(number), **seeds)
            again = play(used, world.task, bench.driver(number), **seeds)
            require_same(fresh, again, f"{world.bridge.use}: after {number} dirty episodes")


def others_shift_nothing(bench: LayerBench) -> None:
    """Determinism: inserting another layer, which draws too, changes nothing."""
    for world in bench.fitting():
        alone = bench.tapes(bench.stack(world), world)
        for what, inside, outside in (("inside", [DRAWING], []), ("outside", [], [DRAWING])):
            stack = bench.stack(world, inside, outside)
            require_same(alone, bench.tapes(stack, world), f"{world.bridge.use}: with another layer {what}")


def saves_and_loads(bench: LayerBench) -> None:
    """Round trip: load(save(stack)) behaves as the stack does, in the middle of an episode too."""
    for world in bench.fitting():
        live = bench.stack(world).capabilities.snapshot == "live"
        for steps in (0, 1, 2, 4, 7) if live else (0,):
            stack = bench.stack(world)
            first = stack.reset(steps, {"task": world.task, "layer_seed": 5})
            tape = go_on(stack, first.observation, bench.driver(steps), steps)
            _round_trip(bench, stack, over=ended(tape), what=f"{world.bridge.use}, after {steps} steps")


def leaves_what_it_is_given(bench: LayerBench) -> None:
    """Isolation: a layer doesn't write to the actions, options and responses that it is given."""
    for world in bench.fitting():
        stack = bench.stack(world, [WATCH], [WATCH])
        watches = [layer for _, layer in stack.chain.layers if isinstance(layer, Watch)]
        with suppress(EnvHarnessError):  # what was written may have broken the episode as well
            bench.tapes(stack, world)
        for watch in watches:
            problems = watch.problems()
            require(not problems, f"{world.bridge.use}: {', '.join(dict.fromkeys(problems))}")


def observe_advances_nothing(bench: LayerBench) -> None:
    """Contract: observe() reads again, the same, and never advances."""
    for world in bench.fitting():
        stack, driver = bench.stack(world), bench.driver()
        observation = stack.reset(0, {"task": world.task, "layer_seed": 3}).observation
        for _ in range(6):
            before = stack.events()
            seen = [as_json(stack.observe()) for _ in range(3)]
            require_same(seen[0], seen[1], f"{world.bridge.use}: observed twice")
            require_same(seen[0], seen[2], f"{world.bridge.use}: observed three times")
            require(
                stack.events() == before, f"{world.bridge.use}: observing reached the bridge as an action"
            )
            response = stack.step(driver.action(stack, observation))
            if response.ended:
                break
            observation = response.observation


def blocked_steps_change_nothing(bench: LayerBench) -> None:
    """Blocked: a step with info.blocked or info.transient_error leaves the world as it was, and has no reward."""
    for world in bench.fitting():
        for happening in bench.watched(world):
            if happening.response.info.keys() & {"blocked", "transient_error"}:
                what = f"{world.bridge.use}: {happening.action}, blocked"
                require(not any(happening.events), f"{what}, has reached the bridge")
                require_same(happening.before, happening.after, what)
                require(happening.response.reward == 0, f"{what}, has a reward")


def masked_ends_are_resumed(bench: LayerBench) -> None:
    """Masking: who turns an end into none calls inner.resume(), where that is possible."""
    for world in bench.fitting():
        for happening in bench.watched(world):
            reached = [event for leg in happening.events for event in leg]
            if happening.response.ended or "handoff" in happening.response.info:
                continue
            what = f"{world.bridge.use}: {happening.action} ended the bridge's episode"
            require(
                not _left_ended(reached), f"{what}; the layer shows no end and didn't call inner.resume()"
            )


def rewards_pass_through(bench: LayerBench) -> str | None:
    """Reward: Setup and Rules never change a reward."""
    for world in bench.fitting():
        if not isinstance(_layer(bench.stack(world)), Rules | Setup | SourceRules):
            return "it is neither a Setup nor a Rules layer"
        for happening in bench.watched(world):
            steps = [event for leg in happening.events for event in leg if event.kind == "step"]
            response: Any = steps[-1].body["response"] if steps else {"reward": 0.0}
            require_same(response["reward"], happening.response.reward, f"the reward of {happening.action}")
    return None


def closes_inner_once(bench: LayerBench) -> None:
    """Lifecycle: closing reaches the inner environment once, also after errors."""
    failing = World(ComponentSpec("testing/failing", {"call": "step", "after": 1}), "three")
    broken = World(ComponentSpec("testing/failing", {"call": "reset"}), "three")
    for world in (*bench.fitting(), failing, broken):
        for episodes in (0, 2) if bench.fits(world) else ():
            stack = bench.stack(world, [WATCH])
            for number in range(episodes):
                with suppress(EnvHarnessError):
                    play(stack, world.task, bench.driver(number))
            stack.close()
            stack.close()
            watch = cast("Watch", _layer(stack))
            require(
                watch.closes == 1,
                f"{world.bridge.use}: the inner environment was closed {watch.closes} times",
            )


LAYER_CHECKS: tuple[Check[LayerBench], ...] = (
    builds,
    declares_itself,
    returns_strict_json,
    verdict_is_the_bridges,
    patches_nothing,
    same_seed_repeats,
    draws_from_its_own_stream,
    two_of_a_kind_draw_apart,
    reset_forgets,
    others_shift_nothing,
    saves_and_loads,
    leaves_what_it_is_given,
    observe_advances_nothing,
    blocked_steps_change_nothing,
    masked_ends_are_resumed,
    rewards_pass_through,
    closes_inner_once,
)
"""The checks of a layer, in the order of its life."""


def _layer(stack: Stack) -> Wrapper[Any]:
    """Return the layer under test of a stack without others around it."""
    return stack.chain.layers[0][1]


def _attributes(cls: type) -> dict[str, object]:
    return {
        f"{base.__name__}.{name}": value for base in cls.__mro__[:-1] for name, value in vars(base).items()
    }


def _shared_streams(layer: Wrapper[Any]) -> Iterator[tuple[str, Random]]:
    """Yield the streams that live beside the layer: in its module and in its classes."""
    own = [cls for cls in type(layer).__mro__ if not cls.__module__.startswith("envharness_core.layer")]
    places: list[type | ModuleType] = [
        *own,
        *[sys.modules[cls.__module__] for cls in own if cls.__module__ in sys.modules],
    ]
    for place in places:
        for name, value in list(vars(place).items()):
            if type(value) is Random:
                yield f"{place.__name__}.{name}", value


def _slots(config: object) -> list[tuple[str, object]]:
    names = getattr(type(config), "__attrs_attrs__", ())
    return [(f"config.{item.name}", getattr(config, item.name, None)) for item in names]


def _varies(bench: LayerBench, world: World, *, by: str) -> bool:
    """Whether episodes differ with the layers' seed, or with the layer's occurrence in its stack."""
    seen = set()
    stack = bench.stack(world)
    layer = _layer(stack)
    for number in range(_DRAWS):
        if by == "occurrence":
            layer.identity = (*layer.identity[:-1], number)
        layer_seed = number if by == "layer_seed" else 0
        tape = play(stack, world.task, bench.driver(number % 4), layer_seed=layer_seed, steps=8)
        seen.add((number % 4, canonical(tape)))
        if len(seen) > 4:
            return True
    return False


def _round_trip(bench: LayerBench, stack: Stack, *, over: bool, what: str) -> None:
    try:
        saved = checkpoint.save(stack)
    except CheckpointError:
        if stack.capabilities.snapshot == "live" and not stack.events()[0][1:]:
            raise
        return
    loaded = checkpoint.load(bench.plugins, copy_object(saved))
    try:
        require_same(saved, checkpoint.save(loaded), f"{what}: saved again")
        require_same(as_json(stack.observe()), as_json(loaded.observe()), f"{what}: observed after loading")
        if not over:
            one, two = (go_on(env, env.observe(), bench.driver(9)) for env in (stack, loaded))
            require_same(one, two, f"{what}: going on after loading")
    finally:
        loaded.close()


def _left_ended(events: list[Event]) -> bool:
    for event in reversed(events):
        if event.kind == "resume":
            return False
        if event.kind == "step":
            return ends(event)
    return False
