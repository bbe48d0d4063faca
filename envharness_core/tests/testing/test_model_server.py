"""The scripted model server, as clients meet it on a socket."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import pytest
from model_lines import CHAT, HELLO, Line, line  # type: ignore[import-not-found]

from envharness_core.errors import OrderError
from envharness_core.jsondata import JsonObject
from envharness_core.testing import Fault, Limit, ModelServer, Said, script

EMBEDDINGS = "/embeddings"
STREAM: JsonObject = HELLO | {"stream": True}
LOOK: JsonObject = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
LONG = Said("one two three four five six seven eight nine ten")


@contextmanager
def served(*faults: Fault, said: Said = LONG, **kept: Any) -> Iterator[tuple[ModelServer, Line]]:
    with ModelServer(lambda _: said, faults, **kept) as server, line(server) as client:
        yield server, client


def test_a_plain_answer_has_the_shape_that_clients_read() -> None:
    with ModelServer() as server, line(server) as client:
        got = client.chat()
    assert got.status == 200
    assert got.headers["Content-Type"] == "application/json"
    assert got.body["object"] == "chat.completion"
    assert got.body["model"] == "scripted"
    (choice,) = got.body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "hello there"}
    assert choice["finish_reason"] == "stop"
    usage = got.body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (2, 2, 4)


def test_urllib_is_a_client_too() -> None:
    with ModelServer() as server:
        request = urllib.request.Request(server.base_url + CHAT, json.dumps(HELLO).encode())
        with urllib.request.urlopen(request, timeout=10) as response:
            assert json.load(response)["choices"][0]["message"]["content"] == "hello there"


def test_calls_are_sent_as_they_were_written_and_their_ids_never_repeat_in_a_conversation() -> None:
    malformed = Said(calls=[("look", '{"at": '), ("look", "")])
    with served(said=malformed) as (_, client):
        first = client.chat(HELLO | {"tools": [LOOK]}).body["choices"][0]
        message = first["message"]
        results = [{"role": "tool", "content": "no", "tool_call_id": c["id"]} for c in message["tool_calls"]]
        longer = [*HELLO["messages"], message, *results]
        second = client.chat({**HELLO, "tools": [LOOK], "messages": longer}).body["choices"][0]["message"]
    assert first["finish_reason"] == "tool_calls"
    assert message["content"] is None
    assert [call["function"]["arguments"] for call in message["tool_calls"]] == ['{"at": ', ""]
    ids = [call["id"] for call in message["tool_calls"] + second["tool_calls"]]
    assert len(set(ids)) == 4


def test_a_stream_comes_in_pieces_and_ends_as_openais_do() -> None:
    said = Said("some words to tear", [("look", '{"at": "the old map"}')], reasoning="because I can")
    with served(said=said) as (_, client):
        got = client.chat(STREAM | {"stream_options": {"include_usage": True}})
        plain = client.chat(STREAM)
    *chunks, final, usage, done = got.events
    assert got.headers["Content-Type"].startswith("text/event-stream")
    assert done == "data: [DONE]"
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 12)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert final["choices"][0]["finish_reason"] == "tool_calls"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert sum("content" in delta for delta in deltas) > 2
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["function"] == {"name": "look", "arguments": ""}
    assert len(calls) > 2
    assert all("id" not in call for call in calls[1:])
    assert "usage" not in plain.events[-2]


def test_models_are_listed_and_others_do_not_exist() -> None:
    with served(models=("small", "large")) as (_, client):
        assert [model["id"] for model in client.send("GET", "/models").body["data"]] == ["small", "large"]
        assert client.send("GET", "/models/large").body["id"] == "large"
        assert client.chat(HELLO | {"model": "large"}).status == 200
        other: JsonObject = {"model": "x", "input": "a"}
        for path, body in ((CHAT, HELLO), (EMBEDDINGS, other)):
            refused = client.post(path, body)
            assert (refused.status, refused.body["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/files"), ("POST", "/chat"), ("GET", CHAT), ("DELETE", "/models")]
)
def test_what_is_not_there_is_a_404_and_the_connection_lives(method: str, path: str) -> None:
    with served() as (server, client):
        got = client.send(method, path, b"{}" if method == "POST" else None)
        assert (got.status, got.body["error"]["code"]) == (404, "unknown_url")
        assert got.body["error"].keys() == {"message", "type", "param", "code"}
        assert client.chat().status == 200
        assert [asked.status for asked in server.requests] == [404, 200]
        assert server.requests[0].path == f"/v1{path}"


@pytest.mark.parametrize(
    ("fault", "status", "code", "kind"),
    [
        (Fault.bad_key(), 401, "invalid_api_key", "invalid_request_error"),
        (Fault.context_overflow(), 400, "context_length_exceeded", "invalid_request_error"),
        (Fault.no_such_model(), 404, "model_not_found", "invalid_request_error"),
        (Fault.no_quota(), 429, "insufficient_quota", "insufficient_quota"),
        (Fault.rate_limited(), 429, "rate_limit_exceeded", "requests"),
        (Fault.bad_request("No."), 400, None, "invalid_request_error"),
        (Fault.broken(), 500, None, "server_error"),
        (Fault.overloaded(), 503, None, "server_error"),
        (Fault(529), 529, None, "server_error"),
        (Fault(422, message="No.", code="odd", type="mine"), 422, "odd", "mine"),
    ],
)
@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["plain", "stream"])
def test_an_error_on_demand_strikes_once_in_openais_shape(
    body: JsonObject, fault: Fault, status: int, code: str | None, kind: str
) -> None:
    with served(fault) as (server, client):
        got = client.chat(body)
        assert got.status == status
        assert (got.body["error"]["code"], got.body["error"]["type"]) == (code, kind)
        assert client.chat(body).status == 200
        assert server.requests[0].error == got.body["error"]["message"]
        assert server.requests[1].error is None


@pytest.mark.parametrize(("given", "sent"), [(3, "3"), (0.5, "0.5"), ("Fri, 01 Jan 2038 00:00:00 GMT",) * 2])
def test_retry_after_is_sent_as_it_was_given(given: float | str, sent: str) -> None:
    with served(Fault.rate_limited(retry_after=given)) as (_, client):
        assert client.chat().headers["Retry-After"] == sent


def test_a_fault_brings_its_own_body_and_headers() -> None:
    with served(Fault(502, body="<html>", headers={"X-Via": "proxy"})) as (_, client):
        got = client.chat()
    assert (got.status, got.raw, got.headers["X-Via"]) == (502, b"<html>", "proxy")


def test_faults_pick_their_requests_by_number_and_body() -> None:
    faults = [
        Fault(503, times=2, after=1, when=lambda body: "messages" in body),
        Fault(500, times=None, when=lambda body: body.get("input") == "bad"),
    ]
    with served(*faults) as (_, client):
        assert [client.chat().status for _ in range(5)] == [200, 503, 503, 200, 200]
        embeddings: list[JsonObject] = [{"model": "e", "input": text} for text in ("bad", "good", "bad")]
        assert [client.post(EMBEDDINGS, body).status for body in embeddings] == [500, 200, 500]


def test_a_cut_answer_ends_in_the_middle() -> None:
    with served(Fault(kind="cut", times=2)) as (server, client):
        for body in (HELLO, STREAM):
            with pytest.raises(http.client.IncompleteRead) as caught:
                client.chat(body)
            assert caught.value.partial
        assert client.chat().status == 200
        assert [(asked.status, asked.error) for asked in server.requests[:2]] == [(200, "cut")] * 2


def test_a_short_answer_ends_in_the_middle_and_looks_whole() -> None:
    with served(Fault(kind="short", times=2)) as (_, client):
        with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
            client.chat().body  # noqa: B018 - reading it is what fails
        events = client.chat(STREAM).events
    assert "data: [DONE]" not in events
    assert all(event["choices"][0]["finish_reason"] is None for event in events)


def test_an_error_midway_comes_with_a_200() -> None:
    with served(Fault.overloaded(), Fault(503, kind="midway", times=2)) as (_, client):
        client.chat()
        plain, stream = client.chat(), client.chat(STREAM)
    assert (plain.status, stream.status) == (200, 200)
    assert "error" in plain.body
    assert "overloaded" in stream.events[-1]["error"]["message"]
    assert "choices" in stream.events[0]


@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["plain", "stream"])
def test_garbage_is_a_200_that_is_not_json(body: JsonObject) -> None:
    with served(Fault(kind="garbage")) as (_, client):
        got = client.chat(body)
    assert got.status == 200
    with pytest.raises(ValueError, match="Expecting"):
        got.body  # noqa: B018 - reading it is what fails


def test_a_reset_closes_the_connection_without_an_answer() -> None:
    with served(Fault(kind="reset")) as (server, client):
        with pytest.raises(ConnectionResetError) as caught:
            client.chat()
        assert caught.type is ConnectionResetError  # not http.client's RemoteDisconnected, an orderly end
        assert client.chat().status == 200
        assert [asked.status for asked in server.requests] == [None, 200]


@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["plain", "stream"])
def test_a_stall_sends_nothing_for_a_while_then_the_rest(body: JsonObject) -> None:
    with served(Fault(kind="stall", delay=0.4)) as (server, client):
        began = time.monotonic()
        whole = client.chat(body).raw
        assert 0.4 <= time.monotonic() - began < 2
        assert whole[-40:] == client.chat(body).raw[-40:]
        assert [asked.error for asked in server.requests] == ["stall", None]


@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["plain", "stream"])
def test_a_client_that_waits_less_than_a_stall_times_out_and_asks_again(body: JsonObject) -> None:
    with ModelServer(faults=[Fault(kind="stall", delay=30)]) as server:
        with line(server, timeout=0.2) as hasty, pytest.raises(TimeoutError):
            hasty.chat(body)
        with line(server) as again:
            assert again.chat(body).status == 200
        began = time.monotonic()
    assert time.monotonic() - began < 1


def test_a_script_answers_in_order_and_then_says_that_it_has_ended() -> None:
    with ModelServer(script(Said("a"), Fault.overloaded(), Said("b"))) as server, line(server) as client:
        got = [client.chat() for _ in range(5)]
    assert [answer.status for answer in got] == [200, 503, 200, 400, 400]
    assert got[2].body["choices"][0]["message"]["content"] == "b"
    assert "3 answers" in got[3].body["error"]["message"]


def test_a_brain_may_return_a_fault_that_damages() -> None:
    with ModelServer(script(Fault(kind="cut"), Said("b"))) as server, line(server) as client:
        with pytest.raises(http.client.IncompleteRead):
            client.chat()
        assert client.chat().status == 200


def test_a_fault_that_replaces_the_answer_leaves_the_script_alone() -> None:
    faults = [Fault.overloaded(), Fault(kind="garbage"), Fault(kind="cut")]
    with ModelServer(script(Said("a"), Said("b")), faults) as server, line(server) as client:
        client.chat()
        client.chat()
        with pytest.raises(http.client.IncompleteRead):
            client.chat()
        assert client.chat().body["choices"][0]["message"]["content"] == "b"


def test_a_brain_that_raises_is_a_recorded_500() -> None:
    def brain(_: JsonObject) -> Said:
        raise LookupError("no such room")

    with ModelServer(brain) as server, line(server) as client:
        got = client.chat()
        assert got.status == 500
        assert "LookupError: no such room" in got.body["error"]["message"]
        assert "no such room" in str(server.requests[0].error)


def test_what_is_answered_is_recorded_before_the_client_has_it() -> None:
    with served(limit=Limit(300, 60)) as (server, client):
        for number in range(100):
            client.chat(STREAM if number % 2 else HELLO)
            asked = server.requests[number]
            assert asked.seconds is not None
            assert (asked.status, asked.path) == (200, "/v1/chat/completions")
        assert server.in_flight_peak == 1
        arrivals = [asked.arrived for asked in server.requests]
        assert arrivals == sorted(arrivals)
        assert server.requests[1].body == STREAM


def test_many_threads_get_one_answer_each_and_are_all_in_flight_at_once() -> None:
    everybody = Barrier(64)
    answers = script(*(Said(str(number)) for number in range(64)))

    def brain(body: JsonObject) -> Said | Fault:
        everybody.wait(10)
        return answers(body)

    def ask(number: int) -> str:
        with line(server, f"sk-{number % 2}") as client:
            return str(client.chat().body["choices"][0]["message"]["content"])

    with ModelServer(brain) as server, ThreadPoolExecutor(64) as pool:
        got = list(pool.map(ask, range(64)))
        assert sorted(map(int, got)) == list(range(64))
        assert server.in_flight_peak == 64
        assert server.key_counts == {"sk-0": 32, "sk-1": 32}


def test_other_keys_are_refused_and_none_is_shown() -> None:
    with ModelServer(keys=("sk-good", "sk-fine")) as server:
        for key, status in (("sk-good", 200), ("sk-fine", 200), ("sk-wrong", 401), (None, 401)):
            with line(server, key) as client:
                got = client.chat()
            assert got.status == status
            assert b"sk-" not in got.raw
        assert [asked.key for asked in server.requests] == ["sk-good", "sk-fine", "sk-wrong", ""]
        assert "sk-" not in repr(server.requests)


def test_a_limit_is_kept_by_key_and_says_when_to_come_back() -> None:
    server = ModelServer(limit=Limit(2, 0.6, precise=True))
    with server, line(server, "sk-a") as client, line(server, "sk-b") as other:
        got = [client.chat() for _ in range(3)]
        assert [answer.status for answer in got] == [200, 200, 429]
        assert other.chat().status == 200
        refused = got[2].headers
        assert refused["Retry-After"] == "1"
        assert 0 < int(refused["retry-after-ms"]) <= 600
        assert refused["x-ratelimit-reset-requests"] == f"{refused['retry-after-ms']}ms"
        left = [answer.headers["x-ratelimit-remaining-requests"] for answer in got]
        assert left == ["1", "0", "0"]
        assert {answer.headers["x-ratelimit-limit-requests"] for answer in got} == {"2"}
        time.sleep(int(refused["retry-after-ms"]) / 1000)
        assert client.chat().status == 200


def test_a_context_that_is_full_is_refused() -> None:
    with served(context=2) as (_, client):
        assert client.chat().status == 200
        refused = client.chat(HELLO | {"messages": [{"role": "user", "content": "three words now"}]})
    assert (refused.status, refused.body["error"]["code"]) == (400, "context_length_exceeded")


def test_a_body_without_a_length_is_refused() -> None:
    with served() as (_, client):
        client.http.putrequest("POST", "/v1" + CHAT)
        client.http.putheader("Transfer-Encoding", "chunked")
        client.http.endheaders()  # the answer comes before any of the body is sent
        response = client.http.getresponse()
        assert (response.status, json.load(response)["error"]["code"]) == (411, "length_required")


def test_the_end_waits_for_nobody_and_leaves_nobody() -> None:
    before = threading.active_count()
    with ModelServer() as server, line(server) as idle:
        idle.chat()
        began = time.monotonic()
        server.__exit__(None, None, None)
        assert time.monotonic() - began < 1
    with pytest.raises(ConnectionRefusedError), line(server) as late:
        late.chat()
    deadline = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_a_server_has_an_address_once_it_serves_and_serves_once() -> None:
    server = ModelServer()
    with pytest.raises(OrderError, match="with ModelServer"):
        server.base_url  # noqa: B018 - asking is what fails
    with server, pytest.raises(OrderError, match="make another"), server:
        pass
