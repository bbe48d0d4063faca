"""The bench for layers: the worlds that a layer is tried over, and its stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from attrs import define, field

from envharness_core.checks.drive import STEPS, Driver, World, play, seen_state, stepped
from envharness_core.data import Action, StepResponse
from envharness_core.errors import ConfigError, SetupError
from envharness_core.events import Event
from envharness_core.jsondata import Json, JsonObject
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack

WORLDS = (
    World(ComponentSpec("core/toy24"), "1-2-3-4"),
    World(ComponentSpec("testing/text_world"), "ring"),
    World(ComponentSpec("testing/counter"), "three"),
)
"""What a layer is tried over: exact and resumable, text with a step limit, a latched submission."""

WATCH = ComponentSpec("testing/watch")
DRAWING = ComponentSpec("testing/drawing")
EPISODES = 6  # of a few steps each: random actions end many of them early


@define
class Happening:
    """One step of a watched episode: what was asked, what came of it, and what reached the bridges."""

    action: Action
    response: StepResponse
    events: list[list[Event]]
    before: JsonObject
    after: JsonObject


@define
class LayerBench:
    """A layer under test: its spec, and the worlds that it can be put over."""

    plugins: Plugins
    spec: ComponentSpec
    worlds: tuple[World, ...] = WORLDS
    seed: int = 0
    _opened: list[Stack] = field(factory=list)
    _fitting: tuple[World, ...] | None = None

    def fitting(self) -> tuple[World, ...]:
        """Return the worlds that the layer can be put over: not those whose tools its config doesn't know."""
        if self._fitting is None:
            self._fitting = tuple(world for world in self.worlds if self.fits(world))
        return self._fitting

    def fits(self, world: World) -> bool:
        """Whether the layer can be put over a world."""
        return self._misfit(world) is None

    def misfits(self) -> str:
        """Say why the layer can't be put over any of the worlds."""
        return "; ".join(f"{world.bridge.use}: {self._misfit(world)}" for world in self.worlds)

    def stack(
        self, world: World, inside: Sequence[ComponentSpec] = (), outside: Sequence[ComponentSpec] = ()
    ) -> Stack:
        """Build the layer over a world, with others inside and outside of it; the bench closes it in the end."""
        stack = build_stack(self.plugins, world.bridge, [*inside, self.spec, *outside])
        self._opened.append(stack)
        return stack

    def bare(self, world: World) -> Stack:
        """Build the world without the layer."""
        stack = build_stack(self.plugins, world.bridge)
        self._opened.append(stack)
        return stack

    def tapes(self, stack: Stack, world: World, *, layer_seed: int = 0) -> list[Json]:
        """Play some episodes and return everything that was seen in each."""
        return [
            play(stack, world.task, self.driver(number), seed=number, layer_seed=layer_seed + number)
            for number in range(EPISODES)
        ]

    def watched(self, world: World) -> Iterator[Happening]:
        """Play some episodes, and yield each step together with what it did inside."""
        stack = self.stack(world)
        for number in range(EPISODES):
            driver = self.driver(number)
            observation = stack.reset(number, {"task": world.task}).observation
            for _ in range(STEPS):
                happening = _watched(stack, driver.action(stack, observation))
                if happening is None:
                    break
                yield happening
                if happening.response.ended:
                    break
                observation = happening.response.observation

    def driver(self, number: int = 0) -> Driver:
        """Return a source of actions; equal numbers draw equally."""
        return Driver(self.seed * 1000 + number, ("look",))

    def close(self) -> None:
        """Close every stack that was built."""
        while self._opened:
            with suppress(Exception):  # what closing may do wrong has a check of its own
                self._opened.pop().close()

    def _misfit(self, world: World) -> str | None:
        try:
            self.stack(world).reset(self.seed, {"task": world.task})
        except (ConfigError, SetupError) as error:
            return str(error)
        except Exception:  # noqa: BLE001 - a fault of the layer: the checks will meet it
            return None
        return None


def _watched(stack: Stack, action: Action) -> Happening | None:
    marks = [len(leg) for leg in stack.events()]
    before = seen_state(stack)
    response = stepped(stack, action)
    if response is None:
        return None
    events = [leg[mark:] for leg, mark in zip(stack.events(), marks, strict=True)]
    return Happening(action, response, events, before, seen_state(stack))
