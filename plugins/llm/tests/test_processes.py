"""Processes that use the same key share its limits, and the first call of each is quiet."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from envharness_core.errors import ProviderError
from envharness_core.jsondata import JsonObject
from envharness_core.testing import Fault, ModelServer, Said

from .conftest import Asked, Maker, at_once, refused_and_later

ASKER = Path(__file__).parent / "fixtures" / "asking_process.py"


def slow(_: JsonObject) -> Said:
    time.sleep(0.05)
    return Said("done")


class Asker:
    """Another process that asks the same service with the same key; warnings and strange connections kill it."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", str(ASKER)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def begin(self, server: ModelServer, place: Path, calls: int, threads: int, **settings: object) -> None:
        told: dict[str, object] = {
            "settings": {"api_base": server.base_url, "keys": ["TEST_MODEL_KEY"], **settings}
        }
        told |= {"place": str(place), "calls": calls, "threads": threads}
        written = cast("IO[str]", self._process.stdin)
        written.write(f"{json.dumps(told)}\n")
        written.flush()

    def end(self) -> list[str]:
        return cast("list[str]", json.loads(cast("IO[str]", self._process.stdout).readline()))

    def close(self) -> tuple[str, str]:
        return self._process.communicate(timeout=20)


@pytest.fixture
def asker(own_place: Path) -> Iterator[Asker]:
    """Return another process, which has imported litellm by then and goes quietly."""
    process = Asker()
    with ModelServer() as server:
        process.begin(server, own_place, 1, 1)
        process.end()
    yield process
    assert process.close() == ("", "")


def test_processes_share_a_keys_limits(
    asker: Asker, client: Maker, request_of: Asked, own_place: Path
) -> None:
    with ModelServer(slow, [Fault.rate_limited(retry_after=1, after=20)]) as server:
        asker.begin(server, own_place, 12, 6, in_flight=3)
        asking = client(server, in_flight=3)
        assert not at_once(lambda number: asking.ask(request_of(number=number)), 12)
        assert asker.end() == ["done"] * 12
    assert server.in_flight_peak == 3
    told, later = refused_and_later(server)
    assert not [arrived for arrived in later if told + 0.2 < arrived < told + 1.0]

    with ModelServer(slow, [Fault.rate_limited(retry_after=1)]) as server:
        with pytest.raises(ProviderError):
            client(server, patience=0).ask(request_of())
        asker.begin(server, own_place, 4, 4)  # what this process was told, that one obeys
        asker.end()
    told, later = refused_and_later(server)
    assert len(later) == 4
    assert min(later) >= told + 1.0
