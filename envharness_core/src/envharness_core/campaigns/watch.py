"""A watch over a session: counts what it plays, keeps its time, and ends it where too much fails."""

from __future__ import annotations

import time
from collections import Counter
from typing import Self, cast

import structlog

from envharness_core.episode import Episode
from envharness_core.errors import RunError
from envharness_core.outcome import INFRASTRUCTURE
from envharness_core.store import Store

_log = structlog.get_logger()

_NOTE_SECONDS = 2.0
CUT_SHORT = "cut_short"
"""Where a store says that too much had failed in its last session: the next one plays that again."""

_ENOUGH = 20  # episodes, before a share of failures says anything


class Watch:
    """Watches a session of a run; as a context manager it notes how the session ended.

    Args:
        store: the run's.
        max_excluded: the share of episodes that the infrastructure may fail.
    """

    def __init__(self, store: Store, max_excluded: float) -> None:
        self.episodes = self.excluded = 0
        self._store = store
        self._most = max_excluded
        self._failures: Counter[str] = Counter()
        self._first_failure = ""
        self._began = self._noted = time.monotonic()
        self._earlier = cast("float", store.meta("seconds") or 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Note the session's time, and whether the next one has to make up for what failed in it."""
        self.note_time()
        failing = kind is not None and issubclass(kind, RunError) and self._failures.total() > 0
        if failing or self._store.meta(CUT_SHORT):
            self._store.set_meta(CUT_SHORT, failing)

    @property
    def seconds(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self._began

    def heard(self, episode: Episode) -> None:
        """Take note of an episode that was played.

        Raises:
            RunError: the infrastructure has failed too often.
        """
        self.episodes += 1
        if not episode.graded:
            self.excluded += 1
            self._note_failure(episode)
            _log.warning(
                "episode_excluded",
                task=episode.task,
                episode=episode.key,
                stream=episode.stream,
                index=episode.index,
                outcome=str(episode.outcome),
                error=episode.error,
            )
        if time.monotonic() - self._noted > _NOTE_SECONDS:
            self.note_time()

    def note_time(self) -> None:
        """Add the session's time to the run's, now and then, so that a killed session's isn't lost."""
        self._noted = time.monotonic()
        self._store.set_meta("seconds", round(self._earlier + self._noted - self._began, 1))

    def _note_failure(self, episode: Episode) -> None:
        """Count what the infrastructure failed; too much of it ends the session."""
        if episode.outcome not in INFRASTRUCTURE:
            return
        self._failures[str(episode.outcome)] += 1
        self._first_failure = self._first_failure or episode.error
        failed = self._failures.total()
        if self.episodes >= _ENOUGH and failed > self._most * self.episodes:
            counted = ", ".join(f"{count} {outcome}" for outcome, count in self._failures.items())
            raise RunError(
                f"stopped: {failed} of this session's {self.episodes} episodes failed ({counted}), more than "
                f"campaign.max_excluded = {self._most:g} allows; the first: {self._first_failure or 'no word'}; "
                "run again when that is mended: what failed is then played again"
            )
