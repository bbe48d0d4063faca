"""What is asked of a service and how its answers are read, through the real litellm."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from attrs import evolve

from envharness_core.errors import ProviderError
from envharness_core.jsondata import JsonObject
from envharness_core.testing import Fault, ModelServer, Said
from envharness_llm.messages import Message, Params, Request, ToolCall

from .conftest import Asked, Maker

TOOL: JsonObject = {
    "name": "look",
    "description": "Look around.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}


def body_of(server: ModelServer) -> dict[str, Any]:
    return cast("dict[str, Any]", server.requests[-1].body)


def test_a_conversation_is_sent_as_it_was(client: Maker) -> None:
    request = Request(
        Params("openai/m", 0.5, 77),
        (
            Message("system", "be brief"),
            Message("user", "hello"),
            Message("assistant", "", (ToolCall("a", "look", '{"at": "map"}'), ToolCall("b", "look", ""))),
            Message("tool", "a map", call_id="a"),
            Message("tool", "nothing", call_id="b"),
            Message("assistant", "I see."),
        ),
        "policy",
        seed=2**40 + 3,
        tools=(TOOL,),
        must_call=True,
    )
    with ModelServer() as server:
        client(server).ask(request)
    body = body_of(server)
    assert body["model"] == "m"
    assert (body["temperature"], body["max_tokens"], body["tool_choice"]) == (0.5, 77, "required")
    assert 0 <= body["seed"] < 2**31
    assert body["tools"] == [{"type": "function", "function": TOOL}]
    assert [message["role"] for message in body["messages"]] == [message.role for message in request.messages]
    assert body["messages"][2]["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": "map"}'}},
        {"id": "b", "type": "function", "function": {"name": "look", "arguments": ""}},
    ]
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "a", "content": "a map"}
    assert body["messages"][5]["content"] == "I see."


def test_what_is_left_to_the_model_is_not_sent(client: Maker, request_of: Asked) -> None:
    with ModelServer() as server:
        client(server).ask(request_of())
    assert set(body_of(server)) == {"model", "messages", "seed"}


def test_another_seed_or_number_is_sent_as_another_seed(client: Maker, request_of: Asked) -> None:
    seeds = []
    with ModelServer() as server:
        for seed in (0, 1, 2**31, 2**63 + 5, 2**64 - 1, -1, 2**200):
            for number in (0, 1):
                client(server).ask(request_of(seed=seed, number=number))
                seeds.append(body_of(server)["seed"])
    assert len(set(seeds)) == 14
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize(
    ("model", "reasoning", "sent"),
    [
        ("openai/unknown", "high", "high"),
        ("openai/unknown", "off", "none"),
        ("openai/unknown", None, None),
        ("openai/gpt-5", "low", "low"),
        ("openai/gpt-5.1", "off", "none"),
        ("openai/gpt-5", "off", None),  # it always reasons, and refuses to be told otherwise
        ("openai/o3", "off", None),
        ("openai/gpt-4o-mini", "high", None),  # it can't
        ("openai/gpt-4o-mini", "off", None),
        ("hosted_vllm/qwen3", "off", "none"),
    ],
)
def test_how_much_to_reason_is_said_where_it_is_understood(
    model: str, reasoning: Any, sent: str | None, client: Maker, request_of: Asked
) -> None:
    request = request_of(model=model)
    request = evolve(request, params=evolve(request.params, reasoning=reasoning))
    with ModelServer() as server:
        client(server).ask(request)
    assert body_of(server).get("reasoning_effort") == sent


SAID = [
    Said("plain text"),
    Said(""),
    Said(None),
    Said("é ü 漢字 🙂 and some more words to be torn apart"),
    Said("<think>what to do</think><action>go north</action>"),
    Said("<think>never closed <action>go</action>"),
    Said("<think>one</think>two<think>three</think> four"),
    Said("text", reasoning="first this, then that"),
    Said("<think>its own</think>text", reasoning="and apart"),
    Said("cut off in the mid", finish="length"),
    Said("", finish="content_filter"),
    Said("both", calls=[("look", '{"at": "map"}'), ("go", '{"to": 1}')]),
    Said("", calls=[("look", "")]),
    Said("", calls=[("look", "null"), ("look", "[]"), ("look", '{"at": "unclosed')]),
    Said("", calls=[("look", '{"at": "the very far end of a long corridor, seen twice"}')], finish="length"),
    Said("counted", input_tokens=1000, output_tokens=500, cached_tokens=300, reasoning="a b c"),
]


@pytest.mark.parametrize("said", SAID)
def test_a_stream_says_the_same_as_an_answer_in_one_piece(
    said: Said, client: Maker, request_of: Asked
) -> None:
    with ModelServer(lambda _: said) as server:
        whole, stream = (client(server, stream=stream).ask(request_of()) for stream in (False, True))
    for answer in (whole, stream):
        assert answer.text == (said.text or "")
        assert answer.reasoning == (said.reasoning or "")
        assert [(call.name, call.arguments) for call in answer.calls] == list(said.calls)
        assert len({call.id for call in answer.calls}) == len(said.calls)
    assert stream.finish == whole.finish
    assert stream.usage == whole.usage


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        (Said("x"), "stop"),
        (Said("", calls=[("look", "{}")]), "tool_calls"),
        (Said("", calls=[("look", "{}")], finish="stop"), "tool_calls"),
        (Said("", calls=[("look", "{}")], finish="length"), "length"),
        (Said("x", finish="length"), "length"),
        (Said("x", finish="content_filter"), "filtered"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_it_is_known_why_a_model_stopped(
    said: Said, finish: str, stream: bool, client: Maker, request_of: Asked
) -> None:
    with ModelServer(lambda _: said) as server:
        assert client(server, stream=stream).ask(request_of()).finish == finish


COUNTED = Said("x", input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)


def test_usage_counts_tokens_and_costs_what_litellm_knows(client: Maker, request_of: Asked) -> None:
    with ModelServer(lambda _: COUNTED) as server:
        usage = client(server).ask(request_of(model="openai/gpt-4o-mini")).usage
    cost = usage.pop("cost_usd")
    assert usage == {
        "calls": 1,
        "input_tokens": 1_000_000,
        "output_tokens": 100_000,
        "cached_tokens": 400_000,
    }
    assert cost == pytest.approx(0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.6)


def test_the_operators_own_price_goes_before_litellms(client: Maker, request_of: Asked) -> None:
    prices: JsonObject = {"openai/gpt-4o-mini": {"input": 10, "output": 20}, "openai/free": {"input": 0}}
    with ModelServer(lambda _: COUNTED) as server:
        asking = client(server, prices=prices)
        assert asking.ask(request_of(model="openai/gpt-4o-mini")).usage["cost_usd"] == pytest.approx(12.0)
        assert asking.ask(request_of(model="openai/free")).usage["cost_usd"] == 0.0


def test_a_price_that_nobody_knows_is_said_to_be_unknown(client: Maker, request_of: Asked) -> None:
    with ModelServer(lambda _: COUNTED) as server:
        usage = client(server).ask(request_of(model="openai/nobody-knows-it")).usage
    assert usage["unpriced_calls"] == 1
    assert "cost_usd" not in usage


def raw(**changed: object) -> Fault:
    """Answer with a body of one's own."""
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return Fault(kind="garbage", body=json.dumps(body | changed), times=None)


