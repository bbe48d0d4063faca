"""ALFWorld's text games as a plugin of EnvHarness: the bridge, and an agent that needs no model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from envharness_core import Component, hookimpl

if TYPE_CHECKING:
    from envharness_core import Bridge, Policy

_PACKAGE = "envharness_bridge_alfworld"


@hookimpl
def envharness_bridges() -> Iterable[Component[Bridge]]:
    """Yield the bridge."""
    yield Component(
        name="alfworld",
        factory=f"{_PACKAGE}.bridge:ALFWorld",
        config=f"{_PACKAGE}.config:ALFWorldConfig",
        summary="households in text: ALFWorld's games, or generated ones",
        install="pip install envharness-bridge-alfworld",
    )


@hookimpl
def envharness_policies() -> Iterable[Component[Policy]]:
    """Yield the agent that plays without a model."""
    yield Component(
        name="handcoded",
        factory=f"{_PACKAGE}.handcoded:Handcoded",
        config=f"{_PACKAGE}.handcoded:HandcodedConfig",
        summary="plays ALFWorld as an imperfect person does",
    )
