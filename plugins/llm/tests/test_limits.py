"""Rate limits: nobody on a key goes before its time, nobody waits longer than he must, over all threads."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from envharness_core.clock import ticking
from envharness_core.errors import AccessError, ProviderError
from envharness_core.jsondata import JsonObject
from envharness_core.testing import Fault, Limit, ModelServer, Said

from .conftest import SECRET, Asked, Maker, at_once, refused_and_later


def slow(_: JsonObject) -> Said:
    time.sleep(0.05)
    return Said("done")


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import litellm before something is measured."""
    import litellm

    assert litellm


def test_nobody_on_the_key_goes_before_the_time_that_the_service_named(
    client: Maker, request_of: Asked
) -> None:
    with ModelServer(slow, [Fault.rate_limited(retry_after=0.6, after=3)]) as server:
        clients = [client(server, in_flight=1) for _ in range(8)]
        assert not at_once(lambda number: clients[number].ask(request_of(number=number)), 8)
    told, later = refused_and_later(server)
    assert len(later) == 5
    assert told + 0.6 <= min(later) < told + 1.1


def test_calls_that_were_on_their_way_are_the_only_ones_that_still_arrive(
    client: Maker, request_of: Asked
) -> None:
    with ModelServer(slow, [Fault.rate_limited(retry_after=0.7, after=10)]) as server:
        asking = client(server, in_flight=4)
        assert not at_once(lambda number: asking.ask(request_of(number=number)), 24)
    told, later = refused_and_later(server)
    assert not [arrived for arrived in later if told + 0.25 < arrived < told + 0.7]
    assert len([arrived for arrived in later if arrived <= told + 0.25]) <= 8


def test_64_workers_on_one_key_wait_as_short_as_the_service_allows(client: Maker, request_of: Asked) -> None:
    with ModelServer(limit=Limit(16, 1.0)) as server:
        asking = client(server)
        began = time.monotonic()
        assert not at_once(lambda number: asking.ask(request_of(number=number)), 64)
        took = time.monotonic() - began
    answered = [asked for asked in server.requests if asked.status == 200]
    assert len(answered) == 64
    assert took >= 3.0  # of four windows, three have to end
    arrived = sorted(asked.arrived for asked in server.requests)
    pauses = [later - earlier for earlier, later in pairwise(arrived) if later - earlier > 0.5]
    assert len(pauses) == 3
    assert max(pauses) < 1.7  # a second each; all else is two cores' work for these threads


def test_refusals_cost_no_repetition(client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[Fault.rate_limited(retry_after=0.02, times=8)]) as server:
        assert client(server, retries=0).ask(request_of()).text
    assert len(server.requests) == 9


def test_a_limit_without_a_time_is_waited_for_too(client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[Fault.rate_limited(times=4)]) as server:
        assert client(server, retries=0).ask(request_of()).text
    assert len(server.requests) == 5


@pytest.mark.parametrize("stream", [False, True])
def test_precise_headers_are_used(stream: bool, client: Maker, request_of: Asked) -> None:
    with ModelServer(limit=Limit(1, 0.4, precise=True)) as server:
        asking = client(server, stream=stream)
        began = time.monotonic()
        asking.ask(request_of())
        asking.ask(request_of(number=1))
        assert (
            0.35 < time.monotonic() - began < 0.95
        )  # Retry-After alone would have it wait for a whole second


def test_patience_ends_and_says_so(client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[Fault.rate_limited(retry_after=600)]) as server:
        asking = client(server, patience=5)
        began = time.monotonic()
        for number in range(2):
            with pytest.raises(ProviderError, match=r"openai/m.*patience") as caught:
                asking.ask(request_of(number=number))
            assert type(caught.value) is ProviderError
        assert time.monotonic() - began < 3
    assert len(server.requests) == 1  # the second knows already


def test_the_clock_of_the_episode_stands_still_while_the_service_makes_it_wait(
    client: Maker, request_of: Asked
) -> None:
    with ModelServer(
        faults=[Fault.rate_limited(retry_after=0.5), Fault(503, headers={"Retry-After": "0.5"})]
    ) as server:
        asking = client(server)
        with ticking() as clock:
            began = time.monotonic()
            asking.ask(request_of())
            assert time.monotonic() - began - clock.elapsed >= 1.0


def test_another_key_takes_over_while_one_has_to_wait(
    client: Maker, request_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_OTHER_KEY", "sk-other-0123456789abcdef")
    with ModelServer(limit=Limit(2, 60.0)) as server:
        asking = client(server, keys=["TEST_MODEL_KEY", "TEST_OTHER_KEY"], patience=1)
        began = time.monotonic()
        for number in range(4):
            asking.ask(request_of(number=number))
        assert time.monotonic() - began < 3
        with pytest.raises(ProviderError, match="patience"):
            asking.ask(request_of(number=4))
    answered = [asked.key for asked in server.requests if asked.status == 200]
    assert answered.count(SECRET) == 2


def test_the_least_busy_key_is_taken(
    client: Maker, request_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_OTHER_KEY", "sk-other-0123456789abcdef")
    meet = threading.Barrier(6, timeout=10)  # passes only if all are in flight at the same time

    def together(_: JsonObject) -> Said:
        meet.wait()
        return Said("met")

    with ModelServer(together) as server:
        asking = client(server, keys=["TEST_MODEL_KEY", "TEST_OTHER_KEY"], in_flight=3)
        assert not at_once(lambda number: asking.ask(request_of(number=number)), 6)
    assert set(server.key_counts.values()) == {3}


def test_a_refused_key_stops_the_run_and_is_named_by_its_variable(
    client: Maker, request_of: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_WRONG_KEY", "sk-wrong-0123456789abcdef")
    with ModelServer(keys=(SECRET,)) as server:
        asking = client(server, keys=["TEST_WRONG_KEY", "TEST_MODEL_KEY"])
        with pytest.raises(AccessError, match="TEST_WRONG_KEY"):
            asking.ask(request_of())
    assert len(server.requests) == 1


def test_providers_have_limits_of_their_own(client: Maker, request_of: Asked) -> None:
    with ModelServer(faults=[Fault.rate_limited(retry_after=30)]) as server:
        asking = client(server, patience=1)
        with pytest.raises(ProviderError):
            asking.ask(request_of(model="openai/m"))
        assert asking.ask(request_of(model="hosted_vllm/m")).text
