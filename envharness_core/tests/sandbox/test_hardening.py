"""What reviewers found: each is closed, and stays so."""

from __future__ import annotations

import os
import resource
import signal
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from envharness_core.data import Action, Observation
from envharness_core.errors import CheckpointError, ConfigError, DataError, RulesError, SandboxError
from envharness_core.jsondata import copy_object
from envharness_core.layers.source import SourceRules
from envharness_core.plugins import Plugins
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.dialect import is_submission
from envharness_core.sandbox.host import Sandbox
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack

COUNTER = ComponentSpec("testing/counter")
PASS = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        return action\n"


@pytest.fixture(scope="module")
def own() -> Iterator[Sandbox]:
    made = Sandbox(SandboxConfig(seconds=0.5, memory_mb=128))
    yield made
    made.close()


def rules(*sources: str) -> list[ComponentSpec]:
    return [ComponentSpec("core/rules", {"source": source}) for source in sources]


def started(plugins: Plugins, *sources: str) -> Stack:
    stack = build_stack(plugins, COUNTER, rules(*sources))
    stack.reset(0, {"task": "three"})
    return stack


@pytest.mark.parametrize("mode", ["Locked", "lokced", "none", None])
def test_only_the_one_word_unlocks(mode: Any) -> None:
    with pytest.raises(ValueError, match="must be in"):
        SandboxConfig(mode=mode)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("proces", "sandbox.mode: expected one of 'locked', 'process', got 'proces'"),
        ({"second": 1}, "sandbox: unknown key 'second' (did you mean 'seconds'?)"),
        ({"reply_mb": 0.0001}, "'reply_mb' must be >= 0.01"),
        (3, "sandbox: expected a table, got 3"),
    ],
)
def test_a_wrong_choice_says_what_is_allowed(given: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Plugins(sandbox=given)
    assert says in str(caught.value)
    assert Plugins(sandbox="process").sandbox == SandboxConfig(mode="process")


def test_objects_from_a_worker_have_text_for_keys_whoever_wrote_them() -> None:
    keys = b"".join(b"\x92" + bytes([0x01, number]) + b"\xc0" for number in range(100))
    body = p.encode((1, "Passed", "add"))[:0] + b"\x92\x01\x93\xa6Passed\xa3add\x81\xa1a\xdc\x00\x64" + keys
    with pytest.raises(Exception, match="Expected `bytes"):
        p.decode_reply(body)


def test_errors_deep_in_data_take_no_more_memory_than_the_data() -> None:
    nested: Any = {1}
    for _ in range(300):
        nested = {"k" * 8000: nested}
    tracemalloc.start()
    with pytest.raises(DataError) as caught:
        copy_object({"a": nested})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000  # with a path for each level it were hundreds of megabytes
    assert len(str(caught.value)) < 1000
    assert caught.value.path.startswith("a.kkkk")


def test_a_hostile_key_or_tag_does_nothing_to_a_terminal(plugins: Plugins) -> None:
    forged = (
        "dig = fake_response.__func__.__globals__['builtins'].__import__\n"
        "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n"
        "        os, sys = dig('os'), dig('sys')\n"
        "        p, frame = sys.modules['envharness_core.sandbox.protocol'], sys._getframe()\n"
        "        while 'nonce' not in frame.f_locals: frame = frame.f_back\n"
        "        text = ('{\"' + chr(92) + 'u001b]0;x' + chr(92) + 'u0007\": 1e999}').encode()\n"
        "        os.write(4, p.frame(frame.f_locals['nonce'], p.Passed('add', text)))\n"
        "        os.read(3, 1)\n"
    )
    with started(plugins, forged) as stack, pytest.raises(RulesError) as caught:
        stack.step(Action("add"))
    assert caught.value.kind == "protocol"
    assert caught.value.hook == "filter_action"
    assert all(char.isprintable() for char in str(caught.value))


def test_rules_add_none_of_the_cores_own_words(plugins: Plugins) -> None:
    source = (
        "class _Rules(Rules):\n    def modify_transition(self, a, r, s):\n"
        "        return evolve(r, info={'blocked': 'x', 'malformed': 'x', 'handoff': {}, 'setup': [], 'mine': 1})\n"
    )
    with started(plugins, source) as stack:
        assert stack.step(Action("add")).info == {"mine": 1}


def test_a_benchmarks_end_stays_its_end_where_only_truncation_is_set(plugins: Plugins) -> None:
    source = (
        "class _Rules(Rules):\n    def modify_transition(self, a, r, s):\n"
        "        return evolve(r, terminated=False, truncated=True)\n"
    )
    with started(plugins, source) as stack:
        response = stack.step(Action("submit"))
        assert (response.terminated, response.truncated) == (True, True)
        assert "resume" not in [event.kind for event in stack.events()[0]]


def test_an_agents_long_argument_is_no_fault_of_rules_that_pass_it(plugins: Plugins) -> None:
    source = PASS + "    def modify_transition(self, a, r, s):\n        return r\n"
    plugins = Plugins({**plugins.modules, "shells": "shells"}, sandbox=SandboxConfig(reply_mb=0.05))
    with build_stack(plugins, ComponentSpec("shells/shell"), rules(source)) as stack:
        stack.reset(0, {"task": "issue"})
        command = "x" * 200_000
        response = stack.step(Action("bash", {"command": command}))
        assert response.info == {"ran": command}


def test_a_state_that_is_too_large_is_the_machines_affair(own: Sandbox) -> None:
    wire = own.worker()
    request = p.Before(Action("add"), p.raw({"text": "x" * (20 << 20)}))
    with pytest.raises(SandboxError, match=r"takes 20 MiB, too much for a sandbox with memory_mb = 128"):
        wire.ask("filter_action", request, p.Passed)
    wire.close()


def test_a_submission_is_found_in_linear_time() -> None:
    began = time.process_time()
    assert not is_submission("\n" * 200_000)
    assert time.process_time() - began < 1.0
    assert is_submission("\n" * 1000 + "  echo 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'")


def test_an_interrupt_in_the_middle_of_an_answer_costs_the_zygote_and_nothing_else(own: Sandbox) -> None:
    own.worker().close()
    zygote = own._zygote
    assert zygote is not None
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted, not walked
    os.kill(zygote._process.pid, signal.SIGSTOP)  # it will not answer
    usual = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            own.worker()
    finally:
        signal.signal(signal.SIGALRM, usual)
    wire = own.worker()
    assert own._zygote is not zygote
    assert len(os.listdir("/proc/self/fd")) <= before + 3  # noqa: PTH208
    wire.close()


def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def test_a_process_without_descriptors_loses_no_other_worker(own: Sandbox) -> None:
    wire = own.worker()
    wire.ask("source", p.Begin([p.Source(PASS, 0)], resumable=False), p.Loaded)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), limits[1]))  # noqa: PTH208
    try:
        with pytest.raises(SandboxError, match="no pipe can be made"):
            own.worker()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert isinstance(wire.ask("filter_action", p.Before(Action("add"), p.raw({})), p.Passed), p.Passed)
    wire.close()


