"""Packs data into a page: compressed, as text that can stand in a script element, within a size."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable

from attrs import Factory, define

from envharness_core.errors import CheckpointError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.page.choice import Chosen
from envharness_core.page.playback import playback
from envharness_core.trajectory import Trajectory

_FULL = 0.01
"""The share of the size that has to be left for more episodes to be looked at."""


def packed(data: Json) -> str:
    """Return data as base64 of zlib of JSON; the alphabet holds no character that means something to HTML."""
    return b64encode(zlib.compress(json.dumps(data).encode(), 9)).decode()


@define
class Pack:
    """What a page holds besides its markup.

    Args:
        size: characters that the episodes may take together.
        chunks: packed texts; the page knows them by their places.
        used: characters that the episodes take.
        episodes: by task, what the page lists of each packed episode, with its chunk's place.
        left_out: episodes that were chosen but found no room.
        damaged: episodes whose record can't be read, each with the reason.
    """

    size: int
    chunks: list[str] = Factory(list)
    used: int = 0
    episodes: dict[str, list[JsonObject]] = Factory(dict)
    left_out: int = 0
    damaged: list[str] = Factory(list)

    @property
    def held(self) -> int:
        """How many episodes it holds."""
        return sum(map(len, self.episodes.values()))

    def put(self, data: Json) -> int:
        """Pack data whatever its size, and return its place."""
        self.chunks.append(packed(data))
        return len(self.chunks) - 1

    def fill(self, chosen: Iterable[Chosen], trajectory: Callable[[Chosen], Trajectory]) -> None:
        """Pack episodes, the first ones first, as long as there is room."""
        for item in chosen:
            if self.size - self.used <= self.size * _FULL:
                self.left_out += 1
                continue
            text = self._told(item, trajectory)
            if text is None:
                continue
            if self.used + len(text) > self.size:
                self.left_out += 1
                continue
            self.used += len(text)
            self.chunks.append(text)
            listed = _listed(item, len(self.chunks) - 1)
            self.episodes.setdefault(item.episode.task, []).append(listed)

    def _told(self, item: Chosen, trajectory: Callable[[Chosen], Trajectory]) -> str | None:
        try:
            return packed(playback(item, trajectory(item)))
        except (CheckpointError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self.damaged.append(f"{item.episode.task}, {item.episode.stream} {item.episode.index}: {error}")
            return None


def _listed(item: Chosen, place: int) -> JsonObject:
    episode = item.episode
    return {
        "chunk": place,
        "stream": episode.stream,
        "index": episode.index,
        "outcome": str(episode.outcome),
        "success": episode.success if episode.graded else None,
        "steps": episode.steps,
        "why": item.why,
    }
