"""The bench for bridges: how to make one, and what to play on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from attrs import define, field

from envharness_core.checks.drive import Driver
from envharness_core.data import ResetResponse
from envharness_core.env import Bridge

NOT_DETERMINISTIC = "declared non-deterministic: not compared"


@define
class BridgeBench:
    """A bridge under test: how to make one, which tasks to play, and texts for its text arguments."""

    make: Callable[[], Bridge]
    tasks: tuple[str, ...]
    texts: tuple[str, ...] = ()
    seed: int = 0
    _opened: list[Bridge] = field(factory=list)

    def fresh(self) -> Bridge:
        """Make one that the bench closes in the end."""
        bridge = self.make()
        self._opened.append(bridge)
        return bridge

    def driver(self, number: int = 0) -> Driver:
        """Return a source of actions; equal numbers draw equally."""
        return Driver(self.seed * 1000 + number, self.texts)

    def started(self, number: int = 0) -> tuple[Bridge, ResetResponse]:
        """Make one and reset it to the first task."""
        bridge = self.fresh()
        return bridge, bridge.reset(self.seed + number, {"task": self.tasks[0]})

    def close(self) -> None:
        """Close every bridge that was made."""
        while self._opened:
            with suppress(Exception):  # what closing may do wrong has a check of its own
                self._opened.pop().close()
