"""Of all episodes, the telling ones are chosen, and those of every task before any task's second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.outcome import Outcome
from envharness_core.page.choice import choose, in_turn
from envharness_core.page.tally import Tally
from envharness_core.store import Store


def episode(task: str, stream: str, index: int, won: bool | None) -> Episode:
    outcome = Outcome.ENV_ERROR if won is None else Outcome.COMPLETED
    verdict = None if won is None else Verdict(won, float(won))
    return Episode(f"{task} {stream} {index}", task, stream, index, outcome, verdict, 3, 0.5, {"tokens": 2})


STREAMS = st.sampled_from(["baseline", "attempt 0", "confirm 0", "report before", "report after", "new kind"])
RUNS = st.dictionaries(
    st.tuples(st.sampled_from("ab"), STREAMS), st.lists(st.sampled_from([True, False, None]), max_size=12)
)


@given(RUNS)
def test_everything_is_counted_and_the_choice_is_bounded(
    run: dict[tuple[str, str], list[bool | None]],
) -> None:
    episodes = [
        episode(task, stream, index, won)
        for (task, stream), results in run.items()
        for index, won in enumerate(results)
    ]
    tally = Tally.of(episodes)
    assert tally.total.played == len(episodes)
    assert tally.total.graded == sum(item.graded for item in episodes)
    assert tally.total.won == sum(item.success for item in episodes)
    assert tally.total.usage["tokens"] == 2 * len(episodes)
    assert sum(count.played for count in tally.kinds.values()) == len(episodes)
    attempts: list[Any] = [{"layers": [1], "rejected": None, "decision": "accept"}]
    for task, first in tally.first.items():
        chosen = choose(first, attempts)
        keys = [item.episode.key for item in chosen]
        assert len(keys) == len(set(keys)) <= 20
        for stream in ("report before", "report after", "baseline"):
            for won in (True, False):
                some = [
                    item.index
                    for item in episodes
                    if item.task == task and item.stream == stream and item.graded and item.success is won
                ]
                assert not some or f"{task} {stream} {some[0]}" in keys
        if any(item.task == task and not item.graded for item in episodes):
            assert any(not item.episode.graded for item in chosen)


def test_every_tasks_first_comes_before_any_tasks_second(toy24: Path) -> None:
    with Store.open(toy24, read_only=True) as store:
        first = Tally.of(store.episodes()).first
        results: list[Any] = store.results()
    chosen = {result["task"]: choose(first[result["task"]], result["attempts"]) for result in results}
    order = list(in_turn(chosen))
    assert len(order) == sum(map(len, chosen.values()))
    assert {item.episode.task for item in order[: len(chosen)]} == set(chosen)


@pytest.mark.parametrize("name", ["toy24", "hostile"])
def test_the_tally_agrees_with_the_store(name: str, request: pytest.FixtureRequest) -> None:
    with Store.open(request.getfixturevalue(name), read_only=True) as store:
        tally = Tally.of(store.episodes())
        assert tally.total.played == sum(count for _, _, count in store.counts())
        for stream in ("report before", "report after"):
            for task, counted in store.rates(stream).items():
                count = tally.streams[task][stream]
                assert (count.won, count.graded) == counted
