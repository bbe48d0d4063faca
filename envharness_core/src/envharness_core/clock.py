"""The clock of an episode, which stops while its policy waits for its turn at a provider."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_now = time.perf_counter


class EpisodeClock:
    """Seconds since an episode began, without those in which it was stopped; read from other threads too."""

    def __init__(self) -> None:
        self._began = _now()
        self._stopped = 0.0
        self._stopping: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds that have counted so far."""
        stopping = self._stopping
        return (_now() if stopping is None else stopping) - self._began - self._stopped

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock for a while; inside of such a while, nothing changes."""
        if self._stopping is not None:
            yield
            return
        self._stopping = _now()
        try:
            yield
        finally:
            self._stopped += _now() - self._stopping
            self._stopping = None


_CURRENT: ContextVar[EpisodeClock | None] = ContextVar("envharness_episode_clock", default=None)


@contextmanager
def ticking() -> Iterator[EpisodeClock]:
    """Make a clock the one of the episode that is played here."""
    clock = EpisodeClock()
    token = _CURRENT.set(clock)
    try:
        yield clock
    finally:
        _CURRENT.reset(token)


@contextmanager
def waiting() -> Iterator[None]:
    """Stop the clock of the episode that is played here, if any: what follows is not the policy's time.

    For a policy that waits for its turn, such as a provider's Retry-After::

        with waiting():
            time.sleep(retry_after)
    """
    clock = _CURRENT.get()
    if clock is None:
        yield
        return
    with clock.stopped():
        yield
