"""The rate model recovers rates, narrows with data, stays finite, and learns from earlier tasks."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.designers.rate_model import (
    Fit,
    Gaussian,
    Sample,
    draw,
    fit,
    learned_prior,
    logit,
    projected,
    sigmoid,
    within,
)

PRIOR = Gaussian.independent((0.0, 0.0), (2.0, 1.5))
BAND = (0.4, 0.6)


def binomial(random: Random, rate: float, trials: int) -> int:
    return sum(random.random() < rate for _ in range(trials))


def test_without_samples_the_posterior_is_the_prior() -> None:
    assert fit(PRIOR, {}).coefficients == PRIOR


def test_recovers_known_coefficients() -> None:
    random = Random(3)
    features = {f"{x}": (1.0, x / 4) for x in range(9)}
    samples = {
        key: Sample(x, binomial(random, sigmoid(1.0 - 1.2 * x[1]), 400), 400) for key, x in features.items()
    }
    intercept, slope = fit(PRIOR, samples, spread=0.1).coefficients.mean
    assert intercept == pytest.approx(1.0, abs=0.2)
    assert slope == pytest.approx(-1.2, abs=0.2)


def test_a_known_ceiling_is_no_weakness_of_the_policy() -> None:
    random = Random(5)
    sample = Sample((1.0, 0.0), binomial(random, 0.6 * 0.8, 2000), 2000, ceiling=0.6)
    fitted = fit(PRIOR, {"faulty": sample}, spread=0.1)
    assert sigmoid(fitted.tried["faulty"][0]) == pytest.approx(0.8, abs=0.05)
    assert fitted.in_band("faulty", (1.0, 0.0), BAND, ceiling=0.6) > 0.95
    assert fitted.in_band("faulty", (1.0, 0.0), BAND) < 0.05


def test_a_ceiling_below_the_band_puts_nothing_in_it() -> None:
    assert fit(PRIOR, {}).in_band("new", (1.0, 0.0), BAND, ceiling=0.3) == 0.0


@given(successes=st.integers(0, 5), more=st.integers(1, 20))
def test_the_posterior_narrows(successes: int, more: int) -> None:
    few = fit(PRIOR, {"a": Sample((1.0, 1.0), successes, 5)}).logit("a", (1.0, 1.0))
    many = fit(PRIOR, {"a": Sample((1.0, 1.0), successes * (1 + more), 5 * (1 + more))}).logit(
        "a", (1.0, 1.0)
    )
    assert many[1] < few[1] < fit(PRIOR, {}).logit("a", (1.0, 1.0))[1]


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (5, 5), (0, 500), (500, 500)])
def test_separation_is_finite(successes: int, trials: int) -> None:
    mean, variance = fit(PRIOR, {"a": Sample((1.0, 0.0), successes, trials)}).tried["a"]
    assert abs(mean) < 10.0
    assert 0.0 < variance < 5.0


def test_own_rollouts_count_more_than_those_of_a_twin() -> None:
    fitted = fit(PRIOR, {"a": Sample((1.0, 0.0), 18, 20)}, spread=0.8)
    own, twin = fitted.logit("a", (1.0, 0.0)), fitted.logit("b", (1.0, 0.0))
    assert own[0] > twin[0]
    assert own[1] < twin[1]


def test_in_band_prefers_a_seen_half() -> None:
    fitted = fit(PRIOR, {"half": Sample((1.0, 0.0), 10, 20), "easy": Sample((1.0, 1.0), 19, 20)})
    assert fitted.in_band("half", (1.0, 0.0), BAND) > 0.4 > fitted.in_band("easy", (1.0, 1.0), BAND)


@given(mean=st.floats(-5, 5), variance=st.floats(0.01, 9))
def test_within_is_a_probability(mean: float, variance: float) -> None:
    parts = [within(mean, variance, *edges) for edges in ((1e-9, 0.4), (0.4, 0.6), (0.6, 1.0))]
    assert all(0.0 <= part <= 1.0 for part in parts)
    assert sum(parts) == pytest.approx(1.0, abs=1e-4)


def test_draws_repeat_and_have_the_right_moments() -> None:
    gaussian = fit(PRIOR, {"a": Sample((1.0, 1.0), 7, 9)}).coefficients
    assert draw(gaussian, Random(4)) == draw(gaussian, Random(4))
    random = Random(1)
    drawn = [draw(gaussian, random) for _ in range(4000)]
    sums = [one + two for one, two in drawn]
    mean, variance = projected(gaussian, (1.0, 1.0))
    centre = sum(sums) / len(sums)
    assert centre == pytest.approx(mean, abs=0.1)
    assert sum((x - centre) ** 2 for x in sums) / len(sums) == pytest.approx(variance, rel=0.15)


def test_is_deterministic() -> None:
    def once() -> Fit:
        return fit(PRIOR, {"a": Sample((1.0, 0.3), 2, 7), "b": Sample((1.0, 0.9), 5, 6)})

    assert once() == once()


def test_learns_the_prior_of_many_tasks() -> None:
    random = Random(8)
    tasks = []
    for _ in range(60):
        start = random.gauss(1.5, 0.5)
        rates = {"0": (1.0, 0.0), "1": (1.0, 1.0)}
        tasks.append(
            {
                key: Sample(x, binomial(random, sigmoid(start - 1.0 * x[1]), 20), 20)
                for key, x in rates.items()
            }
        )
    learned = learned_prior(PRIOR, tasks, spread=0.1, weight=1.0, rounds=20)
    assert learned.mean[0] == pytest.approx(1.5, abs=0.3)
    assert learned.mean[1] == pytest.approx(-1.0, abs=0.3)
    assert learned.covariance[1][1] < PRIOR.covariance[1][1] / 2


def test_no_tasks_teach_nothing() -> None:
    assert learned_prior(PRIOR, []) == PRIOR


@given(st.floats(-30, 30))
def test_sigmoid_and_logit_are_inverse(value: float) -> None:
    assert logit(sigmoid(value)) == pytest.approx(value, rel=1e-3, abs=1e-6)
