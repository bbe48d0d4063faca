"""Where the games come from: generated ones always, ALFWorld's own where ``ALFWORLD_DATA`` names them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from envharness_bridge_alfworld.engines import shared

HERE = Path(__file__).parent

_SLOW = [HealthCheck.too_slow]
settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for compiled games that lasts for the session."""
    return str(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="session", autouse=True)
def _no_engine_is_left() -> Iterator[None]:
    yield
    shared().close()


@pytest.fixture(scope="session")
def real_games() -> str:
    """The folder of ALFWorld's own games."""
    folder = os.environ.get("ALFWORLD_DATA")
    if not folder:
        pytest.skip("ALFWORLD_DATA names no games of ALFWorld's")
    return folder


@pytest.fixture(scope="session")
def stock() -> Any:
    """Play jobs on stock ALFWorld, in a process of its own."""

    def played(jobs: list[dict[str, Any]]) -> list[list[list[Any]]]:
        done = subprocess.run(
            [sys.executable, str(HERE / "stock_player.py")],
            input=json.dumps(jobs),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        transcripts: list[list[list[Any]]] = json.loads(done.stdout)
        return transcripts

    return played
