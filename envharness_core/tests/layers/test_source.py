"""Rules as source code: the dialect that designers write, and what their hooks may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from envharness_core.data import Action, Observation
from envharness_core.errors import CheckpointError, ConfigError, LayerError, RulesError
from envharness_core.layers.source import SourceRules
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack

SHELL = ComponentSpec("shells/shell")
TASK: Any = {"task": "issue"}
Made = Callable[..., Stack]


def bash(command: str) -> Action:
    return Action("bash", {"command": command})


@pytest.fixture
def made() -> Iterator[Made]:
    """Build stacks of rules, given as source code innermost first, over the shell, and close them afterwards."""
    plugins = Plugins({"shells": "shells", "testing": "envharness_core.testing.plugin"})
    stacks: list[Stack] = []

    def build(*sources: str, bridge: ComponentSpec = SHELL, task: str = "issue") -> Stack:
        layers = [ComponentSpec("rules", {"source": source}) for source in sources]
        stack = build_stack(plugins, bridge, layers)
        stacks.append(stack)
        stack.reset(0, {"task": task})
        return stack

    yield build
    for stack in stacks:
        stack.close()


def hook(body: str, name: str = "modify_transition") -> str:
    """Return a source with one hook, whose arguments go by letters."""
    letters = {"filter_action": "a, s", "modify_transition": "a, r, s", "filter_observation": "o, s"}[name]
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    return f"class _Rules(Rules):\n    def {name}(self, {letters}):\n{lines}\n"


TESTED_FIRST = """
class _Contract(Contract):
    def modify_transition(self, action, response, env_state):
        cmd = bash_command(action)
        if "unittest" in cmd:
            env_state.extras["tested"] = True
        if is_submission(cmd) and not env_state.extras.get("tested"):
            return failed(response, "Not tested yet.")
        return response
