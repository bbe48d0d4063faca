"""The model policy: what it asks, how it does a reply's calls, and what it makes of their results."""

from __future__ import annotations

from itertools import pairwise

import pytest
from canned_policy import USED, CannedModel, calls, says, started  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import Action, Observation
from envharness_core.errors import ContextError, OrderError, ProviderError
from envharness_core.toy24.bridge import Toy24
from envharness_llm.messages import Answer, Message, ToolCall
from envharness_llm.parsing import Format
from envharness_llm.policy import ModelPolicy, PolicyConfig

TOOLS = Toy24().tools()
FORMATS: tuple[Format, ...] = ("tools", "think_action", "text")
START = Observation("Numbers: [0] 1  [1] 2")


def test_a_request_says_which_model_with_which_tools_and_on_whose_account() -> None:
    policy, model = started(calls(("undo", "")), temperature=0.7, max_tokens=90, reasoning="low")
    policy.act(START)
    policy.act(START)
    first, second = model.requests
    params = first.params
    assert (params.model, params.temperature, params.max_tokens, params.reasoning) == (
        "canned/model",
        0.7,
        90,
        "low",
    )
    assert first.tools[0] == {
        "name": "combine",
        "description": TOOLS[0].description,
        "parameters": TOOLS[0].schema,
    }
    assert [tool["name"] for tool in first.tools] == ["combine", "undo", "stop"]
    assert (first.role, first.seed, first.number, second.seed, second.number) == ("policy", 7, 0, 7, 1)


def test_a_model_at_temperature_0_repeats_itself() -> None:
    repeats = [ModelPolicy(PolicyConfig("m", temperature=value)).repeats for value in (0, 0.0, 0.4, None)]
    assert repeats == [True, True, False, False]
    assert not ModelPolicy(PolicyConfig("m")).repeats


def test_a_policy_that_was_never_attached_says_so() -> None:
    policy = ModelPolicy(PolicyConfig("m"))
    policy.start("Make 24.", TOOLS, 0)
    with pytest.raises(OrderError, match="attach it"):
        policy.act(START)


def test_the_calls_of_a_reply_are_done_one_by_one_and_each_result_answers_its_call() -> None:
    policy, model = started(calls(("undo", ""), ("stop", "{}"), text="Both."), says("end"))
    first = policy.act(START)
    second = policy.act(Observation("undone"))
    assert (first.actions, second.actions) == ((Action("undo"),), (Action("stop"),))
    assert (first.usage, second.usage) == (USED, {})
    assert first.text == (
        'Both.\n<tool_call>{"name": "undo", "arguments": {}}</tool_call>'
        '\n<tool_call>{"name": "stop", "arguments": {}}</tool_call>'
    )
    assert second.text == ""
    assert len(model.requests) == 1
    policy.act(Observation("stopped"))
    said, *results = model.requests[1].messages[2:]
    assert [(message.role, message.text, message.call_id) for message in results] == [
        ("tool", "undone", "c0"),
        ("tool", "stopped", "c1"),
    ]
    assert (said.text, [call.id for call in said.calls]) == ("Both.", ["c0", "c1"])


def test_several_actions_in_text_are_done_one_by_one_and_their_results_are_told_together() -> None:
    policy, model = started(
        says("<action>undo()</action><action>stop()</action>"), says("end"), format="think_action"
    )
    assert policy.act(START).actions == (Action("undo"),)
    assert policy.act(Observation("undone")).actions == (Action("stop"),)
    policy.act(Observation("stopped"))
    assert [message.text for message in model.requests[1].messages[2:]] == [
        "<action>undo()</action><action>stop()</action>",
        "Result 1, of undo:\nundone\n\nResult 2, of stop:\nstopped",
    ]


def test_a_second_episode_starts_afresh() -> None:
    policy, model = started(calls(("undo", ""), ("undo", "")))
    policy.act(START)
    policy.start("Make 25.", TOOLS, 8)
    policy.act(Observation("another"))
    request = model.requests[1]
    assert (request.seed, request.number, len(request.messages)) == (8, 0, 2)
    assert request.messages[1].text == "Task: Make 25.\n\nanother"


def test_reasoning_that_a_service_reports_apart_is_kept_but_not_said_again() -> None:
    policy, model = started(Answer("", calls(("undo", "")).calls, reasoning="Hm, undo."))
    assert policy.act(START).text.startswith("<think>\nHm, undo.\n</think>")
    policy.act(START)
    assert "Hm" not in str(model.requests[1].messages)


