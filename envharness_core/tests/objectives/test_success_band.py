"""The gate of numbers: what it accepts is likely in the band, and it always comes to a word."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.objective import Decision, strictest
from envharness_core.objectives.success_band import SuccessBand, SuccessBandConfig
from envharness_core.outcome import Outcome
from envharness_core.posterior import band_posterior

OUTCOMES = st.lists(st.booleans(), min_size=32, max_size=32)


def gate(**config: Any) -> SuccessBand:
    return SuccessBand(SuccessBandConfig(**config))


def episodes(outcomes: list[bool]) -> list[Episode]:
    return [
        Episode(f"k{index}", "t", "s", index, Outcome.COMPLETED, Verdict(won, float(won)), 1, 0.0)
        for index, won in enumerate(outcomes)
    ]


def counted(wins: int, rollouts: int) -> list[Episode]:
    return episodes([index < wins for index in range(rollouts)])


def decided(gate: SuccessBand, outcomes: list[bool]) -> tuple[Decision, int]:
    """Ask the gate as a campaign does, until it has made up its mind."""
    seen = 0
    while True:
        judgement = gate.judge((), episodes(outcomes[:seen]))
        if judgement.decision is not Decision.MORE:
            return judgement.decision, seen
        assert judgement.rollouts > 0
        seen += judgement.rollouts


def accepts(gate: SuccessBand, rate: float) -> tuple[float, float]:
    """Return the chance that a gate accepts at a true rate, and its rollouts on average."""
    waiting, accepted, spent = {(0, 0): 1.0}, 0.0, 0.0
    while waiting:
        counts = min(waiting, key=lambda item: item[1])
        chance, judgement = waiting.pop(counts), gate.judge((), counted(*counts))
        if judgement.decision is not Decision.MORE:
            accepted += chance * (judgement.decision is Decision.ACCEPT)
            spent += chance * counts[1]
            continue
        more = judgement.rollouts
        for won in range(more + 1):
            after = (counts[0] + won, counts[1] + more)
            share = comb(more, won) * rate**won * (1 - rate) ** (more - won)
            waiting[after] = waiting.get(after, 0.0) + chance * share
    return accepted, spent


@given(OUTCOMES, st.booleans(), st.sampled_from([(2, 1), (6, 2), (6, 3)]))
def test_it_decides_between_the_fewest_and_the_most_rollouts(
    outcomes: list[bool], curtail: bool, looks: tuple[int, int]
) -> None:
    first, batch = looks
    decision, seen = decided(gate(curtail=curtail, min_rollouts=first, batch=batch), outcomes)
    assert seen <= 32
    assert decision in (Decision.ACCEPT, Decision.REFINE)
    inside = band_posterior(sum(outcomes[:seen]), seen, 0.4, 0.6, 0.7)
    if not curtail:
        assert seen >= first
        assert (decision is Decision.ACCEPT) == (inside >= 0.48)


@given(OUTCOMES, st.sampled_from(["sequential", "fixed"]), st.sampled_from([(2, 1), (6, 2), (6, 3)]))
def test_curtailed_it_decides_what_it_would_have_decided(
    outcomes: list[bool], kind: str, looks: tuple[int, int]
) -> None:
    config = {"gate": kind, "min_rollouts": looks[0], "batch": looks[1]}
    whole = decided(gate(curtail=False, **config), outcomes)
    sooner = decided(gate(**config), outcomes)
    assert sooner[0] is whole[0]
    assert sooner[1] <= whole[1]


@given(st.lists(st.booleans(), max_size=24), st.lists(st.booleans(), max_size=12), st.randoms())
def test_only_the_counts_matter(attempt: list[bool], confirmation: list[bool], random: Any) -> None:
    shuffled = random.sample(attempt, len(attempt)), random.sample(confirmation, len(confirmation))
    judge = gate()
    assert judge.judge((), episodes(attempt)) == judge.judge((), episodes(shuffled[0]))
    before = judge.confirm((), episodes(attempt), episodes(confirmation))
    assert before == judge.confirm((), episodes(shuffled[0]), episodes(shuffled[1]))


@given(st.integers(0, 32), st.floats(0.1, 0.4), st.floats(0.45, 0.9))
def test_what_is_accepted_lies_between_two_counts(rollouts: int, low: float, high: float) -> None:
    """Whoever accepts two counts of successes accepts what lies between; too many harden, too few scaffold."""
    judge = gate(low=low, high=high)
    judged = [judge.judge((), counted(wins, rollouts)) for wins in range(rollouts + 1)]
    accepted = [wins for wins, word in enumerate(judged) if word.decision is Decision.ACCEPT]
    assert accepted == list(range(min(accepted, default=0), max(accepted, default=-1) + 1))
    directions = [word.direction for word in judged if word.decision is not Decision.ACCEPT]
    assert directions == sorted(directions, key=["scaffold", "harden"].index)


def test_extremes_are_given_up_after_the_fewest_and_say_where_to_go() -> None:
    for won, direction in ((True, "harden"), (False, "scaffold")):
        judgement = gate().judge((), episodes([won] * 2))
        assert (judgement.decision, judgement.direction) == (Decision.REFINE, direction)


def test_half_of_many_is_accepted() -> None:
    judgement = gate().judge((), episodes([True, False] * 8))
    assert judgement.decision is Decision.ACCEPT
    assert judgement.reason == "8 of 16: 0.59 likely in [0.4, 0.6]"
    assert judgement.rollouts == 1, "a designer that is stricter may have more"


def test_the_default_gate_accepts_and_spends_what_was_promised() -> None:
    """Over five tries; the paper's gate spends 14.71 on average and accepts a true 0.2 in 77 % of tasks."""
    paper, default = gate(gate="fixed", curtail=False), gate()
    rates = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9)
    spent = {}
    for name, judge in (("paper", paper), ("default", default)):
        for rate in rates:
            accepted, rollouts = accepts(judge, rate)
            tries = rollouts * sum((1 - accepted) ** tried for tried in range(5))
            spent[name, rate] = (1 - (1 - accepted) ** 5, tries)
    assert spent["paper", 0.2][0] == pytest.approx(0.77, abs=0.005)
    assert sum(spent["paper", rate][1] for rate in rates) / 9 == pytest.approx(14.71, abs=0.01)
    assert max(spent["default", rate][0] for rate in (0.2, 0.8)) < 0.17
    assert spent["default", 0.5][0] >= 0.9
    budget = sum(spent["default", rate][1] for rate in rates) / sum(spent["paper", rate][1] for rate in rates)
    assert budget <= 1.25


