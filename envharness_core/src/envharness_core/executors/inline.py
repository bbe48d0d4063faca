"""Inline: plays episodes in this process, one after another."""

from __future__ import annotations

from collections.abc import Iterator

from envharness_core.component import NoConfig
from envharness_core.episode import EpisodeSpec, Record
from envharness_core.executor import Executor
from envharness_core.player import Player
from envharness_core.plugins import Plugins


class Inline(Executor[NoConfig]):
    """Plays episodes in this process, one after another: for tests, debugging and notebooks."""

    def __init__(self, config: NoConfig | None = None) -> None:
        super().__init__(config or NoConfig())

    def run(self, jobs: Iterator[EpisodeSpec | None], plugins: Plugins) -> Iterator[Record]:
        with Player(plugins) as player:
            for job in jobs:
                if job is not None:
                    yield player.play(job)
