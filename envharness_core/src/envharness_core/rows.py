"""Rows of a store, read with suspicion: what in them can't be true is said."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from attrs import frozen

from envharness_core.data import Verdict
from envharness_core.episode import Episode, episode_key
from envharness_core.jsondata import JsonObject, digest
from envharness_core.outcome import Outcome
from envharness_core.seeds import Seeds

COLUMNS = "key, task, stream, idx, outcome, success, score, metrics, steps, seconds, usage, error"
"""The columns that an episode without its trajectory is read from."""


@frozen
class Row:
    """A stored episode as verification reads it.

    Args:
        key, task: what the row says.
        episode, design, seeds: what it holds; None where that can't be read.
        blob: the encoded trajectory.
        problem: what about the row can't be true; empty for nothing.
    """

    key: str
    task: str
    episode: Episode | None
    design: JsonObject | None
    seeds: Seeds | None
    blob: bytes
    problem: str


@lru_cache(maxsize=8)  # rows come design by design
def _design(text: str) -> tuple[JsonObject, str]:
    design: JsonObject = json.loads(text)
    return design, digest(design)


def read_row(row: Any) -> Row:
    """Read columns, seeds, trajectory and design of a row, and say what about it can't be true."""
    key, task, stream, index = row[:4]
    *seeds, blob, design_key, text = row[-6:]
    try:
        episode = read_episode(row[:-6])
        design, known = _design(text) if text else (None, "")
        expected = episode_key(known, stream, index, Seeds(*seeds))
    except (ValueError, TypeError) as error:
        return Row(key, task, None, None, None, b"", f"a damaged row: {error}")
    problem = ""
    if design is None or known != design_key:
        problem = "its design is missing, or has been changed"
    elif expected != key or design.get("task") != task:
        problem = "its place or its seeds aren't those that its key was made of"
    return Row(key, task, episode, design, Seeds(*seeds), blob, problem)


def read_episode(row: Any) -> Episode:
    """Read an episode from its columns.

    Raises:
        ValueError, TypeError: they can't be one's.
    """
    key, task, stream, index, outcome, success, score, metrics, steps, seconds, usage, error = row
    if success not in (0, 1, None):
        raise ValueError(f"success is {success!r}, neither 0 nor 1")
    verdict = None if success is None else Verdict(bool(success), score, json.loads(metrics))
    return Episode(
        key, task, stream, index, Outcome(outcome), verdict, steps, seconds, json.loads(usage), error
    )
