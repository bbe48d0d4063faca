"""Sessions: what a component may know of where it works, beyond its config; nothing of it changes a result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import Factory, frozen

from envharness_core.jsondata import JsonObject

Charge = Callable[[str, JsonObject], None]
"""Adds a usage, such as ``{"input_tokens": 812}``, to the account of a role, such as ``designer``; from any thread."""


def _nobody(role: str, usage: JsonObject) -> None:
    """Add to nobody's account."""


@frozen
class Session:
    """Where a component works.

    Args:
        folder: the run folder, where a component may keep files of its own from its first use on; None outside of a
            run. Worker processes share it.
        settings: what the operator set for the component's plugin, as ``[settings.NAME]`` of a config; not checked
            yet, and part of no identity.
        charge: adds what was used to the run's account. A policy doesn't call it: its replies say what they used.
        replaying: whether stored decisions are made again: nobody may be asked anything that isn't recorded.
    """

    folder: Path | None = None
    settings: JsonObject = Factory(dict)
    charge: Charge = _nobody
    replaying: bool = False


class Attachable:
    """A component that is told where it works, once, right after it was made."""

    def attach(self, session: Session) -> None:
        """Take what the session offers; nothing may be written or asked for yet.

        Raises:
            ConfigError: the settings are wrong; names the field and what is allowed.
        """

    def close(self) -> None:
        """Release what it holds; idempotent. Whoever made it calls it when it is asked nothing more."""
