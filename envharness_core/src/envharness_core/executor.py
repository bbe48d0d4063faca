"""Executors: play many episodes, in any order, somewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic

from envharness_core.component import ConfigT
from envharness_core.episode import EpisodeSpec, Record

if TYPE_CHECKING:
    from envharness_core.plugins import Plugins

LOOK_SECONDS = 0.5
"""How long an executor waits for a record before it looks for jobs again."""


class Executor(ABC, Generic[ConfigT]):
    """Plays episodes; failures come back as data."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def run(self, jobs: Iterator[EpisodeSpec | None], plugins: Plugins) -> Iterator[Record]:
        """Play jobs and yield their records in any order.

        Args:
            jobs: pulled from when there is room. None says that there is nothing to do now: pull again when a record
                of an earlier job has been yielded, or after half a second, since an answer that somebody waits for
                may have come in. The iterator's end says that there is nothing to do any more.
            plugins: what the specs' names are looked up in.
        """

    def close(self) -> None:
        """Release workers; idempotent."""
