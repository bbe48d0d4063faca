"""What rules given as source code add to a step and to an episode's start, beside the same rules trusted in process.

What is compared is timed in alternating blocks within one run. A figure is the median over the blocks of what one side
takes more than the other, or of their ratio; beside it stands the same of each side's fastest block, which a busy
machine disturbs least.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import median
from types import FrameType
from typing import Annotated

from attrs import evolve, frozen
from msgspec import Meta

from envharness_core import Component, hookimpl
from envharness_core.api import stack
from envharness_core.data import (
    Action,
    Blocked,
    Capabilities,
    EnvState,
    Observation,
    ResetResponse,
    StepResponse,
    TaskSummary,
    Verdict,
)
from envharness_core.env import Bridge, Env
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layers.rules import Rules
from envharness_core.plugins import Plugins
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.host import Sandbox
from envharness_core.sandbox.wire import Wire
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack
from envharness_core.tools import Tool
from figures import Figure, alternating, show

DEPTHS = (1, 4, 16)
LARGE = 50_000  # bytes
STEPS = 6  # in a block, the first of which warms caches and isn't counted
OPTIONS: JsonObject = {"task": "only"}
WAIT = Action("wait", {"turns": 1})


@frozen
class Size:
    """What a bridge shows, and what the targets for it are, in microseconds a step."""

    name: str
    state: JsonObject
    observation: Observation
    first: float | None = None
    further: float | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument("--blocks", type=int, default=41, help="alternating blocks for each figure")
    options = parser.parse_args(arguments)
    figures = [
        *worker_calls(),
        *[figure for size in sizes() for figure in steps(size, options.blocks)],
        *resets(options.blocks),
        *processes(options.blocks),
    ]
    show(figures, as_json=options.as_json)


def worker_calls() -> Iterator[Figure]:
    """Count how often a step asks the worker."""
    size = next(sizes())
    for depth in DEPTHS:
        with sandboxed(size, depth) as env:
            env.reset(0, OPTIONS)
            calls = _calls_of_ask(env)
        yield Figure(f"worker_calls_{depth}", calls, "calls a step", 2, least=calls)


def steps(size: Size, blocks: int) -> Iterator[Figure]:
    """Compare a step under sandboxed rules with one under the same rules in process, and with one under none."""
    with ExitStack() as opened:
        bare = opened.enter_context(stack(Double(size)))
        walled = [opened.enter_context(sandboxed(size, depth)) for depth in DEPTHS]
        inside = [opened.enter_context(trusted(size, depth)) for depth in DEPTHS]
        _require_same(walled, inside)
        none, *times = alternating(
            blocks, *[lambda env=env: _step_seconds(env) for env in (bare, *walled, *inside)]
        )
    outer = dict(zip(DEPTHS, times[: len(DEPTHS)], strict=True))
    inner = dict(zip(DEPTHS, times[len(DEPTHS) :], strict=True))
    yield Figure(f"{size.name}_bare_step", median(none) * 1e6, "us a step", least=min(none) * 1e6)
    for depth in DEPTHS:
        target = size.first if depth == 1 or size.further is None else None
        yield _added(f"{size.name}_{depth}", outer[depth], none, target)
    yield _added(
        f"{size.name}_further", outer[16], outer[1], size.further, 1e6 / 15, "us for each further layer"
    )
    if size.further is None and size.first is not None:
        yield _flatness(size.name, outer[16], outer[1], none)
    for depth in DEPTHS:
        yield _added(f"{size.name}_{depth}_in_process", inner[depth], none)
    for depth in DEPTHS:
        ratio = median(a / b for a, b in zip(outer[depth], inner[depth], strict=True))
        least = min(outer[depth]) / min(inner[depth])
        yield Figure(f"{size.name}_{depth}_to_in_process", ratio, "x whole step in process", least=least)


def resets(blocks: int) -> Iterator[Figure]:
    """Compare an episode's start with sandboxed rules to one without; the worker of the episode before is ended."""
    size = next(sizes())
    with stack(Double(size)) as bare, sandboxed(size, 1) as one, sandboxed(size, 16) as many:
        none, *times = alternating(
            blocks, *[lambda env=env: _seconds(lambda: env.reset(0, OPTIONS)) for env in (bare, one, many)]
        )
    for depth, taken in zip((1, 16), times, strict=True):
        yield _added(f"episode_start_{depth}", taken, none, 15.0, 1e3, "ms")