"""


@pytest.mark.parametrize("submission", [Action("submit"), bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")])
def test_a_rule_for_submissions_holds_for_the_tool_and_for_the_command(
    made: Made, submission: Action
) -> None:
    stack = made(TESTED_FIRST)
    refused = stack.step(submission)
    assert (refused.observation, refused.terminated) == (
        Observation("Not tested yet.", {"exit_code": 1}),
        False,
    )
    assert refused.reward == 1.0  # passes through, whatever the hook thinks
    assert [event.kind for event in stack.events()[0]] == ["reset", "step", "resume"]
    assert not stack.evaluate().success
    stack.step(bash("python -m unittest"))
    assert stack.step(submission).terminated
    assert stack.evaluate().success


def test_scratch_and_instance_live_for_an_episode(made: Made) -> None:
    stack = made(
        "class _Rules(Rules):\n"
        "    calls = 0\n"
        "    def filter_action(self, action, env_state):\n"
        "        self.calls += 1\n"
        "        env_state.extras['n'] = env_state.extras.get('n', 0) + 1\n"
        "        return action\n"
        "    def filter_observation(self, observation, env_state):\n"
        "        text = f\"{self.calls} {env_state.extras.get('n')}\"\n"
        "        return Observation(text=text, data=observation.data)\n"
    )
    assert [stack.step(bash("x")).observation.text for _ in range(2)] == ["1 1", "2 2"]
    stack.notify_replay_complete()
    assert stack.step(bash("x")).observation.text == "1 1"
    assert stack.reset(0, TASK).observation.text == "0 None"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("s.commands[0] + s['commands'][0]", "lsls"),
        ("str(s.submitted)", "False"),
        ("bash_command(a)", "ls"),
        ("bash_command(Action('str_replace_editor', {'command': 'view'}))", ""),
        ("bash_command(Action('submit'))", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
        ("str(is_submission('cd x && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'))", "False"),
        ("str(is_submission('  echo \"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\"\\ncat patch'))", "True"),
        ("str(is_submission('ls'))", "False"),
        ("action_str(a)", "ls"),
        ("action_str(Action('do', {'action': \"goto('/x')\"}))", "goto('/x')"),
        ("action_str(Action('goto', {'url': '/x'}))", 'goto(url="/x")'),
        ("action_str(Action('click', {'bid': '3', 'n': 2}))", 'click(bid="3", n=2)'),
        ("Blocked('no').reason + Blocked(reason='way').reason", "noway"),
        ("str(EnvResponse is StepResponse and Contract is Rules)", "True"),
        ("str(issubclass(type(self), Contract))", "True"),
        ("evolve(r.observation, text='made').text", "made"),
        ("str(__import__('re').sub('l', 'L', 'ls'))", "Ls"),
    ],
)
def test_what_is_in_scope(made: Made, expression: str, text: str) -> None:
    stack = made(hook(f"return evolve(r, observation=Observation({expression}))"))
    assert stack.step(bash("ls")).observation.text == text


def test_a_faked_response_inherits_all_but_what_it_says(made: Made) -> None:
    stack = made(hook("return fake_response('bash: x: command not found', exit_code=127)"))
    response = stack.step(Action("submit"))
    assert response.observation == Observation("bash: x: command not found", {"exit_code": 127})
    assert (response.reward, response.terminated, response.info) == (1.0, True, {"ran": ""})


def test_a_faked_response_elsewhere_is_an_error_that_says_where(made: Made) -> None:
    stack = made(hook("return fake_response('x')", "filter_action"))
    with pytest.raises(RulesError, match="works in modify_transition only"):
        stack.step(bash("ls"))


def test_chance_is_seeded_and_starts_anew_with_the_episode(made: Made) -> None:
    source = "import random\n" + hook(
        "return Observation(f'{random.random()} {self.random.random()} {random.Random().random()}')",
        "filter_observation",
    )
    stack = made(source)
    seeds = [{**TASK, "layer_seed": seed} for seed in (1, 1, 2)]
    one, two, other = [stack.reset(0, options).observation.text for options in seeds]
    assert one == two != other
    again = stack.step(bash("x")).observation.text
    stack.reset(0, seeds[2])
    stack.notify_replay_complete()
    assert stack.step(bash("x")).observation.text == other != again


@pytest.mark.parametrize(
    "statement",
    ["import re, json as j, collections.abc", "from urllib.parse import urlparse", "from random import choice",
     "from __future__ import annotations", "import datetime\ndatetime.datetime.strptime('2020', '%Y')"],
)  # fmt: skip
def test_pure_modules_can_be_imported(made: Made, statement: str) -> None:
    stack = made(f"{statement}\n{hook('return a', 'filter_action')}")
    assert stack.step(bash("ls")).info == {"ran": "ls"}


def test_what_is_printed_goes_nowhere(made: Made, capfd: pytest.CaptureFixture[str]) -> None:
    stack = made(hook("print('hello', flush=True)\nreturn a", "filter_action"))
    stack.step(bash("ls"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return r.observation", "expected a StepResponse, got Observation"),
        ("pass", r"got NoneType \(is a return missing\?\)"),
        ("return evolve(r, info={'x': float('nan')})", "info.x: nan"),
        ("return evolve(r, info={'x': {1}})", "info.x: set"),
        ("return evolve(r, info={'x': b'1'})", "info.x: bytes"),
        ("return evolve(r, info={1: 2})", "the key 1 is not a string"),
        ("return evolve(r, info={'x': 2 ** 70})", "info.x: an integer beyond 64 bits"),
        ("return evolve(r, reward=float('nan'))", "reward"),
        ("return evolve(r, truncated='yes')", "truncated: expected a bool"),
        ("return evolve(r, observation=Observation('\\ud83d'))", "lone surrogate"),
        (
            "return evolve(r, observation=Observation('x' * 5_000_000))",
            "returned takes 5,000,.* bytes; 1,048,576 are",
        ),
    ],
)
def test_a_contract_fault_names_hook_line_and_path(made: Made, body: str, says: str) -> None:
    stack = made("\n\n" + hook(body))
    with pytest.raises(RulesError, match=says) as caught:
        stack.step(bash("ls"))
    fault = caught.value
    assert (fault.hook, fault.kind, fault.line) == ("modify_transition", "contract", 4)
    with pytest.raises(LayerError):
        stack.chain.top.step(bash("ls"))
    assert stack.reset(0, TASK).instruction == "Mend it."  # the next episode has a worker of its own


def test_an_extra_field_and_a_write_to_data_say_what_to_do(made: Made) -> None:
    for body, says in (
        ("return EnvResponse(r.observation, verdict=True)", "unexpected keyword argument 'verdict'"),
        (
            "r.observation.text = 'x'\nreturn r",
            r"data is frozen: return a new one, as in evolve\(observation",
        ),
    ):
        with pytest.raises(RulesError, match=says) as caught:
            made(hook(body)).step(bash("ls"))
        assert (caught.value.hook, caught.value.kind, caught.value.line) == ("modify_transition", "raised", 3)


def test_an_exception_is_told_with_the_lines_that_led_there(made: Made) -> None:
    source = "def half(n):\n    return n // 0\n" + hook("return half(4)", "filter_action")
    with pytest.raises(RulesError) as caught:
        made(source).step(bash("ls"))
    fault = caught.value
    assert (
        str(fault) == "filter_action (raised, line 2): ZeroDivisionError: integer division or modulo by zero"
    )
    assert fault.trace == "line 5, in filter_action: return half(4)\nline 2, in half: return n // 0"


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
def test_only_truncation_can_be_set(made: Made, flag: str) -> None:
    response = made(hook(f"return evolve(r, {flag}=True, reward=99)")).step(bash("ls"))
    assert (response.terminated, response.truncated, response.reward) == (False, flag == "truncated", 0.0)


def test_info_of_the_bridge_survives(made: Made) -> None:
    response = made(hook("return evolve(r, info={'ran': 'forged', 'more': 1})")).step(bash("ls"))
    assert response.info == {"ran": "ls", "more": 1}


def test_an_end_that_cannot_be_resumed_is_not_masked(made: Made) -> None:
    stack = made(
        hook("return evolve(r, truncated=False)"),
        bridge=ComponentSpec("testing/text_world", {"limit": 1}),
        task="ring",
    )
    with pytest.raises(RulesError, match="isn't resumable, so its end can't be masked"):
        stack.step(Action("do", {"text": "look"}))


def test_mistakes_are_found_before_the_first_episode(made: Made) -> None:
    plugins = Plugins({"shells": "shells"})
    for source, kind, says in (
        ("class _Rules(Rules)\n    pass", "compile", "expected ':'"),
        ("x = 1", "compile", "must define class _Rules"),
        (
            "import os\n" + hook("return a", "filter_action"),
            "forbidden",
            r"\(forbidden, line 1\): os: not importable",
        ),
        ("1 / 0\n" + hook("return a", "filter_action"), "raised", "ZeroDivisionError"),
    ):
        with build_stack(plugins, SHELL, [ComponentSpec("rules", {"source": source})]) as stack:
            with pytest.raises(RulesError, match=says) as caught:
                stack.check()
            assert (caught.value.hook, caught.value.kind) == ("source", kind)
    with pytest.raises(ConfigError, match="source"):
        build_stack(plugins, SHELL, [ComponentSpec("rules", {"source": ""})])


def test_a_run_is_saved_at_an_episodes_start_only(made: Made) -> None:
    stack = made(hook("return o", "filter_observation"))
    assert stack.capabilities.snapshot == "episode"
    stack.chain.save()
    stack.step(bash("ls"))
    with pytest.raises(CheckpointError, match="at an episode's start only"):
        stack.chain.save()
    stack.notify_replay_complete()
    stack.chain.save()


def test_a_worker_belongs_to_one_episode(made: Made) -> None:
    stack = made(
        "seen = []\n" + hook("seen.append(1)\nreturn Observation(str(len(seen)))", "filter_observation")
    )
    (_, layer), *_ = stack.chain.layers
    assert isinstance(layer, SourceRules)
    pids = set()
    for _ in range(3):
        assert stack.reset(0, TASK).observation.text == "1"
        wire = layer.run._wire
        assert wire is not None
        pids.add(wire.pid)
    assert len(pids) == 3