@given(st.integers(1, 12), st.floats(0, 0.49), st.floats(0.5, 1))
def test_a_fixed_gate_is_the_point_estimate(count: int, low: float, high: float) -> None:
    fixed = gate(gate="fixed", fixed_rollouts=count, low=low, high=high, curtail=False)
    assert fixed.judge((), ()).rollouts == count
    for wins in range(count + 1):
        right = low - 1e-9 <= wins / count <= high + 1e-9
        assert (fixed.judge((), counted(wins, count)).decision is Decision.ACCEPT) == right


def test_a_fixed_gate_needs_no_fifth_rollout_to_know() -> None:
    fixed = gate(gate="fixed")
    assert fixed.judge((), ()).rollouts == 4
    assert fixed.judge((), counted(1, 4)).rollouts == 1
    assert fixed.judge((), counted(4, 4)).decision is Decision.REFINE
    judgement = fixed.judge((), counted(2, 4))
    assert judgement.decision is Decision.ACCEPT
    assert judgement.reason.startswith("2 of 4: judged by the share, ")
    assert judgement.reason.endswith("further rollouts couldn't change that")
    assert "undecided" not in fixed.judge((), counted(20, 32)).reason


def test_a_confirmation_takes_fresh_rollouts_and_may_refuse() -> None:
    judge, attempt = gate(), counted(6, 12)
    assert judge.confirm((), (), ()).rollouts == 10, "what a confirmation takes, before there is an attempt"
    assert judge.confirm((), attempt, ()).decision is Decision.MORE
    assert judge.confirm((), attempt, counted(5, 10)).decision is Decision.ACCEPT
    refused = judge.confirm((), attempt, counted(10, 10))
    assert (refused.decision, refused.direction) == (Decision.REFINE, "harden")
    assert refused.reason.startswith("6 of 12, picked for it, then 10 of 10 fresh: ")


def test_a_confirmation_that_is_lost_ends_early_and_one_that_is_won_is_completed() -> None:
    judge, patient, attempt = gate(), gate(curtail=False), counted(6, 12)
    for head, rest in product(range(8), range(4)):
        outcomes = [place < head for place in range(7)] + [place < rest for place in range(3)]
        decision, seen = confirmed(judge, attempt, outcomes)
        assert decision is patient.confirm((), attempt, episodes(outcomes)).decision
        assert seen == 10 or decision is Decision.REFINE
    assert confirmed(judge, attempt, [True] * 10)[1] < 10


def confirmed(judge: SuccessBand, attempt: list[Episode], outcomes: list[bool]) -> tuple[Decision, int]:
    seen = 0
    while True:
        word = judge.confirm((), attempt, episodes(outcomes[:seen]))
        if word.decision is not Decision.MORE:
            return word.decision, seen
        seen += word.rollouts


@pytest.mark.parametrize("kind", ["sequential", "fixed"])
def test_an_attempt_that_was_picked_counts_for_less_than_its_face_value(kind: str) -> None:
    judge = gate(gate=kind)
    for wins, rollouts in ((3, 7), (4, 9), (3, 5), (6, 12)):
        for fresh in range(11):
            stated = judge.confirm((), counted(wins, rollouts), counted(fresh, 10)).score
            assert stated <= band_posterior(wins + fresh, rollouts + 10, 0.4, 0.6, 0.7) + 1e-6


def test_an_attempt_that_nothing_picked_counts_at_face_value() -> None:
    lenient = gate(accept=1e-9, reject=0.0, min_rollouts=8, max_rollouts=8)
    assert lenient.judge((), counted(3, 8)).decision is Decision.ACCEPT
    stated = lenient.confirm((), counted(3, 8), counted(4, 10)).score
    assert stated == pytest.approx(band_posterior(7, 18, 0.4, 0.6, 0.7), abs=0.005)


def test_without_a_confirmation_the_attempt_is_the_last_word() -> None:
    judge = gate(confirm_rollouts=0)
    assert judge.confirm((), (), ()).rollouts == 0
    assert judge.confirm((), counted(8, 16), ()) == judge.judge((), counted(8, 16))


def test_a_designer_can_only_tighten() -> None:
    assert strictest(Decision.REFINE, Decision.ACCEPT) is Decision.REFINE
    assert strictest(Decision.ACCEPT, Decision.REJECT) is Decision.REJECT


@pytest.mark.parametrize(
    "config",
    [
        {"low": 0.6, "high": 0.4},
        {"min_rollouts": 33},
        {"accept": 1.5},
        {"accept": 0.1},
        {"max_rollouts": 201},
    ],
)
def test_nonsense_is_refused(config: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        SuccessBandConfig(**config)  # type: ignore[arg-type]
