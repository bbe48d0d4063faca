"""Posteriors of a rate: exact where they have a closed form, and close to it over cells."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.posterior import (
    CELLS,
    MIDDLES,
    band_posterior,
    beta_cdf,
    cell_posterior,
    log_likelihood,
    wilson_interval,
)

COUNTS = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (pair[0], sum(pair)))
"""Successes, and rollouts."""


@given(COUNTS, st.sampled_from([0.3, 0.5, 1.0, 2.0]), st.integers(0, CELLS), st.integers(0, CELLS))
def test_cells_add_up_to_the_beta_posterior(
    counts: tuple[int, int], prior: float, one: int, other: int
) -> None:
    cells = cell_posterior(*counts, prior)
    low, high = sorted((one, other))
    assert sum(cells) == pytest.approx(1)
    exact = band_posterior(*counts, low / CELLS, high / CELLS, prior)
    assert sum(cells[low:high]) == pytest.approx(exact, abs=0.02)


@given(COUNTS, COUNTS)
def test_evidence_counts_like_rollouts(one: tuple[int, int], other: tuple[int, int]) -> None:
    together = cell_posterior(one[0] + other[0], one[1] + other[1], 0.5)
    assert cell_posterior(*one, 0.5, log_likelihood(*other)) == pytest.approx(together)


def test_cells_stand_in_the_middle_of_equal_parts() -> None:
    assert len(MIDDLES) == CELLS
    assert MIDDLES[0] == 0.5 / CELLS
    assert MIDDLES[-1] == 1 - MIDDLES[0]


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
