"""Step band: the median of the steps that successes take, whatever their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.objective import Decision
from envharness_core.objectives.step_band import StepBand, StepBandConfig
from envharness_core.outcome import Outcome

Played = tuple[bool, int]
"""Whether a rollout succeeded, and its steps."""
PLAYED = st.tuples(st.booleans(), st.integers(1, 12))
WHOLE = st.lists(PLAYED, min_size=30, max_size=30)


def band(**config: Any) -> StepBand:
    return StepBand(StepBandConfig(**{"low": 4, "high": 8, **config}))


def episodes(played: Sequence[Played]) -> list[Episode]:
    return [
        Episode(f"k{index}", "t", "s", index, Outcome.COMPLETED, Verdict(won, float(won)), steps, 0.0)
        for index, (won, steps) in enumerate(played)
    ]


def decided(gate: StepBand, played: Sequence[Played]) -> tuple[Decision, int]:
    seen = 0
    while True:
        word = gate.judge((), episodes(played[:seen]))
        if word.decision is not Decision.MORE:
            return word.decision, seen
        assert word.rollouts >= 1
        seen += word.rollouts


@given(WHOLE)
def test_curtailed_it_decides_the_same_within_its_limits(played: list[Played]) -> None:
    whole, sooner = decided(band(curtail=False), played), decided(band(), played)
    assert 6 <= whole[1] <= 30
    assert (sooner[0], sooner[1] <= whole[1]) == (whole[0], True)


@given(WHOLE)
def test_an_acceptance_has_enough_wins_and_their_median_in_the_band(played: list[Played]) -> None:
    decision, seen = decided(band(), played)
    steps = [count for won, count in played[:seen] if won]
    if decision is Decision.ACCEPT:
        assert len(steps) >= 3
        assert 4 <= median(steps) <= 8
        assert seen >= 6


@given(st.lists(PLAYED, max_size=20), st.lists(PLAYED, max_size=10), st.integers())
def test_the_order_of_rollouts_does_not_matter(attempt: list[Played], fresh: list[Played], seed: int) -> None:
    def mixed(played: list[Played]) -> list[Episode]:
        return episodes(Random(seed).sample(played, len(played)))

    gate = band()
    assert gate.judge((), mixed(attempt)) == gate.judge((), episodes(attempt))
    whole = gate.confirm((), episodes(attempt), episodes(fresh))
    assert gate.confirm((), mixed(attempt), mixed(fresh)) == whole


@given(st.lists(PLAYED, min_size=1, max_size=20), st.data())
def test_a_success_with_the_wanted_steps_never_speaks_against(played: list[Played], data: Any) -> None:
    gate = band(curtail=False)
    place = data.draw(st.integers(0, len(played) - 1))
    better = [*played[:place], (True, 6), *played[place + 1 :]]
    assert gate.judge((), episodes(better)).score >= gate.judge((), episodes(played)).score - 1e-12


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20))
def test_too_few_and_too_many_steps_speak_against_alike(distances: list[int]) -> None:
    def score(sign: int) -> float:
        return band().judge((), episodes([(True, 6 + sign * 2 * off) for off in distances])).score

    assert score(1) == pytest.approx(score(-1), abs=1e-12)


def test_it_says_where_to_go_and_the_numbers() -> None:
    gate = band()
    short, long = gate.judge((), episodes([(True, 1)] * 8)), gate.judge((), episodes([(True, 12)] * 8))
    assert (short.decision, short.direction) == (Decision.REFINE, "harden")
    assert (long.decision, long.direction) == (Decision.REFINE, "scaffold")
    accepted = gate.judge((), episodes([(True, 5)] * 7 + [(False, 20)]))
    assert accepted.decision is Decision.ACCEPT
    assert accepted.reason.startswith(
        "7 of 8 succeeded, 0 in fewer than 4 steps, 0 in more than 8: the median"
    )
    assert gate.summary == "successes that take 4 to 8 steps in the median, at least 3 of them"
    assert gate.band is None


def test_failures_say_nothing_about_steps_but_end_what_cannot_be_solved() -> None:
    gate = band()
    assert gate.judge((), episodes([(False, 5)] * 26)).decision is Decision.MORE
    given_up = gate.judge((), episodes([(False, 5)] * 28))
    assert (given_up.decision, given_up.direction) == (Decision.REFINE, "scaffold")
    assert given_up.reason.endswith("further rollouts couldn't change that")


def test_a_confirmation_is_judged_on_the_fresh_rollouts_alone() -> None:
    gate, attempt = band(), episodes([(True, 5)] * 8)
    assert gate.confirm((), attempt, ()).rollouts == 10
    assert gate.confirm((), (), ()).rollouts == 10
    assert gate.confirm((), attempt, episodes([(True, 7)] * 10)).decision is Decision.ACCEPT
    assert gate.confirm((), attempt, episodes([(True, 12)] * 10)).decision is Decision.REFINE
    assert gate.confirm((), attempt, episodes([(False, 5)] * 10)).decision is Decision.REFINE
    lost = gate.confirm((), attempt, episodes([(True, 12)] * 7))
    assert (lost.decision, lost.direction) == (Decision.REFINE, "scaffold")
    assert band(confirm_rollouts=0).confirm((), attempt, ()).decision is Decision.ACCEPT


@pytest.mark.parametrize(
    "config",
    [{"low": 0}, {"low": 9}, {"min_wins": 31}, {"accept": 0.1}, {"min_rollouts": 31}, {"max_rollouts": 201}],
)
def test_nonsense_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        band(**config)