def processes(blocks: int) -> Iterator[Figure]:
    """Time a worker's start and end, and a zygote's start together with its first worker."""
    starts = []
    for _ in range(max(3, blocks // 8)):
        sandbox = Sandbox(SandboxConfig())
        starts.append(_seconds(sandbox.require))
        sandbox.close()
    sandbox = Sandbox(SandboxConfig())
    sandbox.require()
    (workers,) = alternating(blocks, lambda: _seconds(lambda: sandbox.worker().close()))
    sandbox.close()
    yield Figure("worker_start_and_end", median(workers) * 1e3, "ms", least=min(workers) * 1e3)
    unit = "ms, its first worker included"
    yield Figure("zygote_start", median(starts) * 1e3, unit, least=min(starts) * 1e3)


class Trusted(Rules[None]):
    """Three hooks that read the state and do something small."""

    def filter_action(self, action: Action, env_state: EnvState) -> Action | Blocked:
        return Blocked("It is too late.") if env_state["turn"] == -1 else action

    def modify_transition(self, action: Action, response: StepResponse, env_state: EnvState) -> StepResponse:
        text = f"{response.observation.text}{len(env_state)}"
        return evolve(response, observation=evolve(response.observation, text=text))

    def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
        return Observation(observation.text.rstrip("0123456789"), observation.data)


SOURCE = "from __future__ import annotations\n" + inspect.getsource(Trusted).replace(
    "class Trusted(Rules[None])", "class _Rules(Rules)"
)
"""The same hooks as a designer would hand them in."""


@hookimpl
def envharness_layers() -> Iterable[Component[Env]]:
    """Yield the trusted rules, so that a stack finds them."""
    yield Component("trusted", Trusted)


class Double(Bridge[Size]):
    """A bridge that shows what it is given."""

    capabilities = Capabilities(upstream="double", version="1")
    splits = ("train",)
    env_state_schema = "turn: int, and whatever it is given"

    def tools(self) -> Sequence[Tool]:
        return (Tool.of(wait),)

    def list_tasks(self, split: str, limit: int | None = None) -> list[TaskSummary]:
        return [TaskSummary("only", "train", "wait")][:limit]

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        return ResetResponse(self.observe(), "Wait.")

    def step(self, action: Action) -> StepResponse:
        return StepResponse(self.observe())

    def observe(self) -> Observation:
        return self.config.observation

    def evaluate(self) -> Verdict:
        return Verdict(success=False, score=0.0)

    def get_env_state(self) -> EnvState:
        return EnvState(self.config.state)

    def save_state(self) -> JsonObject:
        return {}

    def load_state(self, state: JsonObject) -> None:
        pass


def wait(turns: Annotated[int, Meta(ge=1)]) -> None:
    """Let some turns go by."""


def sizes() -> Iterator[Size]:
    """Yield a small bridge, one with a large state, and two with a small state that show much."""
    state: JsonObject = {"turn": 3, "place": "kitchen", "holding": None, "seen": ["fridge", "sink", "table"]}
    shown = Observation("You are in the kitchen.", {"exits": ["north", "east"], "score": 0.5})
    yield Size("small", state, shown, first=150.0)
    yield Size("state_50k", {"turn": 3, **large()}, shown, first=1500.0, further=150.0)
    yield Size("data_50k", state, evolve(shown, data=large()))
    yield Size("text_50k", state, evolve(shown, text="You are in the kitchen. ".ljust(LARGE, "x")))


def large() -> JsonObject:
    """Return 50 kB of JSON in some 2,800 values: objects with words, numbers, lists, and a sentence each."""
    note = "It has been here for years, and nobody remembers who brought it, or why it was left behind. "
    things: list[Json] = []
    while len(json.dumps(things)) < LARGE:
        number = len(things)
        place: JsonObject = {"room": f"room {number % 7}", "shelf": [number % 5, number % 3]}
        inside: list[Json] = [f"cup {number}", "plate", "knife", "a small box"]
        things.append(
            {"name": f"cupboard {number}", "open": number % 2 == 0, **place, "inside": inside, "note": note}
        )
    return {"things": things}


def sandboxed(size: Size, depth: int) -> Stack:
    """Return so many layers of source code on a bridge."""
    return stack(Double(size), [ComponentSpec("rules", {"source": SOURCE})] * depth)


def trusted(size: Size, depth: int) -> Stack:
    """Return so many layers of the same hooks, in process."""
    return stack(Double(size), [ComponentSpec("bench/trusted")] * depth, plugins=Plugins({"bench": __name__}))


def _added(
    name: str,
    more: Sequence[float],
    less: Sequence[float],
    target: float | None = None,
    scale: float = 1e6,
    unit: str = "us added to a step",
) -> Figure:
    value = median(a - b for a, b in zip(more, less, strict=True))
    return Figure(name, value * scale, unit, target, least=(min(more) - min(less)) * scale)


def _flatness(name: str, many: Sequence[float], one: Sequence[float], none: Sequence[float]) -> Figure:
    ratio = median((a - c) / (b - c) for a, b, c in zip(many, one, none, strict=True))
    least = (min(many) - min(none)) / (min(one) - min(none))
    return Figure(f"{name}_16_to_1", ratio, "x what one layer adds", 2.0, least=least)


def _step_seconds(env: Stack) -> float:
    """Return the median of some steps of an episode."""
    env.reset(0, OPTIONS)
    return median([_seconds(lambda: env.step(WAIT)) for _ in range(STEPS)][1:])


def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def _calls_of_ask(env: Stack) -> int:
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is Wire.ask.__code__

    sys.setprofile(count)
    try:
        env.step(WAIT)
    finally:
        sys.setprofile(None)
    return calls


def _require_same(walled: Sequence[Stack], inside: Sequence[Stack]) -> None:
    for one, other in zip(walled, inside, strict=True):
        answers = [(env.reset(0, OPTIONS), env.step(WAIT)) for env in (one, other)]
        if answers[0] != answers[1]:
            raise RuntimeError("sandboxed rules and the same in process answered differently")


if __name__ == "__main__":
    main()
