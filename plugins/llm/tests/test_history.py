"""Histories: always a valid chat, cut by whole exchanges."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_llm.history import Exchange, History
from envharness_llm.messages import Message, ToolCall
from envharness_llm.parsing import read_json

TEXTS = st.text(max_size=20) | st.sampled_from(["", " ", "\ud83d", "long " * 50])
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["", "c1", "c2", "call00000", "call00001", "\ud83d"]) | st.text(max_size=3),
    st.sampled_from(["combine", "", "fly away", "\ud83d", "x" * 100]),
    st.sampled_from(
        ["{}", "", "null", "[]", '{"a": 1}', '{"a": 1', '{"a": "\ud83d"}', '{"a": 1, "a": 2}', "{'a'}"]
    ),
)
REPLIES = st.lists(
    st.tuples(TEXTS, st.lists(CALLS, max_size=3), st.lists(TEXTS, min_size=3, max_size=3)), max_size=8
)
WINDOWS = st.none() | st.integers(1, 4)
TOKENS = st.none() | st.integers(1, 400)

Reply = tuple[str, list[ToolCall], list[str]]


def history_of(replies: list[Reply], window: int | None = None, tokens: int | None = None) -> History:
    history = History("system", "task", window, tokens)
    for text, calls, results in replies:
        message = history.said(text, calls)
        history.add(Exchange(message, tuple(results[: len(calls)] if calls else results)))
    return history


def require_valid_chat(messages: tuple[Message, ...]) -> None:
    """Fail where a service would refuse the conversation."""
    assert [message.role for message in messages[:2]] == ["system", "user"]
    seen: set[str] = set()
    open_calls: list[str] = []
    speaker = "user"
    for message in messages[2:]:
        (message.text + "".join(call.arguments for call in message.calls)).encode()
        assert message.text.strip() or message.calls
        if message.role == "tool":
            assert message.call_id == open_calls.pop(0)
            continue
        assert not open_calls
        assert message.role != speaker
        speaker = message.role
        for call in message.calls:
            assert call.id not in seen
            assert call.id
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call.name)
            assert isinstance(read_json(call.arguments), dict)
            seen.add(call.id)
            open_calls.append(call.id)
        if message.calls:
            speaker = "user"  # the results speak for the world
    assert not open_calls


@given(REPLIES, WINDOWS, TOKENS)
def test_what_is_shown_is_a_valid_chat_whatever_was_said(
    replies: list[Reply], window: int | None, tokens: int | None
) -> None:
    messages = history_of(replies, window, tokens).messages()
    require_valid_chat(messages)
    assert messages[1].text.startswith("task")


@given(REPLIES, WINDOWS, TOKENS)
def test_the_last_exchanges_are_shown_whole(
    replies: list[Reply], window: int | None, tokens: int | None
) -> None:
    everything = history_of(replies).messages()[2:]
    shown = history_of(replies, window, tokens).messages()[2:]
    assert everything[len(everything) - len(shown) :] == shown
    exchanges = [message for message in shown if message.role == "assistant"]
    assert len(exchanges) <= (window or len(replies))
    assert not replies or exchanges
    if tokens is None:
        assert len(exchanges) == min(len(replies), window or len(replies))


def test_a_window_of_one_keeps_the_last_call_with_its_result() -> None:
    calls = [ToolCall("c1", "look", "{}"), ToolCall("c2", "take", "{}")]
    replies: list[Reply] = [("a", [], ["A"]), ("b", [], ["B"]), ("c", calls, ["C", "D"])]
    system, task, said, *results = history_of(replies, window=1).messages()
    assert (system.text, said.text, [result.text for result in results]) == ("system", "c", ["C", "D"])
    assert task.text == "task\n\n[Earlier replies and results left out here: 2]"
    assert [result.call_id for result in results] == ["c1", "c2"]


def test_nothing_is_said_of_what_is_left_out_where_nothing_is() -> None:
    replies: list[Reply] = [("a", [], ["A"]), ("b", [], ["B"])]
    assert [message.text for message in history_of(replies, window=2).messages()] == [
        "system",
        "task",
        "a",
        "A",
        "b",
        "B",
    ]


def test_the_oldest_exchanges_go_where_the_tokens_do_not_reach() -> None:
    replies: list[Reply] = [(letter, [], [letter * 300]) for letter in "abcde"]  # about 116 tokens each
    shown = history_of(replies, tokens=270).messages()
    assert [message.text for message in shown if message.role == "assistant"] == ["d", "e"]
    history = History("system" * 100, "task", tokens=470)  # the prompts count: they take 218
    for letter in "abcde":
        history.add(Exchange(history.said(letter), (letter * 300,)))
    assert [message.text for message in history.messages() if message.role == "assistant"] == ["d", "e"]
    last = history_of(replies, tokens=1).messages()
    assert [message.text for message in last if message.role == "assistant"] == ["e"]


def test_the_ids_of_a_service_are_kept_where_they_are_new() -> None:
    history = History("system", "task")
    first = history.said("", [ToolCall("abc", "look", "{}"), ToolCall("abc", "look", "{}")])
    second = history.said("", [ToolCall("abc", "look", "{}"), ToolCall("", "look", "{}")])
    ids = [call.id for message in (first, second) for call in message.calls]
    assert ids[0] == "abc"
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[a-z0-9]{9}", own) for own in ids[1:])


def test_an_id_of_our_own_is_never_one_that_a_service_gave() -> None:
    history = History("system", "task")
    given = history.said("", [ToolCall("call00001", "look", "{}")])
    own = history.said("", [ToolCall("", "look", "{}")])
    assert given.calls[0].id != own.calls[0].id


def test_arguments_stay_as_they_were_written_where_they_are_an_object() -> None:
    message = History("s", "t").said(
        "", [ToolCall("", "look", '{ "at":"key" }'), ToolCall("", "look", '{"at":')]
    )
    assert [call.arguments for call in message.calls] == ['{ "at":"key" }', "{}"]


@pytest.mark.parametrize("results", [(), ("a", "b", "c")])
def test_a_call_without_its_result_is_no_exchange(results: tuple[str, ...]) -> None:
    message = History("s", "t").said("", [ToolCall("", "look", "{}")])
    with pytest.raises(ValueError, match="results for 1 calls"):
        Exchange(message, results)
