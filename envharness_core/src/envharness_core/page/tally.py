"""One pass over a run's episodes: what is counted, and which of them are worth looking at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from attrs import Factory, define

from envharness_core.episode import Episode
from envharness_core.page.streams import Stream

_FIRST = 5
"""Episodes of a stream that are remembered, of wins, losses and each other outcome."""


@define
class Count:
    """Episodes, counted.

    Args:
        played, graded, won: how many.
        steps: of all of them.
        seconds: the policy's and the world's, of all of them.
        outcomes: how many of each.
        usage: tokens and costs, summed by key.
    """

    played: int = 0
    graded: int = 0
    won: int = 0
    steps: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = Factory(Counter)
    usage: Counter[str] = Factory(Counter)

    def add(self, episode: Episode) -> None:
        """Count an episode."""
        self.played += 1
        self.graded += episode.graded
        self.won += episode.success
        self.steps += episode.steps
        self.seconds += episode.seconds
        self.outcomes[str(episode.outcome)] += 1
        for key, amount in episode.usage.items():
            if isinstance(amount, int | float) and not isinstance(amount, bool):
                self.usage[key] += amount  # type: ignore[assignment] # dollars too


@define
class Tally:
    """What one pass over all episodes found.

    Args:
        kinds: by kind of stream, in the order of a run.
        streams: by task and stream.
        first: the first episodes by task and stream: wins, losses, and each outcome that isn't graded.
        total: of all.
    """

    kinds: dict[str, Count] = Factory(dict)
    streams: dict[str, dict[str, Count]] = Factory(dict)
    first: dict[str, dict[str, list[Episode]]] = Factory(dict)
    total: Count = Factory(Count)

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> Tally:
        """Count episodes that come by task, stream and index."""
        tally = cls()
        seen: Counter[tuple[Any, ...]] = Counter()
        for episode in episodes:
            kind = Stream.of(episode.stream).kind
            streams = tally.streams.setdefault(episode.task, {})
            for count in (
                tally.total,
                tally.kinds.setdefault(kind, Count()),
                streams.setdefault(episode.stream, Count()),
            ):
                count.add(episode)
            how = episode.success if episode.graded else str(episode.outcome)
            place = (episode.task, episode.stream, how)
            seen[place] += 1
            if seen[place] <= _FIRST:
                tally.first.setdefault(episode.task, {}).setdefault(episode.stream, []).append(episode)
        return tally
