"""Weakness, autonomous and red team: gates of numbers about one rate, some beside the unchanged task's."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.objective import Decision
from envharness_core.objectives.autonomous import Autonomous, AutonomousConfig
from envharness_core.objectives.rate_gate import RateGate
from envharness_core.objectives.red_team import RedTeam, RedTeamConfig
from envharness_core.objectives.weakness import Weakness, WeaknessConfig
from envharness_core.outcome import Outcome
from envharness_core.posterior import band_posterior

Made = Callable[..., RateGate[Any]]


def weakness(**config: Any) -> Weakness:
    return Weakness(WeaknessConfig(**{"sentence": "it never checks its work", **config}))


def autonomous(**config: Any) -> Autonomous:
    return Autonomous(AutonomousConfig(**config))


def red_team(**config: Any) -> RedTeam:
    return RedTeam(RedTeamConfig(**config))


KINDS: tuple[Made, ...] = (weakness, autonomous, red_team)
EACH = pytest.mark.parametrize("made", KINDS, ids=lambda made: made.__name__)
COUNTS = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda pair: (pair[0], sum(pair)))


def counted(wins: int, rollouts: int) -> list[Episode]:
    return [
        Episode(f"k{i}", "t", "s", i, Outcome.COMPLETED, Verdict(i < wins, float(i < wins)), 1, 0.0)
        for i in range(rollouts)
    ]


def decided(gate: RateGate[Any], baseline: list[Episode], outcomes: list[bool]) -> tuple[Decision, int]:
    seen = 0
    while True:
        word = gate.judge(baseline, counted(sum(outcomes[:seen]), seen))
        if word.decision is not Decision.MORE:
            return word.decision, seen
        assert word.rollouts >= 1
        seen += word.rollouts


@EACH
@given(COUNTS, st.lists(st.booleans(), min_size=30, max_size=30))
def test_curtailed_they_decide_the_same_within_their_limits(
    made: Made, baseline: tuple[int, int], outcomes: list[bool]
) -> None:
    whole = decided(made(curtail=False), counted(*baseline), outcomes)
    sooner = decided(made(), counted(*baseline), outcomes)
    assert 6 <= whole[1] <= 30
    assert (sooner[0], sooner[1] <= whole[1]) == (whole[0], True)
    assert sooner[1] > 0 or sooner[0] is Decision.REFINE


@EACH
@given(COUNTS, st.lists(st.booleans(), max_size=20), st.lists(st.booleans(), max_size=10), st.integers())
def test_only_the_counts_matter(
    made: Made, baseline: tuple[int, int], attempt: list[bool], fresh: list[bool], seed: int
) -> None:
    def mixed(outcomes: list[bool]) -> list[Episode]:
        won = Random(seed).sample(outcomes, len(outcomes))
        return [
            Episode(f"k{i}", "t", "s", i, Outcome.COMPLETED, Verdict(w, float(w)), 1, 0.0)
            for i, w in enumerate(won)
        ]

    gate = made()
    before, tried, more = (
        counted(*baseline),
        counted(sum(attempt), len(attempt)),
        counted(sum(fresh), len(fresh)),
    )
    assert gate.judge(before, mixed(attempt)) == gate.judge(before, tried)
    assert gate.confirm(before, mixed(attempt), mixed(fresh)) == gate.confirm(before, tried, more)


@EACH
@given(COUNTS, st.integers(0, 30))
def test_probabilities_are_probabilities_and_an_acceptance_states_enough(
    made: Made, baseline: tuple[int, int], rollouts: int
) -> None:
    gate = made(curtail=False)
    for wins in range(rollouts + 1):
        word = gate.judge(counted(*baseline), counted(wins, rollouts))
        assert 0 <= word.score <= 1
        assert f"{wins} of {rollouts}" in word.reason
        assert f"{word.score:.2f} likely" in word.reason
        if word.decision is Decision.ACCEPT:
            assert word.score >= 0.8
            assert rollouts >= 6
            assert word.direction == "leave"


@pytest.mark.parametrize(
    ("made", "attempt", "same"),
    [(weakness, (5, 12), 4), (autonomous, (9, 14), 6), (red_team, (2, 20), 1)],
    ids=["weakness", "autonomous", "red_team"],
)
def test_a_confirmation_may_refuse(made: Made, attempt: tuple[int, int], same: int) -> None:
    gate, before, tried = made(), counted(5, 5), counted(*attempt)
    assert gate.judge(before, tried).decision is Decision.ACCEPT
    assert gate.confirm(before, (), ()).rollouts == 10
    assert gate.confirm(before, tried, counted(10, 10)).decision is Decision.REFINE
    assert gate.confirm(before, tried, counted(same, 10)).decision is Decision.ACCEPT


@EACH
def test_what_they_ask_for_is_said_to_the_designer(made: Made) -> None:
    assert made().summary
    assert "\n" not in made().summary


@given(COUNTS, st.integers(1, 20))
def test_fewer_wins_prove_a_weakness_until_it_cannot_be_solved(
    baseline: tuple[int, int], rollouts: int
) -> None:
    """With a floor of 0 every further win speaks against; with one, what speaks for it lies between two counts."""

    def scores(floor: float) -> list[float]:
        gate = weakness(floor=floor, curtail=False)
        return [gate.judge(counted(*baseline), counted(w, rollouts)).score for w in range(rollouts + 1)]

    free = scores(0.0)
    assert free == sorted(free, reverse=True)
    assert all(with_floor <= without + 1e-12 for with_floor, without in zip(scores(0.2), free, strict=True))


@given(st.integers(1, 10), COUNTS)
def test_a_better_baseline_leaves_more_to_lose(rollouts: int, attempt: tuple[int, int]) -> None:
    gate = weakness(curtail=False)
    scores = [gate.judge(counted(wins, rollouts), counted(*attempt)).score for wins in range(rollouts + 1)]
    assert scores == sorted(scores)


def test_a_weakness_is_proven_by_the_margin_and_told_in_words() -> None:
    gate = weakness()
    assert "it never checks its work" in gate.summary
    accepted = gate.judge(counted(5, 5), counted(4, 10))
    assert accepted.decision is Decision.ACCEPT
    assert accepted.reason.startswith("4 of 10 where the unchanged task has 5 of 5: ")
    assert gate.judge(counted(5, 5), counted(9, 10)).direction == "harden"
    hopeless = gate.judge(counted(5, 5), counted(0, 30))
    assert (hopeless.decision, hopeless.direction) == (Decision.REFINE, "scaffold")


def test_where_nothing_can_be_lost_no_rollout_is_spent() -> None:
    word = weakness().judge(counted(0, 5), ())
    assert (word.decision, word.rollouts) == (Decision.REFINE, 0)
    assert word.reason.endswith("further rollouts couldn't change that")


@given(COUNTS, COUNTS)
def test_autonomous_has_no_preference_between_hard_and_easy(
    baseline: tuple[int, int], attempt: tuple[int, int]
) -> None:
    def score(flip: bool) -> float:
        before, tried = ((n - w if flip else w, n) for w, n in (baseline, attempt))
        return autonomous(curtail=False).judge(counted(*before), counted(*tried)).score

    assert score(flip=True) == pytest.approx(score(flip=False), abs=1e-9)


def test_autonomous_moves_a_task_towards_the_middle_and_keeps_what_is_there() -> None:
    gate = autonomous()
    assert gate.judge(counted(5, 5), counted(5, 8)).decision is Decision.ACCEPT
    assert gate.judge(counted(0, 5), counted(3, 8)).decision is Decision.ACCEPT
    assert gate.judge(counted(5, 5), counted(16, 16)).direction == "harden"
    assert gate.judge(counted(0, 5), counted(0, 16)).direction == "scaffold"
    assert gate.judge(counted(3, 5), counted(15, 30)).decision is Decision.ACCEPT, "learnable as it is"
    assert gate.judge(counted(2, 5), counted(24, 30)).decision is Decision.REFINE, "less than before"


def test_a_red_team_needs_a_win_as_proof() -> None:
    gate = red_team()
    assert gate.judge((), counted(0, 20)).decision is not Decision.ACCEPT
    assert gate.judge((), counted(0, 30)).decision is Decision.REFINE
    assert gate.judge((), counted(0, 30)).direction == "scaffold"
    assert gate.judge((), counted(2, 20)).decision is Decision.ACCEPT
    word = gate.judge((), counted(12, 20))
    assert (word.decision, word.direction) == (Decision.REFINE, "harden")
    assert gate.band == (0.02, 0.2)
    assert word.score == pytest.approx(band_posterior(12, 20, 0.02, 0.2, 0.5), abs=0.006)


@pytest.mark.parametrize(
    ("made", "config"),
    [
        (weakness, {"sentence": " \n"}),
        (weakness, {"sentence": "x" * 1001}),
        (weakness, {"margin": 0.0}),
        (weakness, {"margin": 0.6, "floor": 0.5}),
        (autonomous, {"floor": 0.5}),
        (autonomous, {"ceiling": 0.4}),
        (autonomous, {"margin": 0.5}),
        (red_team, {"floor": 0.3}),
        (red_team, {"accept": 0.1}),
        (red_team, {"min_rollouts": 31}),
        (red_team, {"max_rollouts": 201}),
        (red_team, {"confirm_rollouts": 201}),
    ],
)
def test_nonsense_is_refused(made: Made, config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        made(**config)
