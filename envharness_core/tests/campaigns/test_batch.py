"""Batches: failures are made up for within a bound, and a broken layer ends a batch."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from envharness_core.campaigns.batch import Batch, Play, Rerolls, Rolled, driven, roll
from envharness_core.data import Verdict
from envharness_core.episode import Design, Episode, Limits
from envharness_core.outcome import Outcome
from envharness_core.spec import ComponentSpec

DESIGN = Design(ComponentSpec("core/toy24"), "toy24 1", "3-3-8-8", (), ComponentSpec("core/solver"), Limits())


def episode(index: int, outcome: Outcome) -> Episode:
    verdict = Verdict(True, 1.0) if outcome is Outcome.COMPLETED else None
    return Episode(f"k{index}", "3-3-8-8", "s", index, outcome, verdict, 1, 0.0)


def drive(play: Play[Rolled], outcome: Callable[[int], Outcome]) -> tuple[Rolled, list[Batch]]:
    batches: list[Batch] = []

    def played(batch: Batch) -> tuple[Episode, ...]:
        batches.append(batch)
        return tuple(episode(index, outcome(index)) for index in batch.indices)

    return driven(play, played), batches


@given(st.lists(st.booleans(), min_size=40, max_size=40), st.integers(1, 10), st.integers(0, 6))
def test_as_many_as_wanted_are_graded_or_the_bound_was_spent(
    fails: list[bool], wanted: int, rerolls: int
) -> None:
    def outcome(index: int) -> Outcome:
        return Outcome.ENV_ERROR if fails[index] else Outcome.COMPLETED

    rolled, batches = drive(roll(DESIGN, "s", Rolled(), wanted, Rerolls(rerolls, 1.0)), outcome)
    assert len(rolled.graded) <= wanted
    assert len(rolled.played) <= wanted + rerolls
    assert rolled.next == len(rolled.played)
    assert [item.index for item in rolled.graded] == sorted(item.index for item in rolled.graded)
    if len(rolled.graded) < wanted:
        assert len(rolled.excluded) > rerolls
    indices = [index for batch in batches for index in batch.indices]
    assert indices == list(range(len(indices)))
    assert [batch.delay for batch in batches] == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0][: len(batches)]


def test_the_wait_between_two_tries_is_bounded_and_only_for_the_infrastructure() -> None:
    for failure, longest in ((Outcome.ENV_ERROR, 60.0), (Outcome.POLICY_ERROR, 0.0)):
        outcomes = dict.fromkeys(range(12), failure)
        play = roll(DESIGN, "s", Rolled(), 1, Rerolls(20, 1.0))
        _, batches = drive(play, lambda index, failed=outcomes: failed.get(index, Outcome.COMPLETED))  # type: ignore[misc]
        assert len(batches) == 13
        assert max(batch.delay for batch in batches) == longest


def test_a_further_batch_goes_on_where_the_stream_stopped() -> None:
    first, _ = drive(roll(DESIGN, "s", Rolled(), 3, Rerolls(0)), lambda _: Outcome.COMPLETED)
    second, batches = drive(roll(DESIGN, "s", first, 2, Rerolls(0)), lambda _: Outcome.COMPLETED)
    assert [batch.indices for batch in batches] == [(3, 4)]
    assert [item.index for item in second.graded] == [0, 1, 2, 3, 4]


def test_a_broken_layer_ends_the_batch_at_once() -> None:
    def outcome(index: int) -> Outcome:
        return Outcome.RULES_ERROR if index == 1 else Outcome.COMPLETED

    rolled, batches = drive(roll(DESIGN, "s", Rolled(), 4, Rerolls(10)), outcome)
    assert rolled.broken is not None
    assert rolled.broken.index == 1
    assert len(batches) == 1
