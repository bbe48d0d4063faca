"""The client against a server that fails in all the ways that services do: what is repeated, and what is said."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest
import structlog

from envharness_core.errors import AccessError, ContextError, EnvHarnessError, ProviderError, RefusedError
from envharness_core.jsondata import JsonObject
from envharness_core.session import Session
from envharness_core.testing import Fault, ModelServer, Said, script
from envharness_llm.cassette import FILE
from envharness_llm.client import Client
from envharness_llm.model import Model

from .conftest import SECRET, Asked, Maker, at_once

_LONG = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
_MANY = "max_tokens is too large: 99999. This model supports at most 16384 completion tokens."


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (Fault.bad_key(times=None), AccessError, "TEST_MODEL_KEY"),
        (Fault(402, None), AccessError, "no credit"),
        (Fault(403, None), AccessError, "TEST_MODEL_KEY"),
        (Fault.no_such_model(times=None), AccessError, "no such model"),
        (Fault.no_quota(times=None), AccessError, "no credit"),
        (Fault.context_overflow(times=None), ContextError, "doesn't fit"),
        (Fault(400, None, message=_LONG), ContextError, "4096"),
        (Fault(400, None, message=_MANY), ProviderError, "too large"),
        (Fault(400, None, message="Unknown parameter", code="unknown"), ProviderError, "refuses the call"),
        (Fault(422, None), ProviderError, "refuses the call"),
        (Fault(400, None, message="filtered", code="content_policy_violation"), RefusedError, "filtered"),
        (Fault(413, None), ProviderError, "refuses the call"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_asking_again_cannot_mend_is_not_asked_again(
    fault: Fault, error: type[EnvHarnessError], said: str, stream: bool, client: Maker, request_of: Asked
) -> None:
    with ModelServer(faults=[fault]) as server, pytest.raises(error) as caught:
        client(server, stream=stream).ask(request_of())
    assert type(caught.value) is error
    assert said in str(caught.value)
    assert "openai/m" in str(caught.value)
    assert len(server.requests) == 1


_PASSING = [
    *(Fault(status) for status in (500, 502, 503, 529, 408)),
    *(Fault(kind=kind) for kind in ("garbage", "reset", "cut", "short", "midway")),
]


def _lasting(fault: Fault) -> Fault:
    return Fault(fault.status, None, kind=fault.kind)


@pytest.mark.parametrize("fault", _PASSING, ids=lambda fault: f"{fault.kind}-{fault.status}")
@pytest.mark.parametrize("stream", [False, True])
def test_what_may_pass_is_asked_again_and_never_half_an_answer_taken(
    fault: Fault, stream: bool, client: Maker, request_of: Asked
) -> None:
    whole = Said("one two three four five six seven eight", calls=[("look", '{"at": "the whole map"}')])
    with ModelServer(lambda _: whole, [fault]) as server:
        answer = client(server, stream=stream).ask(request_of())
    assert answer.text == whole.text
    assert [(call.name, call.arguments) for call in answer.calls] == list(whole.calls)
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", _PASSING, ids=lambda fault: f"{fault.kind}-{fault.status}")
@pytest.mark.parametrize("stream", [False, True])
def test_it_is_asked_again_a_bounded_number_of_times(
    fault: Fault, stream: bool, client: Maker, request_of: Asked
) -> None:
    with ModelServer(faults=[_lasting(fault)]) as server, pytest.raises(ProviderError) as caught:
        client(server, stream=stream, retries=2).ask(request_of())
    assert type(caught.value) is ProviderError
    assert "failed 3 times" in str(caught.value)
    assert len(server.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_that_says_nothing_is_left_after_the_timeout(
    stream: bool, client: Maker, request_of: Asked
) -> None:
    with ModelServer(faults=[Fault(kind="stall", delay=20)]) as server:
        began = time.monotonic()
        assert client(server, stream=stream, timeout=0.4).ask(request_of()).text
        assert time.monotonic() - began < 5
    assert len(server.requests) == 2


def test_a_stream_that_drips_is_left_after_the_timeout(client: Maker, request_of: Asked) -> None:
    def slow(_: JsonObject) -> Said:
        time.sleep(0.3)
        return Said("word " * 50)

    drips = Fault(kind="stall", delay=0.3)  # each pause is shorter than the timeout
    with ModelServer(slow, [drips]) as server, pytest.raises(ProviderError, match=r"longer than 0\.4 s"):
        client(server, stream=True, timeout=0.4, retries=0).ask(request_of())


def test_an_outage_that_names_its_end_is_waited_for(client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[Fault(503, headers={"Retry-After": "0.4"})]) as server:
        client(server).ask(request_of())
    first, second = server.requests
    assert second.arrived - first.arrived >= 0.4


@pytest.mark.parametrize(
    "words",
    [f"Incorrect API key provided: {SECRET}.", f"key={SECRET[:12]}", f"Bearer {SECRET} is wrong"],
)
def test_a_key_that_a_service_repeats_is_in_no_error(words: str, client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[Fault(401, message=words)]) as server, pytest.raises(AccessError) as caught:
        client(server).ask(request_of())
    told = "".join(traceback.format_exception(caught.value))
    assert SECRET not in told
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "TEST_MODEL_KEY" in told


@pytest.mark.usefixtures("quiet_again")
def test_keys_are_in_no_file_and_no_log(
    client: Maker, request_of: Asked, tmp_path: Path, own_place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = [
        Fault(500, message=f"{SECRET} broke it"),
        Fault.rate_limited(retry_after=0.1),
        Fault(401, message=f"{SECRET} is wrong", after=1),
    ]
    with structlog.testing.capture_logs() as logs, ModelServer(faults=faults) as server:
        asking = client(server, tmp_path)
        asking.ask(request_of())
        with pytest.raises(AccessError):
            asking.ask(request_of(number=1))
    assert {entry["event"] for entry in logs} == {"model_called", "model_failed", "model_limited"}
    for text in (repr(logs), repr(vars(asking)), "".join(capfd.readouterr())):
        assert SECRET not in text
        assert "hello there" not in text
    written = [path for place in (tmp_path, own_place) for path in place.rglob("*")]
    assert tmp_path / FILE in written
    for path in written:
        assert SECRET not in str(path)
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


@pytest.mark.usefixtures("quiet_again")
def test_a_call_is_logged_with_what_it_took_and_not_with_what_was_said(
    client: Maker, request_of: Asked
) -> None:
    with structlog.testing.capture_logs() as logs, ModelServer(script(Said("the answer"))) as server:
        client(server).ask(request_of("the question"))
    (entry,) = logs
    assert entry["model"] == "openai/m"
    assert entry["role"] == "policy"
    assert entry["input_tokens"] == 2
    assert entry["log_level"] == "debug"
    assert "the answer" not in repr(logs)
    assert "the question" not in repr(logs)


def test_without_any_key_the_error_says_where_one_is_looked_for(request_of: Asked) -> None:
    with pytest.raises(AccessError, match="OPENAI_API_KEY"):
        Client.of(Session()).ask(request_of())
    with pytest.raises(AccessError, match="no such model"):
        Client.of(Session()).ask(request_of(model="nosuchprovider/m"))


def test_a_service_of_ones_own_needs_no_key(client: Maker, request_of: Asked) -> None:
    with ModelServer() as server:
        assert client(server, keys=[]).ask(request_of()).text


def test_a_usual_variable_is_used_where_none_is_named(
    client: Maker, request_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual-0123456789abcdef")
    with ModelServer() as server:
        client(server, keys=[]).ask(request_of())
    assert set(server.key_counts) == {"sk-usual-0123456789abcdef"}


def test_a_usual_variable_is_named_where_its_key_is_refused_and_not_repeated(
    client: Maker, request_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of no known look")
    fault = Fault(401, message="wrong: of no known look")
    with ModelServer(faults=[fault]) as server, pytest.raises(AccessError, match="OPENAI_API_KEY") as caught:
        client(server, keys=[]).ask(request_of())
    assert "no known look" not in str(caught.value)


def test_where_there_is_no_patience_the_failure_itself_is_told(client: Maker, request_of: Asked) -> None:
    fault = Fault(503, headers={"Retry-After": "900"})
    with (
        ModelServer(faults=[fault]) as server,
        pytest.raises(ProviderError, match=r"failed once.*overloaded"),
    ):
        client(server, patience=10).ask(request_of())


def test_a_client_is_a_model(client: Maker, request_of: Asked) -> None:
    with ModelServer(script(Said("hi"))) as server:
        model: Model = client(server)
        assert model.ask(request_of()).text == "hi"


def test_what_is_on_the_cassette_costs_no_call(client: Maker, request_of: Asked, tmp_path: Path) -> None:
    said = Said("hi", calls=[("look", "{}")], reasoning="hm", cached_tokens=1)
    with ModelServer(lambda _: said) as server:
        first = client(server, tmp_path).ask(request_of())
        assert client(server, tmp_path).ask(request_of()) == first
        assert len(server.requests) == 1
        for number, other in enumerate(
            (request_of(seed=6), request_of(number=1), request_of(role="designer"))
        ):
            client(server, tmp_path).ask(other)
            assert len(server.requests) == number + 2
    replay = client(server, tmp_path, cassette={"mode": "replay"}, keys=["NOT_SET_AT_ALL"])
    assert replay.ask(request_of()) == first
    with pytest.raises(AccessError, match="call 9"):
        replay.ask(request_of(number=9))
    assert len(server.requests) == 4


def test_a_cassette_that_is_off_records_nothing(client: Maker, request_of: Asked, tmp_path: Path) -> None:
    with ModelServer() as server:
        for _ in range(2):
            client(server, tmp_path, cassette={"mode": "off"}).ask(request_of())
    assert len(server.requests) == 2
    assert not list(tmp_path.iterdir())


def test_a_conversation_that_did_not_fit_is_not_sent_again(
    client: Maker, request_of: Asked, tmp_path: Path
) -> None:
    with ModelServer(faults=[Fault.context_overflow()]) as server:
        for _ in range(2):
            with pytest.raises(ContextError):
                client(server, tmp_path).ask(request_of())
    assert len(server.requests) == 1


def test_texts_are_embedded_in_order_and_in_batches(client: Maker, tmp_path: Path) -> None:
    texts = [f"text number {number}" for number in range(200)]
    with ModelServer() as server:
        asking = client(server, tmp_path, prices={"openai/e": {"input": 2}})
        vectors, usage = asking.embed("openai/e", texts)
        assert len(server.requests) == 3
        assert asking.embed("openai/e", texts) == (vectors, usage)
        assert asking.embed("openai/e", []) == ([], {})
        assert len(server.requests) == 3
        alone, _ = asking.embed("openai/e", texts[150:151], role="extractor")
        asking.embed("openai/e", [""])
    assert alone[0] == vectors[150]
    assert len(vectors) == 200
    assert usage["calls"] == 3
    assert usage["input_tokens"] == 600
    assert usage["cost_usd"] == pytest.approx(0.0012)


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.bad_key(), AccessError), (Fault(400), ProviderError), (Fault.context_overflow(), ContextError)],
)
def test_embedding_fails_as_asking_does(fault: Fault, error: type[Exception], client: Maker) -> None:
    with ModelServer(faults=[fault]) as server, pytest.raises(error):
        client(server).embed("openai/e", ["a text"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "fault", [Fault.broken(), Fault.rate_limited(retry_after=0.05), Fault(kind="garbage")]
)
def test_embedding_is_repeated_as_asking_is(fault: Fault, client: Maker) -> None:
    with ModelServer(faults=[fault]) as server:
        assert client(server).embed("openai/e", ["a text"])[0]
    assert len(server.requests) == 2


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_litellm_is_not_imported_before_the_first_call(
    client: Maker, request_of: Asked, tmp_path: Path
) -> None:
    with ModelServer() as server:
        client(server, tmp_path).ask(request_of())
    code = """
