"""Progress on stderr: a line that renews itself on a terminal, one now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Literal, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from envharness_core.campaigns.holding import Progress

_QUIET_SECONDS = 15.0
_RENEW_SECONDS = 0.2


class RunProgress:
    """Shows a run's progress: tasks, episodes, rate and time left.

    Args:
        what: the kind of run.
    """

    def __init__(self, what: Literal["campaign", "evaluation"] = "campaign") -> None:
        self._what = what
        self._console = Console(stderr=True)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[words]}"),
            console=self._console,
        )
        self._task = self._bar.add_task(what, total=None, words="starting")
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def update(self, progress: Progress) -> None:
        """Take note of an episode; shows something only now and then."""
        now = time.monotonic()
        pause = _RENEW_SECONDS if self._console.is_terminal else _QUIET_SECONDS
        if now - self._shown < pause:
            return
        self._shown = now
        words = describe(progress, self._what)
        if self._console.is_terminal:
            self._bar.update(self._task, total=progress.expected, completed=progress.episodes, words=words)
        else:
            print(f"envharness: {words}", file=sys.stderr, flush=True)  # noqa: T201


def describe(progress: Progress, what: str = "campaign") -> str:
    """Say in a line how far a run is."""
    rate = progress.episodes / progress.seconds if progress.seconds > 0 else 0.0
    left = (progress.expected - progress.episodes) / rate if rate > 0 and progress.designed else None
    parts = [
        *_done(progress, what),
        f"{progress.episodes} episodes",
        f"{rate:.0f}/s",
    ]
    if progress.excluded:
        parts.append(f"{progress.excluded} excluded")
    if left is not None:
        parts.append(f"about {left:.0f} s left")
    return ", ".join(parts)


def _done(progress: Progress, what: str) -> tuple[str, str]:
    if what == "evaluation":
        return f"{progress.designed}/{progress.tasks} attempts scored", f"{progress.accepted} succeeded"
    return f"{progress.designed}/{progress.tasks} tasks designed", f"{progress.accepted} accepted"
