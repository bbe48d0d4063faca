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
    "Counter": "doubles",
    "Dice": "doubles",
    "Drawing": "doubles",
    "Failing": "doubles",
    "PassThrough": "doubles",
    "TextWorld": "text_world",
    "Watch": "doubles",
    "actions": "strategies",
    "bridge_suite": "suites",
    "layer_specs": "strategies",
    "layer_suite": "suites",
    "malformed_actions": "strategies",
    "setups": "strategies",
    "stacks": "strategies",
    "worlds": "strategies",
}

__all__ = [
    "Counter",
    "Dice",
    "Drawing",
    "Failing",
    "PassThrough",
    "TextWorld",
    "Watch",
    "actions",
    "bridge_suite",
    "layer_specs",
    "layer_suite",
    "malformed_actions",
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