def test_a_stack_is_not_used_on_in_a_forked_process(plugins: Plugins) -> None:
    with started(plugins, PASS) as stack:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                stack.step(Action("add"))
            except SandboxError:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert stack.step(Action("add")).observation.data == {"count": 1}


def test_a_fault_says_which_of_several_layers_it_is(plugins: Plugins) -> None:
    broken = PASS.replace("return action", "return 1 / 0")
    with started(plugins, PASS, broken, PASS) as stack, pytest.raises(RulesError) as caught:
        stack.step(Action("add"))
    assert str(caught.value).startswith("layers[1]: filter_action (raised, line 3): ZeroDivisionError")


@pytest.mark.parametrize(
    "given", [{}, {"observation": 5, "state": {}}, {"observation": {"text": "x"}, "state": 7}, 3]
)
def test_a_hostile_checkpoint_of_rules_is_refused_when_it_is_loaded(plugins: Plugins, given: Any) -> None:
    with started(plugins, PASS) as stack:
        saved: Any = stack.chain.save()
        saved["layers"][0]["state"]["own"]["given"] = given
        (_, layer), *_ = stack.chain.layers
        assert isinstance(layer, SourceRules)
        with pytest.raises((CheckpointError, DataError, KeyError, TypeError)):
            stack.chain.load(saved)


def test_items_and_attributes_of_a_state_say_the_same_of_a_field_that_is_missing(plugins: Plugins) -> None:
    for read in ("env_state.inventory", "env_state['inventory']"):
        source = PASS.replace("return action", f"return Blocked(str({read}))")
        with started(plugins, source) as stack, pytest.raises(RulesError) as caught:
            stack.step(Action("add"))
        assert "the state has no field 'inventory'; it has: count, submitted" in caught.value.detail


def test_names_that_are_missing_come_with_a_hint(plugins: Plugins) -> None:
    for body, hint in (("Block('x')", "did you mean 'Blocked'?"), ("math.pi", "import it first")):
        with started(plugins, PASS.replace("return action", f"return {body}")) as stack:
            with pytest.raises(RulesError) as caught:
                stack.step(Action("add"))
            assert hint in caught.value.detail


def test_what_is_shown_is_the_same_object_where_nothing_changed(plugins: Plugins) -> None:
    source = (
        "class _Rules(Rules):\n    def filter_observation(self, o, s):\n"
        "        return evolve(o, data={'count': True})\n"
    )
    with started(plugins, source) as stack:
        assert stack.step(Action("add")).observation.data["count"] is True  # and not the 1 that it equals
        assert stack.observe() == Observation("The count is 1.", {"count": True})
