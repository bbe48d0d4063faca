"""The sandbox is invisible: nothing but where hooks run differs from trusted layers, and nothing at all from none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.checks.drive import World, perform, snapshot
from envharness_core.checks.replaying import require_bare_verdict
from envharness_core.checks.results import require_same
from envharness_core.data import Action, EnvState, Observation
from envharness_core.errors import SetupError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layers.rules import Rules
from envharness_core.layers.source import SourceRules
from envharness_core.plugins import Plugins
from envharness_core.sandbox.protocol import Message
from envharness_core.sandbox.wire import Wire
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack
from envharness_core.testing import actions, layer_suite, setups, worlds

PASS = """
class _Rules(Rules):
    def filter_action(self, action, env_state):
        return action
    def modify_transition(self, action, response, env_state):
        return response
    def filter_observation(self, observation, env_state):
        return observation
"""

ACTING = """
import random
class _Rules(Rules):
    def __init__(self):
        self.seen = []
    def filter_action(self, action, env_state):
        self.seen.append(action.name)
        env_state.extras["acts"] = env_state.extras.get("acts", 0) + 1
        env_state["forged"] = True
        if random.random() < 0.3:
            return Blocked(f"{action_str(action)} is out of order, {len(self.seen)}")
        if action.name == "add" and random.random() < 0.5:
            return Action("add", {"amount": random.randint(1, 3)})
        return action
"""

TURNING = """
class _Contract(Contract):
    def modify_transition(self, action, response, env_state):
        roll = self.random.random()
        if roll < 0.2:
            return failed(response, "It failed.") if not response.terminated else response
        if roll < 0.3:
            return EnvResponse(
                observation=response.observation, reward=99, terminated=True, truncated=response.truncated,
                info={"by": action.name},
            )
        if roll < 0.4:
            return evolve(response, truncated=True)
        return evolve(response, info={"roll": roll, "error": "forged", **env_state})
"""

SHOWING = """
class _Rules(Rules):
    count = 0
    def filter_observation(self, obs, env_state):
        self.count += 1
        env_state.extras.setdefault("texts", []).append(obs.text[:5])
        seen = len(env_state.extras["texts"])
        return Observation(f"{self.count} {seen} {obs.text[:40]}", {"n": self.count, **obs.data})
"""

MASKING = """
class _Rules(Rules):
    def modify_transition(self, action, response, env_state):
        masks = response.terminated and not env_state.extras.get("masked")
        if masks:
            env_state.extras["masked"] = True
            return evolve(response, terminated=False)
        return response
"""

BETWEEN = [
    ComponentSpec("testing/pass_through"),
    ComponentSpec("shaping/marked"),
    ComponentSpec("faults", {"rate": 0.3}),
]


@pytest.fixture(scope="module")
def twins(plugins: Plugins) -> Plugins:
    return Plugins({**plugins.modules, "twins": "twins"})


def rules(source: str) -> ComponentSpec:
    return ComponentSpec("core/rules", {"source": source})


def twin(layer: ComponentSpec) -> ComponentSpec:
    return evolve(layer, use="twins/twin") if layer.use == "core/rules" else layer


def played(env: Stack, task: str, todo: Sequence[Action], seed: int) -> list[Json]:
    try:
        return perform(env, task, todo, seed=seed, layer_seed=seed)
    except SetupError as error:  # rules inside may end its replay
        return [str(error)]


def same_streams(sandboxed: Stack, trusted: Stack) -> None:
    """Name the layers' streams alike, as if the twins were the same layers."""
    for (_, one), (_, two) in zip(sandboxed.chain.layers, trusted.chain.layers, strict=True):
        two.identity = one.identity


@given(world=worlds(), depth=st.integers(1, 4), data=st.data())
def test_pass_through_rules_are_indistinguishable_from_no_layer(
    plugins: Plugins, world: World, depth: int, data: st.DataObject
) -> None:
    with (
        build_stack(plugins, world.bridge) as bare,
        build_stack(plugins, world.bridge, [rules(PASS)] * depth) as stack,
    ):
        assert stack.tools() == bare.tools()
        assert evolve(stack.capabilities, snapshot=bare.capabilities.snapshot) == bare.capabilities
        todo = data.draw(st.lists(actions(bare.tools(), malformed=True), max_size=10))
        require_same(perform(bare, world.task, todo), perform(stack, world.task, todo), "the tape")
        assert stack.events() == bare.events()
        require_same(snapshot(bare), snapshot(stack), "the end")