def test_a_window_cuts_the_history() -> None:
    policy, model = started(calls(("undo", "")), window=1)
    for text in ("first", "second", "third"):
        policy.act(Observation(text))
    roles = [message.role for message in model.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert "first" in model.requests[-1].messages[1].text
    assert model.requests[-1].messages[-1].text == "third"


def test_an_unusable_reply_is_asked_again_within_the_step_and_forgotten_once_one_is_usable() -> None:
    policy, model = started(says("Hm."), says("", finish="length"), calls(("undo", "")), reask=2)
    reply = policy.act(START)
    assert reply.actions == (Action("undo"),)
    assert reply.usage == {
        "calls": 3,
        "input_tokens": 30,
        "output_tokens": 9,
        "cost_usd": 1.5,
        "truncated": 1,
    }
    assert reply.text.startswith("Hm.\n\n")
    assert [request.number for request in model.requests] == [0, 1, 2]
    retried = model.requests[2].messages[2:]
    assert [message.role for message in retried] == ["assistant", "user", "assistant", "user"]
    assert "calls no tool" in retried[1].text
    assert "token limit" in retried[3].text
    policy.act(Observation("undone"))
    assert [message.role for message in model.requests[3].messages] == ["system", "user", "assistant", "tool"]


def test_asking_again_has_a_bound_and_malformed_arguments_are_asked_again_too() -> None:
    policy, model = started(calls(("undo", "null"), ("stop", "[")), reask=1)
    reply = policy.act(START)
    assert len(model.requests) == 2
    assert reply.actions[0].name == "undo"
    assert [message.role for message in model.requests[1].messages[2:]] == ["assistant", "tool", "tool"]
    assert "not null" in model.requests[1].messages[3].text


def test_a_usable_reply_is_not_asked_again() -> None:
    policy, model = started(calls(("undo", "null"), ("stop", "")), reask=3)
    policy.act(START)
    assert len(model.requests) == 1


def test_functions_that_a_model_calls_though_none_were_offered_are_read_as_text() -> None:
    policy, model = started(calls(("undo", ""), text="So."), format="text")
    assert policy.act(START).actions == (Action("undo"),)
    policy.act(Observation("undone"))
    said, result = model.requests[1].messages[2:]
    assert (said.calls, result.role) == ((), "user")
    assert said.text == 'So.\n<tool_call>{"name": "undo", "arguments": {}}</tool_call>'


def test_what_a_service_raises_is_not_caught() -> None:
    for fails, error in (("context", ContextError), ("provider", ProviderError)):
        policy = ModelPolicy(PolicyConfig("m"), CannedModel((), fails))
        policy.start("Make 24.", TOOLS, 0)
        with pytest.raises(error):
            policy.act(START)


ANSWERS = st.builds(
    Answer,
    st.sampled_from(
        ["", "Hm.", "<think>stop()", "<action>undo</action><action>fly</action>", "undo()", "\ud83d"]
    ),
    st.lists(
        st.builds(
            ToolCall,
            st.sampled_from(["", "c1"]),
            st.sampled_from(["undo", "combine", "fly away", "\ud83d"]),
            st.sampled_from(["", "{}", "null", "[]", "{", '{"i": 0}', '{"a": NaN}', '{"a": "\ud83d"}']),
        ),
        max_size=3,
    ).map(tuple),
    finish=st.sampled_from(["stop", "tool_calls", "length", "filtered", "other"]),
    usage=st.just(USED),
)


@given(
    st.lists(ANSWERS, min_size=1, max_size=6),
    st.sampled_from(FORMATS),
    st.none() | st.integers(1, 3),
    st.integers(0, 2),
)
def test_whatever_a_model_answers_it_is_asked_with_a_valid_chat(
    answers: list[Answer], way: Format, window: int | None, reask: int
) -> None:
    policy, model = started(*answers, format=way, window=window, reask=reask)
    acted = 0
    while len(model.requests) < 8 and acted < 40:
        reply = policy.act(Observation(f"seen {acted}"))
        assert len(reply.actions) == 1 or reply.problem
        acted += 1
    for request in model.requests:
        require_answered(request.messages)
        last = request.messages[-1].text
        assert "seen" in last or "Malformed call" in last


def require_answered(messages: tuple[Message, ...]) -> None:
    """Fail where a call has no result or more than one, or somebody speaks twice in a row."""
    waiting: list[str] = []
    roles = [message.role for message in messages if message.role != "tool"]
    assert roles[:2] == ["system", "user"]
    for message in messages:
        if message.role == "tool":
            assert waiting.pop(0) == message.call_id
        else:
            assert not waiting
            waiting = [call.id for call in message.calls]
    assert not waiting
    for one, two in pairwise(messages):
        assert two.role == "tool" or one.role != two.role


def test_a_model_is_told_what_the_world_made_of_its_malformed_call_and_why() -> None:
    policy, model = started(calls(("combine", '{"i": 0, "i": 1}')))
    policy.act(START)
    policy.act(Observation("Malformed call: ..."))
    said, result = model.requests[1].messages[2:]
    assert result.text == (
        "combine: its arguments can't be read as JSON (the key 'i' is there twice): "
        '{"i": 0, "i": 1}\nMalformed call: ...'
    )
    assert said.calls[0].arguments == "{}"
