"""What EnvHarness adds to an environment: per episode, per layer, per reset.

Each figure is a ratio or a count within one run: what is compared is timed in alternating blocks, and the median of
the blocks' ratios is taken, so that a machine that is slow for a while is slow for both sides.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, TypeVar

import gymnasium

from envharness_core.data import Action, EnvState, Observation
from envharness_core.env import Env
from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.executors.local import Local, LocalConfig
from envharness_core.guard import Guard
from envharness_core.jsondata import JsonObject
from envharness_core.layer import Layer
from envharness_core.layers.rules import Rules
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.policies.scripted import ScriptConfig, ScriptedPolicy
from envharness_core.recorder import Recorder
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.toy24.bridge import Toy24
from figures import Figure, alternating, show

T = TypeVar("T")

TASK = "3-3-8-8"
OPTIONS: JsonObject = {"task": TASK}
SCRIPT = (
    Action("combine", {"i": 0, "j": 2, "op": "/"}),
    Action("combine", {"i": 0, "j": 1, "op": "-"}),
    Action("combine", {"i": 0, "j": 1, "op": "/"}),
)
MOVE, BACK = SCRIPT[0], Action("undo")
DEPTH = 16
PAIRS = 8  # a move and its undo, so often between two resets: the world and its log stay small


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument("--blocks", type=int, default=41, help="alternating blocks for each figure")
    options = parser.parse_args(arguments)
    figures = [
        *episode_in_process(options.blocks),
        *episode_through_a_worker(options.blocks),
        *layers_per_step(options.blocks),
        *state_reads(),
    ]
    show(figures, as_json=options.as_json)


def episode_in_process(blocks: int) -> Iterator[Figure]:
    """Compare a played episode with a bare loop over the bridge, the same scripted policy acting in both.

    Bare: start, reset, three replies and their steps, evaluate, on one Toy24. Played: ``Player.play`` of a spec on a
    warm player: guard, recorder, verdict, and the encoded trajectory; no layer, no store, nothing compressed. Beside
    that, the bridge's calls alone, with no policy: on a guarded and recorded stack, and in the played episode.
    """
    specs = _specs(100)
    policy = ScriptedPolicy(ScriptConfig(SCRIPT))
    with Player(Plugins()) as player, Toy24() as bridge, _guarded(Toy24(), PassThrough, 0) as stack:
        bare, calls, stacked, played = alternating(
            blocks,
            lambda: _each(specs, lambda _: _bare_episode(bridge, policy)),
            lambda: _each(specs, lambda _: _bare_calls(bridge)),
            lambda: _each(specs, lambda _: _bare_calls(stack)),
            lambda: _each(specs, player.play),
        )
    yield Figure("episode_in_process", _ratio(played, bare), "x bare loop with the policy", 3.0)
    yield Figure("calls_on_a_stack", _ratio(stacked, calls), "x bare calls without a policy")
    yield Figure("episode_to_bare_calls", _ratio(played, calls), "x bare calls without a policy")
    yield Figure("bare_loop_time", median(bare) / len(specs) * 1e6, "us")
    yield Figure("episode_in_process_time", median(played) / len(specs) * 1e6, "us")


def episode_through_a_worker(blocks: int) -> Iterator[Figure]:
    """Compare episodes that a warm worker process plays with those played here.

    Latency: one at a time. Throughput: as many as the executor takes. Both from the spec to the record, which has been
    to the worker and back as a pickle, its trajectory compressed.
    """
    specs = _specs(50)
    plugins = Plugins()
    local = Local(LocalConfig(workers=1))
    try:
        list(local.run(iter(specs), plugins))
        with Player(plugins) as player:
            here, latency, throughput = alternating(
                max(5, blocks // 2),
                lambda: _each(specs, player.play),
                lambda: _each(specs, lambda spec: list(local.run(iter([spec]), plugins))),
                lambda: _each([specs], lambda many: list(local.run(iter(many), plugins))),
            )
    finally:
        local.close()
    yield Figure("episode_through_worker", median(latency) / len(specs) * 1e3, "ms", 5.0)
    yield Figure("episode_through_worker_ratio", _ratio(latency, here), "x in process")
    yield Figure("episode_through_worker_many", median(throughput) / len(specs) * 1e3, "ms")
    yield Figure("episode_through_worker_many_ratio", _ratio(throughput, here), "x in process")


def layers_per_step(blocks: int) -> Iterator[Figure]:
    """Compare 16 pass-through layers with 16 pass-through gymnasium wrappers, per step on the same environment.

    The environment is Toy24: in a guarded and recorded stack, and adapted to ``gymnasium.Env``. What the layers add is
    the time of a step with them minus that without them; likewise the wrappers.
    """
    stacks = [_stacked(depth) for depth in (0, DEPTH)]
    gyms = [_wrapped(depth) for depth in (0, DEPTH)]
    empty, full, plain, wrapped = alternating(
        4 * blocks,
        *[lambda stack=stack: _steps_of_stack(stack) for stack in stacks],
        *[lambda gym=gym: _steps_of_gym(gym) for gym in gyms],
    )
    layers, wrappers = _added(full, empty), _added(wrapped, plain)
    yield Figure("layers_16_added", layers / wrappers, "x 16 gymnasium wrappers", 1.5)
    yield Figure("layers_16_added_time", layers * 1e6, "us a step")
    yield Figure("wrappers_16_added_time", wrappers * 1e6, "us a step")
    yield Figure("step_with_16_layers", _ratio(full, wrapped), "x step with 16 gymnasium wrappers")


def state_reads() -> Iterator[Figure]:
    """Count how often a reset of a stack asks the bridge for its state."""
    for kind, target in ((PassThrough, 0), (Watching, DEPTH)):
        bridge = Counting()
        with _guarded(bridge, kind, DEPTH) as stack:
            stack.reset(0, OPTIONS)
        name = f"state_reads_{'no_hook' if kind is PassThrough else 'each_layer_reads'}"
        yield Figure(name, bridge.reads, f"reads at a reset of {DEPTH} layers", target)


class PassThrough(Layer[None]):
    """A layer that changes nothing."""


class Watching(Rules[None]):
    """Rules that read the state whenever something is shown, and show it as it is."""

    def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
        return observation


class Counting(Toy24):
    """Toy24 that counts how often its state is read."""

    reads = 0

    def get_env_state(self) -> EnvState:
        self.reads += 1
        return super().get_env_state()


class GymToy24(gymnasium.Env[JsonObject, Action]):
    """Toy24 with gymnasium's signatures, and nothing else between."""

    def __init__(self) -> None:
        self.bridge = Toy24()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[JsonObject, dict[str, Any]]:
        response = self.bridge.reset(seed or 0, options or {})
        return response.observation.data, response.info

    def step(self, action: Action) -> tuple[JsonObject, float, bool, bool, dict[str, Any]]:
        response = self.bridge.step(action)
        return (
            response.observation.data,
            response.reward,
            response.terminated,
            response.truncated,
            response.info,
        )


