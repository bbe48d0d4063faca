"""Which episodes of a run are put into its page, the most telling ones first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from attrs import frozen

from envharness_core.episode import Episode
from envharness_core.page.streams import Stream, attempt_parts, stream_name

_OF_BASELINE = 5
_OF_ACCEPTED = 3
_OF_CONFIRMED = 2

RULE = (
    "For each task: one win and one loss of each report stream, the first of each kind of excluded episode, the "
    f"first {_OF_BASELINE} baseline rollouts, the accepted attempt's first {_OF_ACCEPTED} validation and "
    f"{_OF_CONFIRMED} confirmation rollouts, the first of each other attempt, and the first demonstration that won."
)
"""What ``choose`` does, in words for the page."""


@frozen
class Chosen:
    """An episode that is to be shown, and why."""

    episode: Episode
    why: str


def choose(first: dict[str, list[Episode]], attempts: list[Any]) -> list[Chosen]:
    """Return a task's episodes worth showing, in order of importance, each once.

    Args:
        first: the first episodes of each stream, as ``Tally`` remembers them.
        attempts: those of the task's result; empty where it has none yet.
    """
    found: dict[str, Chosen] = {}
    for episode, why in _ranked(first, attempts):
        found.setdefault(episode.key, Chosen(episode, why))
    return list(found.values())


def in_turn(by_task: dict[str, list[Chosen]]) -> Iterator[Chosen]:
    """Yield every task's most important episode, then every task's second, and so on."""
    for rank in zip_longest(*by_task.values()):
        yield from (chosen for chosen in rank if chosen is not None)


def _ranked(first: dict[str, list[Episode]], attempts: list[Any]) -> Iterator[tuple[Episode, str]]:
    yield from _one_each(first.get("report after", []))
    yield from _excluded(first)
    yield from _one_each(first.get("report before", []))
    parts = list(zip(attempt_parts(attempts), attempts, strict=True))
    for (part, rounds), attempt in parts:
        if attempt["decision"] == "accept":
            yield from _head(first, stream_name("attempt", part, rounds), _OF_ACCEPTED)
            yield from _head(first, stream_name("confirm", part, rounds), _OF_CONFIRMED)
    for name in first:
        if Stream.of(name).kind == "baseline":
            yield from _one_each(first[name])
            yield from _head(first, name, _OF_BASELINE)
    for name in ("report weaker", "report stronger", "report seeds"):
        yield from _one_each(first.get(name, []))
    for name in first:
        if Stream.of(name).kind == "demonstration":
            yield from [(item, "the first that won") for item in first[name] if item.success][:1]
    for (part, rounds), _ in parts:
        for kind in ("attempt", "confirm"):
            yield from _head(first, stream_name(kind, part, rounds), 1)


def _one_each(episodes: list[Episode]) -> Iterator[tuple[Episode, str]]:
    """Yield the first win and the first loss."""
    for wanted, why in ((True, "the first win"), (False, "the first loss")):
        yield from [(item, why) for item in episodes if item.graded and item.success is wanted][:1]


def _excluded(first: dict[str, list[Episode]]) -> Iterator[tuple[Episode, str]]:
    seen: set[str] = set()
    for episodes in first.values():
        for episode in episodes:
            if not episode.graded and episode.outcome not in seen:
                seen.add(episode.outcome)
                yield episode, f"the first with outcome {episode.outcome}"


def _head(first: dict[str, list[Episode]], name: str, count: int) -> Iterator[tuple[Episode, str]]:
    ordered = sorted(first.get(name, []), key=lambda item: item.index)
    yield from ((episode, "among the first") for episode in ordered[:count])