import sys
from pathlib import Path
from envharness_core.session import Session
from envharness_llm.client import Client
from envharness_llm.model import Model
from envharness_llm.messages import Message, Params, Request
client = Client.of(Session(Path(sys.argv[1]), {"keys": ["TEST_MODEL_KEY"]}))
client.ask(Request(Params("openai/m"), (Message("user", "hello there"),), "policy", 5))
client.close()
assert "litellm" not in sys.modules and "openai" not in sys.modules
"""
    run(code, str(tmp_path))


def test_only_one_module_imports_litellm() -> None:
    sources = (Path(__file__).parent.parent / "src").rglob("*.py")
    assert [path.name for path in sources if "import litellm" in path.read_text()] == ["provider.py"]


def test_threads_share_a_client(client: Maker, request_of: Asked, tmp_path: Path) -> None:
    def brain(body: JsonObject) -> Said:
        messages = body["messages"]
        assert isinstance(messages, list)
        return Said(f"to {messages[0]}")

    with ModelServer(brain) as server:
        asking = client(server, tmp_path)
        texts: dict[int, str] = {}

        def ask(number: int) -> None:
            texts[number] = asking.ask(request_of(f"thread {number}")).text

        assert not at_once(ask, 12)
    assert len(texts) == 12
    assert all(f"thread {number}'" in text for number, text in texts.items())