@given(world=worlds(), data=st.data())
def test_sandboxed_hooks_do_what_the_same_hooks_do_in_process(
    twins: Plugins, world: World, data: st.DataObject
) -> None:
    sources = [ACTING, TURNING, SHOWING, PASS]
    if world.bridge.use != "testing/text_world":  # which can't be resumed
        sources.append(MASKING)
    menu = [*map(rules, sources), *map(rules, sources), *BETWEEN]
    layers = data.draw(st.lists(st.sampled_from(menu), min_size=1, max_size=5))
    if data.draw(st.booleans()):
        layers.insert(data.draw(st.integers(0, len(layers))), data.draw(setups(world)))
    with (
        build_stack(twins, world.bridge, layers) as sandboxed,
        build_stack(twins, world.bridge, [twin(layer) for layer in layers]) as trusted,
    ):
        same_streams(sandboxed, trusted)
        for seed in (1, 2):
            todo = data.draw(st.lists(actions(trusted.tools()), max_size=8))
            expected, got = (played(env, world.task, todo, seed) for env in (trusted, sandboxed))
            require_same(expected, got, "the tape")
            if "setup action" in str(expected):
                continue
            assert sandboxed.events() == trusted.events()
            require_same(snapshot(trusted), snapshot(sandboxed), "the end")
            shown = [[layer.observe() for _, layer in env.chain.layers] for env in (trusted, sandboxed)]
            assert shown[0] == shown[1]
            require_bare_verdict(twins, sandboxed, repr(sandboxed))


def test_a_trusted_subclass_draws_what_a_source_draws(plugins: Plugins) -> None:
    class Trusted(Rules):
        def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
            return observation.preceded_by(f"{self.random.random()} {self.random.choice('abcdef')}")

    source = """
import random
class _Rules(Rules):
    def filter_observation(self, observation, env_state):
        return observation.preceded_by(f"{random.random()} {self.random.choice('abcdef')}")
"""
    counter = ComponentSpec("testing/counter")
    with build_stack(plugins, counter, [rules(source)]) as stack:
        (_, sandboxed), *_ = stack.chain.layers
        with build_stack(plugins, counter) as bare:
            trusted = Trusted(bare.chain.top, None)
            trusted.identity = sandboxed.identity
            options: JsonObject = {"task": "three", "layer_seed": 7}
            bare.chain.admit(1, "three")
            first = trusted.reset(1, options).observation
            assert first == stack.reset(1, options).observation
            assert trusted.step(Action("add")) == stack.step(Action("add"))


def test_adjacent_layers_share_a_worker_and_others_split_the_run(plugins: Plugins) -> None:
    layers = [rules(PASS), rules(SHOWING), BETWEEN[0], rules(PASS)]
    with build_stack(plugins, ComponentSpec("testing/counter"), layers) as stack:
        runs = [layer.run for _, layer in stack.chain.layers if isinstance(layer, SourceRules)]
    assert [len(run.members) for run in runs] == [2, 2, 1]
    assert runs[0] is runs[1] is not runs[2]


@pytest.mark.parametrize("sources", [(PASS,), (ACTING,), (SHOWING, ACTING, TURNING) * 4])
def test_a_step_takes_at_most_two_calls(
    plugins: Plugins, sources: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Wire.ask

    def counted(wire: Wire, hook: str, request: Message, kind: Any) -> Any:
        asked.append(type(request).__name__)
        return ask(wire, hook, request, kind)

    monkeypatch.setattr(Wire, "ask", counted)
    with build_stack(plugins, ComponentSpec("testing/counter"), list(map(rules, sources))) as stack:
        for seed in range(8):  # of blocked steps too
            stack.reset(seed, {"task": "three"})
            asked.clear()
            stack.step(Action("add"))
            assert len(asked) <= 2
            assert set(asked) <= {"Before", "After"}


def test_the_state_is_fetched_at_most_twice_a_step_whatever_the_depth(plugins: Plugins) -> None:
    with build_stack(plugins, ComponentSpec("testing/counter"), [rules(PASS)] * 12) as stack:
        reads = 0
        recorder = stack.chain.recorder
        fetch = recorder.get_env_state

        def counted() -> EnvState:
            nonlocal reads
            reads += 1
            return fetch()

        recorder.get_env_state = counted  # type: ignore[method-assign]
        stack.reset(0, {"task": "three"})
        assert reads == 1
        stack.step(Action("add"))
        assert reads == 3


BASE = ACTING.replace("class _Rules(Rules)", "class Base(Rules)")
TestRules = layer_suite("core/rules", source=BASE + SHOWING.replace("(Rules)", "(Base)"))
