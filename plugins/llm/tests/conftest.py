"""What the tests of models share: Hypothesis profiles, an environment without keys, and a place for gates."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from envharness_core.jsondata import Json, JsonObject
from envharness_core.session import Session
from envharness_core.testing import Asked as Arrived
from envharness_core.testing import ModelServer
from envharness_llm.backoff import Backoff
from envharness_llm.client import Client
from envharness_llm.messages import Message, Params, Request
from envharness_llm.settings import Settings

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))  # plugins are named by importable modules

_SLOW = [HealthCheck.too_slow]
settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

SECRET = "sk-test-0123456789abcdefghijklmnop"


@pytest.fixture(autouse=True)
def own_place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a test, and the processes that it starts, gates of their own, and one key under a name of its own."""
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEST_MODEL_KEY", SECRET)
    return place


@pytest.fixture
def quiet_again() -> Iterator[None]:
    """Unconfigure the logging that a test configures."""
    yield
    structlog.reset_defaults()


Maker = Callable[..., Client]
Asked = Callable[..., Request]


@pytest.fixture
def client() -> Iterator[Maker]:
    """Make clients of a server that wait for hundredths of a second where it names no time."""
    made: list[Client] = []

    def make(server: ModelServer, folder: Path | None = None, **changed: Json) -> Client:
        keys: list[Json] = ["TEST_MODEL_KEY"]
        set_up: JsonObject = {"api_base": server.base_url, "timeout": 10, "keys": keys}
        session = Session(folder, set_up | changed)
        made.append(Client(Settings.of(session), session, Backoff(first=0.01, most=0.05, least=0.001)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def request_of() -> Asked:
    """Make requests that differ where a test wants it."""

    def make(text: str = "hello there", model: str = "openai/m", **changed: Any) -> Request:
        fields: dict[str, Any] = {"role": "policy", "seed": 5}
        return Request(Params(model), (Message("user", text),), **(fields | changed))

    return make


def at_once(work: Callable[[int], object], count: int) -> list[Exception]:
    """Do something in many threads; return what they raised."""
    raised: list[Exception] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def refused_and_later(server: ModelServer) -> tuple[float, list[float]]:
    """Return when the first 429 was answered, and when others arrived after that."""
    first = next(asked for asked in server.requests if asked.status == 429)
    told = _answered(first)
    return told, [asked.arrived for asked in server.requests if asked.arrived > told]


def _answered(asked: Arrived) -> float:
    assert asked.seconds is not None
    return asked.arrived + asked.seconds
