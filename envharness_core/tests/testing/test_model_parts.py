"""The parts of the scripted model server, without sockets: the wire format, requests, faults and limits."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.jsondata import JsonObject
from envharness_core.testing import Fault, Limit, Said, echo
from envharness_core.testing.model_bodies import check_chat, embed, parse, vector
from envharness_core.testing.model_faults import Refused, Strikes, Turns, duration
from envharness_core.testing.model_said import completion, events, request_words

BODY: JsonObject = {"model": "scripted", "messages": [{"role": "user", "content": "hello there"}]}
CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{"}}
CALLING: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "a map"}
USER: JsonObject = {"role": "user", "content": "go on"}
TOOL: JsonObject = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

texts = st.text(max_size=300)
said = st.builds(
    Said,
    st.none() | texts,
    calls=st.lists(st.tuples(st.sampled_from(["look", "go"]), texts), max_size=3),
    finish=st.sampled_from([None, "stop", "length", "content_filter"]),
    reasoning=st.none() | texts,
    input_tokens=st.none() | st.integers(0, 9),
    output_tokens=st.none() | st.integers(0, 9),
    cached_tokens=st.integers(0, 9),
)


def joined(raw: list[bytes]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Put a stream together as clients do: the message, the finish reason, the usage."""
    *chunks, final, usage = [json.loads(piece[6:]) for piece in raw[:-1]]
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        for name in ("content", "reasoning_content"):
            if delta.get(name) is not None:
                message[name] = (message.get(name) or "") + delta[name]
        for call in delta.get("tool_calls", ()):
            index, calls = call.pop("index"), message.setdefault("tool_calls", [])
            if index == len(calls):
                calls.append(call)
            else:
                calls[index]["function"]["arguments"] += call["function"]["arguments"]
    return message, final["choices"][0]["finish_reason"], usage["usage"]


@given(said)
def test_a_stream_put_together_is_the_plain_answer(answer: Said) -> None:
    body = BODY | {"stream_options": {"include_usage": True}}
    raw = events(body, answer)
    whole = json.loads(completion(body, answer))
    (choice,) = whole["choices"]
    message = choice["message"]
    if message.get("reasoning_content") == "":  # nothing of it is streamed
        del message["reasoning_content"]
    assert raw[-1] == b"data: [DONE]\n\n"
    assert joined(raw) == (message, choice["finish_reason"], whole["usage"])
    assert len(raw) <= 4 + 20 * 2 + 21 * len(answer.calls)


@given(said)
def test_equal_requests_and_answers_are_written_equally(answer: Said) -> None:
    first, second = json.loads(completion(BODY, answer)), json.loads(completion(dict(BODY), answer))
    assert first | {"created": 0} == second | {"created": 0}


@given(said)
def test_tokens_are_words_where_nobody_says_otherwise(answer: Said) -> None:
    usage: Any = answer.usage(BODY)
    parts = [answer.text or "", answer.reasoning or "", *(part for call in answer.calls for part in call)]
    written = sum(len(part.split()) for part in parts)
    assert usage["prompt_tokens"] == (2 if answer.input_tokens is None else answer.input_tokens)
    assert usage["completion_tokens"] == (written if answer.output_tokens is None else answer.output_tokens)
    assert usage["completion_tokens_details"]["reasoning_tokens"] <= usage["completion_tokens"]


def test_a_request_is_counted_by_what_a_model_reads() -> None:
    tool: JsonObject = {"type": "function", "function": {"name": "look", "description": "Look at it."}}
    parts: JsonObject = {"role": "user", "content": [{"type": "text", "text": "two words"}]}
    body: JsonObject = {"model": "a b c", "messages": [USER, CALLING, RESULT, parts], "tools": [tool]}
    assert request_words(body) == 2 + 1 + 2 + 2 + 3