class GymPassThrough(gymnasium.Wrapper[JsonObject, Action, JsonObject, Action]):
    """A wrapper that changes nothing."""


def _specs(count: int) -> list[EpisodeSpec]:
    actions: JsonObject = {"actions": [{"name": a.name, "kwargs": a.kwargs} for a in SCRIPT]}
    policy = ComponentSpec("core/scripted", actions)
    design = Design(ComponentSpec("core/toy24"), "toy24 1", TASK, (), policy, Limits())
    return [
        EpisodeSpec(design, "bench", index, Seeds.of(0, TASK, "bench", index, seed_in_task=True))
        for index in range(count)
    ]


def _bare_episode(bridge: Env, policy: ScriptedPolicy) -> None:
    first = bridge.reset(0, OPTIONS)
    policy.start(first.instruction, bridge.tools(), 0)
    observation, ended = first.observation, False
    while not ended:
        response = bridge.step(policy.act(observation).actions[0])
        observation, ended = response.observation, response.ended
    bridge.evaluate()


def _bare_calls(env: Env) -> None:
    env.reset(0, OPTIONS)
    for action in SCRIPT:
        env.step(action)
    env.evaluate()


def _each(items: Sequence[T], do: Callable[[T], object]) -> float:
    began = time.perf_counter()
    for item in items:
        do(item)
    return time.perf_counter() - began


def _guarded(bridge: Toy24, kind: type[Layer[None]], depth: int) -> Guard:
    recorder = Recorder(bridge)
    top: Env = recorder
    for _ in range(depth):
        top = kind(top, None)
    return Guard(top, [recorder])


def _stacked(depth: int) -> Guard:
    return _guarded(Toy24(), PassThrough, depth)


def _wrapped(depth: int) -> gymnasium.Env[JsonObject, Action]:
    env: gymnasium.Env[JsonObject, Action] = GymToy24()
    for _ in range(depth):
        env = GymPassThrough(env)
    return env


def _steps_of_stack(stack: Guard) -> float:
    stack.reset(0, OPTIONS)
    return _steps(stack.step)


def _steps_of_gym(env: gymnasium.Env[JsonObject, Action]) -> float:
    env.reset(seed=0, options=OPTIONS)
    return _steps(env.step)


def _steps(step: Callable[[Action], object]) -> float:
    """Return the seconds of one step, over moves and undos."""
    began = time.perf_counter()
    for _ in range(PAIRS):
        step(MOVE)
        step(BACK)
    return (time.perf_counter() - began) / (2 * PAIRS)


def _added(more: Sequence[float], less: Sequence[float]) -> float:
    return median(a - b for a, b in zip(more, less, strict=True))


def _ratio(over: Sequence[float], under: Sequence[float]) -> float:
    return median(a / b for a, b in zip(over, under, strict=True))


if __name__ == "__main__":
    main()
