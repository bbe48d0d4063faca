"""What all tests of the core share: Hypothesis profiles, the plugins, and a guard around layer classes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from envharness_core.env import Bridge, Env
from envharness_core.guard import Guard
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.testing import Counter

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))  # plugins are named by importable modules

_SLOW = [HealthCheck.too_slow]
settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # so a shell starts what runs in its background, and every process that a test starts would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

Guarded = Callable[..., tuple[Guard, Recorder]]


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    """The installed plugins, the doubles as ``testing``, and the known-bad components."""
    modules = {
        "testing": "envharness_core.testing.plugin",
        "bad_layers": "known_bad_layers",
        "bad_bridges": "known_bad_bridges",
        "shaping": "shaping_layers",
    }
    return Plugins(modules)


@pytest.fixture(scope="session")
def guarded() -> Guarded:
    """Put layer classes without a config on a bridge (the counter), innermost first, and a guard around them."""

    def build(*classes: Callable[[Env, Any], Env], bridge: Bridge | None = None) -> tuple[Guard, Recorder]:
        recorder = Recorder(bridge or Counter())
        env: Env = recorder
        for cls in classes:
            env = cls(env, None)
        return Guard(env, [recorder]), recorder

    return build
