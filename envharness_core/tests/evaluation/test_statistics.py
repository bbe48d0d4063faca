"""Paired differences: what they say of conditions that differ, and that they stay silent of those that don't."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envharness_core.evaluation.statistics import paired, spread

Scores = dict[str, list[float]]

scores = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=3),
    min_size=1,
    max_size=12,
)


def drawn(rates: list[float], runs: int, random: Random) -> Scores:
    return {
        f"task {place}": [float(random.random() < rate) for _ in range(runs)]
        for place, rate in enumerate(rates)
    }


@settings(max_examples=40)
@given(scores, scores)
def test_the_other_way_round_the_difference_has_the_other_sign(one: Scores, other: Scores) -> None:
    there, back = paired(one, other), paired(other, one)
    if there is None or back is None:
        assert not set(one) & set(other)
        return
    assert there.mean == pytest.approx(-back.mean)
    assert there.tasks == back.tasks == len(set(one) & set(other))
    assert there.low - 1e-9 <= there.mean <= there.high + 1e-9
    assert -1.0 <= there.low <= there.high <= 1.0
    assert 0.0 < there.p <= 1.0


@given(scores)
def test_a_condition_is_no_gain_over_itself(one: Scores) -> None:
    difference = paired(one, one)
    assert difference is not None
    assert (difference.mean, difference.low, difference.high, difference.p) == (0.0, 0.0, 0.0, 1.0)
    assert difference.finding == "no evidence of gain"


@settings(max_examples=40)
@given(scores, scores)
def test_the_order_of_tasks_changes_nothing(one: Scores, other: Scores) -> None:
    turned = dict(reversed(one.items())), dict(reversed(other.items()))
    assert paired(one, other) == paired(*turned)


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 5])
def test_few_tasks_are_no_evidence_however_clear_they_look(tasks: int) -> None:
    """With n tasks, all better, chance does as well in 2 of 2**n: more than 5 % up to 5 tasks."""
    won = {f"{place}": [1.0] for place in range(tasks)}
    lost = {f"{place}": [0.0] for place in range(tasks)}
    difference = paired(won, lost)
    assert difference is not None
    assert difference.mean == 1.0
    assert difference.finding == "no evidence of gain"


def test_what_is_clear_is_said() -> None:
    random = Random(1)
    good, poor = drawn([0.8] * 60, 3, random), drawn([0.4] * 60, 3, random)
    gain, harm = paired(good, poor), paired(poor, good)
    assert gain is not None
    assert harm is not None
    assert gain.finding == "gain"
    assert harm.finding == "harm"
    assert gain.low > 0.2
    assert gain.high < 0.6
    assert "reshaped beats none: a gain of +0." in gain.sentence("reshaped", "none")
    assert "harm" in harm.sentence("reshaped", "none")


def test_what_is_unclear_is_called_that() -> None:
    random = Random(2)
    difference = paired(drawn([0.5] * 20, 2, random), drawn([0.5] * 20, 2, random))
    assert difference is not None
    assert difference.sentence("a", "b").startswith("No evidence of gain of a over b: ")


@pytest.mark.slow
def test_chance_is_seldom_called_a_finding_and_a_gain_is_seldom_missed() -> None:
    """Of 50 comparisons of equals few are findings; of 50 with a difference of 0.3 few are missed."""
    random = Random(3)
    rates = [random.random() for _ in range(40)]
    better = [min(1.0, rate * 0.6 + 0.45) for rate in rates]
    equal = [paired(drawn(rates, 3, random), drawn(rates, 3, random)) for _ in range(50)]
    apart = [paired(drawn(better, 3, random), drawn(rates, 3, random)) for _ in range(50)]
    false = sum(item is not None and item.finding != "no evidence of gain" for item in equal)
    true = sum(item is not None and item.finding == "gain" for item in apart)
    assert false <= 6
    assert true >= 45


def test_spread() -> None:
    assert spread([1.0]) == (1.0, None)
    mean, deviation = spread([0.0, 1.0])
    assert mean == 0.5
    assert deviation == pytest.approx(0.5**0.5)


def test_tasks_without_a_graded_attempt_are_left_out() -> None:
    difference = paired({"a": [1.0], "b": [], "c": [1.0]}, {"a": [0.0], "b": [0.0]})
    assert difference is not None
    assert difference.tasks == 1
    assert paired({"a": []}, {"a": [1.0]}) is None
