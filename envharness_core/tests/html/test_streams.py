"""A stream's name is taken apart, and each attempt finds the streams that it was played in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.page.streams import PURPOSES, TITLES, Stream, attempt_parts, stream_name
from envharness_core.store import Store

KINDS = [kind for kind in TITLES if not kind.startswith("report")]


@given(st.sampled_from(KINDS), st.sampled_from(["", "0", "11", "unchanged"]), st.integers(0, 3))
def test_a_name_and_its_parts_say_the_same(kind: str, part: str, rounds: int) -> None:
    assert Stream.of(stream_name(kind, part, rounds)) == Stream(kind, part, rounds)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("baseline", "Baseline"),
        ("attempt 0", "Validation of attempt 1"),
        ("confirm unchanged of round 1", "Confirmation of the unchanged task (round 2)"),
        ("report after", "Measured after"),
        ("a stream, of a plugin's", "a stream, of a plugin's"),
    ],
)
def test_a_stream_has_a_title(name: str, title: str) -> None:
    assert Stream.of(name).title == title


def test_each_stream_of_a_run_is_known(toy24: Path) -> None:
    assert TITLES.keys() == PURPOSES.keys()
    with Store.open(toy24, read_only=True) as store:
        assert {Stream.of(stream).kind for stream, _, _ in store.counts()} <= TITLES.keys()


def test_each_attempt_finds_its_streams_over_all_rounds(toy24: Path) -> None:
    with Store.open(toy24, read_only=True) as store:
        played = Counter((episode.task, episode.stream) for episode in store.episodes())
        rounds = Counter[int]()
        for result in store.results():
            attempts: Any = result["attempts"]
            for (part, number), attempt in zip(attempt_parts(attempts), attempts, strict=True):
                rounds[number] += 1
                for kind, counted in (("attempt", "validation"), ("confirm", "confirmation")):
                    graded = (attempt[counted] or {"graded": 0})["graded"]
                    assert played[str(result["task"]), stream_name(kind, part, number)] == graded
    assert set(rounds) == {0, 1}
