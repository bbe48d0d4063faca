"""The gate of numbers: what it accepts is likely in the band, and it always comes to a word."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.objective import Decision, strictest
from envharness_core.objectives.success_band import SuccessBand, SuccessBandConfig
from envharness_core.outcome import Outcome
from envharness_core.posterior import band_posterior, beta_cdf, wilson_interval


def episodes(outcomes: list[bool]) -> list[Episode]:
    return [
        Episode(f"k{index}", "t", "s", index, Outcome.COMPLETED, Verdict(won, float(won)), 1, 0.0)
        for index, won in enumerate(outcomes)
    ]


def decided(gate: SuccessBand, outcomes: list[bool]) -> tuple[Decision, int]:
    """Ask the gate as a campaign does, until it has made up its mind."""
    seen = 0
    while True:
        judgement = gate.judge((), episodes(outcomes[:seen]))
        if judgement.decision is not Decision.MORE:
            return judgement.decision, seen
        assert judgement.rollouts > 0
        seen += judgement.rollouts


@given(st.lists(st.booleans(), min_size=20, max_size=20))
def test_it_decides_between_the_fewest_and_the_most_rollouts(outcomes: list[bool]) -> None:
    gate = SuccessBand(SuccessBandConfig())
    decision, seen = decided(gate, outcomes)
    assert 6 <= seen <= 20
    assert decision in (Decision.ACCEPT, Decision.REFINE)
    inside = band_posterior(sum(outcomes[:seen]), seen, 0.4, 0.6, 0.3)
    assert (decision is Decision.ACCEPT) == (inside >= 0.44)


def test_extremes_are_given_up_after_the_fewest_and_say_where_to_go() -> None:
    gate = SuccessBand(SuccessBandConfig())
    for won, direction in ((True, "harden"), (False, "scaffold")):
        judgement = gate.judge((), episodes([won] * 6))
        assert (judgement.decision, judgement.direction) == (Decision.REFINE, direction)


def test_half_of_many_is_accepted() -> None:
    judgement = SuccessBand(SuccessBandConfig()).judge((), episodes([True, False] * 8))
    assert judgement.decision is Decision.ACCEPT
    assert judgement.reason.startswith("8 of 16: ")


def test_a_confirmation_counts_with_the_attempt_and_may_refuse() -> None:
    gate = SuccessBand(SuccessBandConfig(confirm_rollouts=10, confirm=0.44))
    attempt = episodes([True, False] * 6)
    assert gate.confirm((), attempt, ()).rollouts == 10
    assert gate.confirm((), attempt, episodes([True, False] * 5)).decision is Decision.ACCEPT
    assert gate.confirm((), attempt, episodes([True] * 10)).decision is Decision.REFINE


def test_a_designer_can_only_tighten() -> None:
    assert strictest(Decision.REFINE, Decision.ACCEPT) is Decision.REFINE
    assert strictest(Decision.ACCEPT, Decision.REJECT) is Decision.REJECT


@pytest.mark.parametrize("config", [{"low": 0.6, "high": 0.4}, {"min_rollouts": 30}, {"accept": 1.5}])
def test_nonsense_is_refused(config: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        SuccessBandConfig(**config)  # type: ignore[arg-type]


@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.01, 0.99))
def test_the_beta_distribution_is_the_binomial_tail(a: int, b: int, x: float) -> None:
    n = a + b - 1
    tail = sum(comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert beta_cdf(x, a, b) == pytest.approx(tail, abs=1e-9)


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_the_beta_distribution_rises_from_0_to_1(a: float, b: float, x: float, y: float) -> None:
    assert beta_cdf(0, a, b) == 0
    assert beta_cdf(1, a, b) == 1
    low, high = sorted((x, y))
    assert beta_cdf(low, a, b) <= beta_cdf(high, a, b) + 1e-12
    assert beta_cdf(x, a, b) == pytest.approx(1 - beta_cdf(1 - x, b, a), abs=1e-9)


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_interval_holds_the_rate(wins: int, losses: int) -> None:
    low, high = wilson_interval(wins, wins + losses)
    assert 0 <= low <= high <= 1
    if wins + losses:
        assert low - 1e-9 <= wins / (wins + losses) <= high + 1e-9
    else:
        assert (low, high) == (0, 1)