def message(**fields: object) -> list[object]:
    return [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None} | fields}]


def test_halves_of_characters_are_replaced(client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[raw(choices=message(content="a\ud83d b \ud83d\ude42"))]) as server:
        text = client(server).ask(request_of()).text
    assert text == "a\ufffd b 🙂"


def test_calls_whose_ids_are_missing_or_equal_are_told_apart(client: Maker, request_of: Asked) -> None:
    calls = [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for name in ("same", "same", "", "other")
    ]
    with ModelServer(faults=[raw(choices=message(tool_calls=calls))]) as server:
        heard = client(server).ask(request_of()).calls
    assert len({call.id for call in heard}) == 4
    assert all(call.id for call in heard)
    assert heard[0].id == "same"


def streamed(*deltas: object, finish: str = "stop", usage: object = None) -> Fault:
    """Answer with a stream of one's own."""
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    ends = [*([None] * len(deltas)), finish]
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in zip((*deltas, {}), ends, strict=True)
    ]
    if usage is not None:
        chunks.append({"choices": [], "usage": usage})
    pieces = [f"data: {json.dumps(head | chunk)}\n\n" for chunk in chunks]
    return Fault(kind="garbage", body="".join([*pieces, "data: [DONE]\n\n"]))


def test_calls_that_a_stream_numbers_alike_are_told_apart(client: Maker, request_of: Asked) -> None:
    deltas = [
        {"tool_calls": [{"index": 0, "id": name, "function": {"name": name, "arguments": text}}]}
        for name, text in (("look", '{"at": 1}'), ("go", "{"))
    ]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}]
    with ModelServer(faults=[streamed(*deltas, finish="tool_calls")]) as server:
        heard = client(server, stream=True, retries=0).ask(request_of()).calls
    assert [(call.name, call.arguments) for call in heard] == [("look", '{"at": 1}'), ("go", "{}")]


def test_what_a_stream_does_not_report_is_not_made_up(client: Maker, request_of: Asked) -> None:
    counted = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    fault = streamed({"reasoning_content": "hm, let me see"}, {"content": "yes"}, usage=counted)
    with ModelServer(faults=[fault]) as server:
        answer = client(server, stream=True, retries=0).ask(request_of())
    assert (answer.text, answer.reasoning) == ("yes", "hm, let me see")
    assert answer.usage == {"calls": 1, "input_tokens": 7, "output_tokens": 5, "unpriced_calls": 1}


@pytest.mark.parametrize(
    "fault",
    [raw(choices=[]), Fault(kind="garbage", body="{}", times=None), Fault(kind="garbage", times=None)],
)
def test_what_holds_no_message_is_no_answer(fault: Fault, client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[fault]) as server, pytest.raises(ProviderError, match="failed 2 times"):
        client(server, retries=1).ask(request_of())


@pytest.mark.parametrize(
    "data", [[], [{"index": 0, "embedding": [1.0]}], [{"index": 0, "embedding": []}] * 2]
)
def test_vectors_that_do_not_fit_the_texts_are_no_answer(data: list[object], client: Maker) -> None:
    body = {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    fault = Fault(kind="garbage", body=json.dumps(body), times=None)
    with ModelServer(faults=[fault]) as server, pytest.raises(ProviderError, match="failed 2 times"):
        client(server, retries=1).embed("openai/e", ["one", "two"])
