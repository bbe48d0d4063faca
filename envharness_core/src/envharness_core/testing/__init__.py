"""The testing kit: conformance suites, strategies and doubles for authors of plugins.

    from envharness_core.testing import layer_suite
    TestFlakyTools = layer_suite("flaky_tools/flaky_tools", rate=0.5)

Suites and strategies need ``pip install 'envharness-core[testing]'``; the doubles need nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envharness_core.testing.doubles import Counter, Dice, Drawing, Failing, PassThrough, Watch
    from envharness_core.testing.model_faults import Fault, Limit
    from envharness_core.testing.model_said import Brain, Said, echo, script
    from envharness_core.testing.model_server import Asked, ModelServer
    from envharness_core.testing.strategies import (
        actions,
        layer_specs,
        malformed_actions,
        setups,
        stacks,
        worlds,
    )
    from envharness_core.testing.suites import bridge_suite, layer_suite
    from envharness_core.testing.text_world import TextWorld

_HOMES = {
    "Asked": "model_server",
    "Brain": "model_said",
    "Counter": "doubles",
    "Dice": "doubles",
    "Drawing": "doubles",
    "Failing": "doubles",
    "Fault": "model_faults",
    "Limit": "model_faults",
    "ModelServer": "model_server",
    "PassThrough": "doubles",
    "Said": "model_said",
    "TextWorld": "text_world",
    "Watch": "doubles",
    "actions": "strategies",
    "bridge_suite": "suites",
    "echo": "model_said",
    "layer_specs": "strategies",
    "layer_suite": "suites",
    "malformed_actions": "strategies",
    "script": "model_said",
    "setups": "strategies",
    "stacks": "strategies",
    "worlds": "strategies",
}

__all__ = [
    "Asked",
    "Brain",
    "Counter",
    "Dice",
    "Drawing",
    "Failing",
    "Fault",
    "Limit",
    "ModelServer",
    "PassThrough",
    "Said",
    "TextWorld",
    "Watch",
    "actions",
    "bridge_suite",
    "echo",
    "layer_specs",
    "layer_suite",
    "malformed_actions",
    "script",
    "setups",
    "stacks",
    "worlds",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{home}")
    except ModuleNotFoundError as error:
        if error.name not in ("hypothesis", "pytest"):
            raise
        raise ImportError(
            f"{__name__}.{name} needs {error.name}: pip install 'envharness-core[testing]'"
        ) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