def test_echo_reads_parts_too() -> None:
    parts: JsonObject = {"role": "user", "content": [{"type": "text", "text": "two words"}]}
    assert echo({"messages": [USER, parts]}).text == "two words"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"nope", b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff", b"[" * 9999]
)
def test_a_body_that_is_no_strict_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse(raw)
    assert caught.value.fault.status == 400


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"messages": [USER, CALLING, RESULT, USER]},
        {"messages": [{"role": "system", "content": "x"}, USER, {"role": "assistant", "content": ""}]},
        {"tools": [TOOL], "tool_choice": "required"},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"tool_choice": "none"},
        {"temperature": 0, "top_p": 1.0, "max_tokens": 1, "seed": -3, "n": 1, "stream": False},
        {"temperature": None, "unknown": [1]},
    ],
)
def test_what_openai_accepts_is_accepted(changed: JsonObject) -> None:
    check_chat(BODY | changed)


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user"}]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "content": None}]}, "messages[0]"),
        ({"messages": [USER, {"role": "tool", "content": "x"}]}, "messages[1]"),
        ({"messages": [{**USER, "tool_calls": [CALL]}]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c1"}]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "a/b"}}]}]},
            "messages[0].tool_calls[0]",
        ),
        ({"messages": [USER, RESULT]}, "messages[1]"),
        ({"messages": [USER, CALLING]}, "messages[2]"),
        ({"messages": [USER, CALLING, USER]}, "messages[2]"),
        ({"messages": [USER, CALLING, RESULT, RESULT]}, "messages[3]"),
        ({"tools": []}, "tools"),
        ({"tools": [{"name": "look"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"name": "env/look"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "x", "parameters": {}}}]},
            "tools[0].function.parameters",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "look"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "go"}}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "sometimes"}, "tool_choice"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"seed": "1"}, "seed"),
        ({"n": 2}, "n"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_what_openai_refuses_is_refused_by_name(changed: JsonObject, param: str) -> None:
    with pytest.raises(Refused) as caught:
        check_chat(BODY | changed)
    assert caught.value.fault.status == 400
    assert caught.value.fault.param == param


def embedded(**body: Any) -> Any:
    return json.loads(embed({"model": "e"} | body))


@given(texts.filter(bool), st.integers(1, 64))
def test_an_embedding_is_of_length_1_and_the_same_in_both_formats(text: str, width: int) -> None:
    (plain,) = embedded(input=text, dimensions=width)["data"]
    (packed,) = embedded(input=[text], dimensions=width, encoding_format="base64")["data"]
    assert len(plain["embedding"]) == width
    assert math.isclose(math.hypot(*plain["embedding"]), 1, rel_tol=1e-5)
    unpacked = struct.unpack(f"<{width}f", base64.b64decode(packed["embedding"]))
    assert list(unpacked) == plain["embedding"]


def test_texts_with_common_words_are_near_and_word_order_does_not_matter() -> None:
    def near(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(vector(one, 256), vector(other, 256), strict=True))

    assert near("Check the sum before you submit", "check the sum, then submit") > 0.5
    assert abs(near("check the sum", "doors open northwards")) < 0.3
    assert vector("a b", 32) == vector("B, a!", 32)
    assert [round(each, 3) for each in vector("look", 4)] == [0.0, 0.0, 1.0, 0.0]  # in every process


def test_embeddings_keep_their_order_and_count_words() -> None:
    got = embedded(input=["one", "two words", "one"])
    assert [row["index"] for row in got["data"]] == [0, 1, 2]
    assert got["data"][0]["embedding"] == got["data"][2]["embedding"] != got["data"][1]["embedding"]
    assert got["usage"] == {"prompt_tokens": 4, "total_tokens": 4}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": [1, 2]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": 2.5}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "model": ""}, "model"),
    ],
)
def test_an_embeddings_request_is_refused_by_name(body: JsonObject, param: str) -> None:
    with pytest.raises(Refused) as caught:
        embedded(**body)
    assert (caught.value.fault.status, caught.value.fault.param) == (400, param)


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", 200), ("times", 0), ("after", -1), ("delay", -1.0), ("kind", "mangle")],
)
def test_a_fault_that_makes_no_sense_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        Fault(**{field: value})


@given(st.integers(0, 4), st.none() | st.integers(1, 4))
def test_a_fault_strikes_so_many_times_after_so_many(after: int, times: int | None) -> None:
    fault = Fault(after=after, times=times)
    strikes = Strikes([fault])
    struck = [strikes.strike({}) is fault for _ in range(12)]
    end = 12 if times is None else after + times
    assert struck == [after <= number < end for number in range(12)]


def test_a_request_meets_one_fault_and_counts_for_no_later_one() -> None:
    first, second = Fault(500), Fault(503, after=1)
    strikes = Strikes([first, second])
    assert [strikes.strike({}) for _ in range(4)] == [first, None, second, None]


@given(st.lists(st.floats(0, 3), max_size=40), st.integers(1, 4), st.sampled_from([0.5, 1.0, 2.5]))
def test_a_limit_answers_so_many_in_a_window_and_its_hint_is_enough(
    gaps: list[float], requests: int, seconds: float
) -> None:
    clock = [0.0]
    turns = Turns(Limit(requests, seconds, precise=True), lambda: clock[0])
    began, used = 0.0, 0
    for gap in gaps:
        clock[0] += gap
        if not used or clock[0] - began >= seconds:
            began, used = clock[0], 0
        allowed, headers = turns.take("k")
        assert allowed == (used < requests)
        used += allowed
        assert headers["x-ratelimit-remaining-requests"] == str(requests - used)
        assert ("Retry-After" in headers) == ("retry-after-ms" in headers) == (not allowed)
        if not allowed:
            rest = began + seconds - clock[0]
            assert rest <= int(headers["retry-after-ms"]) / 1000 <= rest + 0.0011
            assert rest <= int(headers["Retry-After"]) < rest + 1


@pytest.mark.parametrize(("retry_after", "precise"), [(True, False), (False, True), (False, False)])
def test_a_limit_says_only_what_it_was_told_to(retry_after: bool, precise: bool) -> None:
    turns = Turns(Limit(1, 10, retry_after=retry_after, precise=precise))
    turns.take("k")
    allowed, headers = turns.take("k")
    assert not allowed
    assert ("Retry-After" in headers) == retry_after
    assert ("retry-after-ms" in headers) == ("x-ratelimit-reset-requests" in headers) == precise


@given(st.floats(0, 5000))
def test_a_duration_reads_back_rounded_up(seconds: float) -> None:
    units = {"m": 60.0, "s": 1.0, "ms": 0.001}
    parts = re.findall(r"([\d.]+)(ms|m|s)", duration(seconds))
    assert "".join(number + unit for number, unit in parts) == duration(seconds)
    read = sum(float(number) * units[unit] for number, unit in parts)
    assert seconds - 1e-9 <= read <= seconds + 0.001 + 1e-9


def test_durations_look_like_openais() -> None:
    assert [duration(each) for each in (0.02, 1, 1.5, 360, 62)] == ["20ms", "1s", "1.5s", "6m0s", "1m2s"]
