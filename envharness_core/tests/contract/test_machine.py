"""A state machine over random stacks, beside a plain model of phases, events and verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from envharness_core import checkpoint
from envharness_core.checks.drive import World, as_json
from envharness_core.checks.replaying import require_bare_verdict
from envharness_core.checks.results import require_same
from envharness_core.data import StepResponse
from envharness_core.errors import CheckpointError, EpisodeOver, OrderError
from envharness_core.jsondata import Json, copy_object
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack
from envharness_core.testing import actions, malformed_actions, stacks, worlds

_PLUGINS = Plugins({"testing": "envharness_core.testing.plugin"})


class AnyStack(RuleBasedStateMachine):
    """The model: a phase, and the number of steps and resets that reached the bridge."""

    stack: Stack
    world: World

    @initialize(world=worlds(), data=st.data())
    def build(self, world: World, data: st.DataObject) -> None:
        with build_stack(_PLUGINS, world.bridge) as bare:
            layers = data.draw(stacks(world, tools=bare.tools()), label="layers")
        self.world, self.layers = world, layers
        self.stack = build_stack(_PLUGINS, world.bridge, layers)
        self.phase = "new"

    @rule(seed=st.integers(0, 3))
    def reset(self, seed: int) -> None:
        if self.phase == "closed":
            with pytest.raises(OrderError, match="closed"):
                self.stack.reset(seed, {"task": self.world.task})
            return
        first = self.stack.reset(seed, {"task": self.world.task, "layer_seed": seed})
        self.phase = "running"
        assert first.instruction
        assert self.stack.observe() == first.observation
        (events,) = self.stack.events()
        assert [event.kind for event in events if event.kind == "reset"] == ["reset"]

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        action = data.draw(actions(self.stack.tools()))
        if self.phase != "running":
            wrong = EpisodeOver if self.phase == "over" else OrderError
            with pytest.raises(wrong):
                self.stack.step(action)
            return
        before = self.reached()
        response = self.stack.step(action)
        self.phase = "over" if response.ended else "running"
        arrived = self.reached()[len(before) :]
        assert len(arrived) <= 1  # none of these layers acts on its own
        self.looks_like(response, arrived)

    @precondition(lambda self: self.phase == "running")
    @rule(data=st.data())
    def malformed(self, data: st.DataObject) -> None:
        before = self.stack.events()
        response = self.stack.step(data.draw(malformed_actions(self.stack.tools())))
        assert "malformed" in response.info or self.stack.events() != before
        if "malformed" in response.info:
            assert self.stack.events() == before
            assert not response.ended

    @precondition(lambda self: self.phase in ("running", "over"))
    @rule()
    def evaluate(self) -> None:
        assert as_json(self.stack.evaluate()) == as_json(self.stack.evaluate())
        require_bare_verdict(_PLUGINS, self.stack, repr(self.stack))

    @precondition(lambda self: self.phase == "over")
    @rule()
    def resume(self) -> None:
        if self.stack.capabilities.resumable:
            self.stack.resume()
            self.phase = "running"
        else:
            with pytest.raises(OrderError, match="isn't resumable"):
                self.stack.resume()

    @precondition(lambda self: self.phase in ("running", "over"))
    @rule()
    def reload(self) -> None:
        try:
            saved = checkpoint.save(self.stack)
        except CheckpointError:
            assert self.stack.capabilities.snapshot == "episode"
            return
        loaded = checkpoint.load(_PLUGINS, copy_object(saved))
        require_same(saved, checkpoint.save(loaded), "saved again")
        assert loaded.observe() == self.stack.observe()
        self.stack.close()
        self.stack = loaded

    @rule()
    def close(self) -> None:
        self.stack.close()
        self.phase = "closed"

    @precondition(lambda self: self.phase == "closed")
    @rule()
    def build_again(self) -> None:
        self.stack = build_stack(_PLUGINS, self.world.bridge, self.layers)
        self.phase = "new"

    @precondition(lambda self: self.phase in ("new", "closed"))
    @rule(call=st.sampled_from(["observe", "evaluate", "get_env_state", "resume", "notify_replay_complete"]))
    def out_of_order(self, call: str) -> None:
        with pytest.raises(OrderError, match="closed" if self.phase == "closed" else "call reset first"):
            getattr(self.stack, call)()

    @invariant()
    def phases_agree(self) -> None:
        if hasattr(self, "stack"):
            assert self.stack.phase == self.phase

    def reached(self) -> list[Any]:
        return [event.body["response"] for event in self.stack.events()[0] if event.kind == "step"]

    def looks_like(self, response: StepResponse, arrived: list[Any]) -> None:
        """Compare what was shown with what reached the bridge."""
        shown: Json = [response.reward, response.terminated]
        inner = arrived[0] if arrived else {"reward": 0.0, "terminated": False, "truncated": False}
        assert shown == [inner["reward"], inner["terminated"]]
        assert response.truncated or not inner["truncated"]
        if not arrived:
            assert response.info.keys() & {"blocked", "transient_error"}

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()


AnyStack.TestCase.settings = settings(
    settings.default,
    stateful_step_count=20,
    max_examples=max(10, (settings.default or settings()).max_examples // 2),
)
TestAnyStack = AnyStack.TestCase


def test_the_specs_are_kept_with_full_names() -> None:
    with build_stack(_PLUGINS, ComponentSpec("toy24"), [ComponentSpec("budget", {"steps": 1})]) as stack:
        assert [layer.use for layer in stack.layers] == ["core/budget"]
        assert repr(stack) == "Stack(core/toy24, core/budget)"
