"""A plan of looks: curtailed, it decides what it would have decided, on fewer rollouts and never on more."""

from __future__ import annotations

from itertools import product
from math import exp, log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.objective import Decision
from envharness_core.objectives.plan import Looks, Plan, Rule
from envharness_core.posterior import MIDDLES

LAST = 7
SHAPES = st.tuples(st.integers(1, LAST), st.integers(1, 4), st.integers(0, 10_000))
"""First look, batch, and the seed of a rule."""


def any_rule(seed: int) -> Rule:
    """A rule without rhyme or reason that decides at the last look."""

    def rule(wins: int, rollouts: int) -> Decision:
        choices = [Decision.ACCEPT, Decision.REFINE]
        if rollouts < LAST:
            choices += [Decision.MORE] * 2
        return Random(f"{seed} {wins} {rollouts}").choice(choices)

    return rule


def decided(plan: Plan, outcomes: tuple[bool, ...]) -> tuple[Decision, int]:
    """Ask as a campaign does, until the plan has made up its mind."""
    seen = 0
    while True:
        wins = sum(outcomes[:seen])
        decision = plan.decide(wins, seen)
        if decision is not Decision.MORE:
            return decision, seen
        wanted = plan.wanted(wins, seen)
        assert 1 <= wanted <= LAST - seen
        seen += wanted


@given(SHAPES)
def test_a_curtailed_plan_decides_the_same_and_never_later(shape: tuple[int, int, int]) -> None:
    first, batch, seed = shape
    patient = Plan(any_rule(seed), Looks(first, LAST, batch), curtail=False)
    curtailed = Plan(any_rule(seed), Looks(first, LAST, batch))
    for outcomes in product((False, True), repeat=LAST):
        decision, seen = decided(patient, outcomes)
        sooner, fewer = decided(curtailed, outcomes)
        assert sooner is decision
        assert fewer <= seen
        assert (seen - first) % batch == 0 or seen == LAST


@given(SHAPES)
def test_no_rollout_is_asked_for_that_cannot_matter(shape: tuple[int, int, int]) -> None:
    first, batch, seed = shape
    plan = Plan(any_rule(seed), Looks(first, LAST, batch))
    patient = Plan(any_rule(seed), Looks(first, LAST, batch), curtail=False)
    for seen in range(1, LAST):
        for outcomes in product((False, True), repeat=seen):
            wins = sum(outcomes)
            if plan.decide(wins, seen) is Decision.MORE:
                rest = product((False, True), repeat=LAST - seen)
                assert len({finally_decided(patient, seen, wins, further) for further in rest}) == 2


def finally_decided(plan: Plan, seen: int, wins: int, further: tuple[bool, ...]) -> Decision:
    for won in further:
        if plan.decide(wins, seen) is not Decision.MORE:
            break
        wins, seen = wins + won, seen + 1
    return plan.decide(wins, seen)


def test_a_whole_batch_is_asked_for_where_nothing_can_be_decided_in_it() -> None:
    even = Plan(lambda wins, rollouts: Decision.ACCEPT if wins in (2, 3) else Decision.REFINE, Looks(5, 5, 1))
    assert even.wanted(0, 0) == 4
    assert even.wanted(1, 4) == 1
    assert even.decide(4, 4) is Decision.REFINE
    assert even.decide(2, 4) is Decision.ACCEPT
    assert even.certain(2, 4)
    assert not even.certain(2, 5)


def test_nothing_is_accepted_without_a_rollout() -> None:
    lenient = Plan(lambda wins, rollouts: Decision.ACCEPT, Looks(5, 5, 1))
    assert lenient.decide(0, 0) is Decision.MORE
    assert lenient.wanted(0, 0) == 1
    assert lenient.decide(0, 1) is Decision.ACCEPT
    assert Plan(lambda wins, rollouts: Decision.REFINE, Looks(5, 5, 1)).decide(0, 0) is Decision.REFINE


@given(SHAPES)
def test_the_chance_of_acceptance_is_that_of_all_sequences_that_it_accepts(
    shape: tuple[int, int, int],
) -> None:
    first, batch, seed = shape
    plan = Plan(any_rule(seed), Looks(first, LAST, batch))
    wins = [sum(o) for o in product((False, True), repeat=LAST) if decided(plan, o)[0] is Decision.ACCEPT]
    for cell in (0, 37, 100, 199):
        rate = MIDDLES[cell]
        expected = sum(rate**won * (1 - rate) ** (LAST - won) for won in wins)
        assert exp(plan.log_acceptance[cell]) == pytest.approx(expected, abs=1e-12)
        if wins:
            assert plan.log_acceptance[cell] == pytest.approx(log(expected))
