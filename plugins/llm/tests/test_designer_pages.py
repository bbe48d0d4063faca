"""Rollouts as text: complete or marked, by turns, and never beyond the budget."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from attrs import evolve
from canned_designer import evidence  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import (
    Action,
    Episode,
    Observation,
    Outcome,
    ResetResponse,
    StepResponse,
    Trajectory,
    Verdict,
)
from envharness_core.jsondata import JsonObject
from envharness_core.trajectory import Step
from envharness_llm.designing.counted import counted
from envharness_llm.designing.pages import TOKEN, clipped, pages

NOTES = 200  # characters of what is said beside the rollouts
TEXTS = st.text(max_size=3000) | st.integers(0, 40).map(lambda n: "\n".join(f"line {i}" for i in range(n)))


def step(action: Action | None, text: str, says: str = "") -> Step:
    return Step(action, says, {}, ((0, 0),), StepResponse(Observation(text)), None, 0.0, 0.0)


def played(index: int, texts: Sequence[str], *, success: bool) -> tuple[Episode, Trajectory]:
    verdict = Verdict(success, float(success))
    episode = Episode(f"{index}", "t", "baseline", index, Outcome.COMPLETED, verdict, len(texts), 1.0)
    steps = tuple(step(Action("do", {"n": n}), text) for n, text in enumerate(texts))
    return episode, Trajectory(ResetResponse(Observation("start"), "do it"), steps, ((),))


@st.composite
def rollouts(draw: st.DrawFn) -> list[tuple[Episode, Trajectory]]:
    made = draw(st.lists(st.tuples(st.booleans(), st.lists(TEXTS, max_size=12)), min_size=1, max_size=8))
    return [played(index, texts, success=success) for index, (success, texts) in enumerate(made)]


def paged(made: Sequence[tuple[Episode, Trajectory]], tokens: int) -> str:
    known = {episode.key: trajectory for episode, trajectory in made}
    return pages([episode for episode, _ in made], lambda episode: known[episode.key], tokens)


@given(rollouts(), st.integers(100, 8000))
def test_pages_keep_to_their_budget_and_every_rollout_is_complete_marked_or_counted(
    made: list[tuple[Episode, Trajectory]], tokens: int
) -> None:
    text = paged(made, tokens)
    assert len(text) <= tokens * TOKEN + NOTES
    assert text == paged(made, tokens)
    left = re.search(r"^\((\d+) more of \d+ rollouts left out", text, re.MULTILINE)
    heads = re.findall(r"^## Rollout (\d+): \w+, (\d+) steps$", text, re.MULTILINE)
    assert len(heads) + (int(left[1]) if left else 0) == len(made)
    for part in re.split(r"^(?=## Rollout )", text, flags=re.MULTILINE)[1:]:
        if "left out for want of room)" in part or "same as rollout" in part or "characters left out" in part:
            continue
        count = int(re.findall(r", (\d+) steps", part)[0])
        assert len(re.findall(r"^\d+\. do\(n=", part, re.MULTILINE)) == count
        assert "\nEnd: " in part


@given(st.text(), st.integers(1, 200))
def test_what_is_clipped_says_how_much_and_keeps_both_ends(text: str, width: int) -> None:
    short = clipped(text, width)
    if len(text) <= width:
        assert short == text
    else:
        head, count, tail = re.fullmatch(
            r"(.*) \[\.\.\. (\d+) characters left out \.\.\.\] (.*)", short, re.DOTALL
        ).groups()  # type: ignore[union-attr]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + len(tail) == width
        assert int(count) == len(text) - width


def test_failures_and_successes_come_by_turns() -> None:
    made = [played(index, [f"{index}"], success=index < 3) for index in range(5)]
    assert re.findall(r"## Rollout (\d)", paged(made, 1000)) == ["3", "0", "4", "1", "2"]


def test_a_rollout_that_doesnt_fit_keeps_its_ends() -> None:
    text = paged([played(0, [f"{n} {'x' * 240}" for n in range(100)], success=False)], 500)
    assert re.search(r"\n\(steps \d to 9\d of 100 left out for want of room\)\n", text)
    assert "\n1. do(n=0)" in text
    assert "\n100. do(n=99)" in text
    assert text.endswith("failure, score 0.")


def test_a_rollout_that_went_like_another_is_told_once() -> None:
    text = paged([played(index, ["a", "b"], success=False) for index in (4, 7)], 1000)
    assert text.endswith(
        "## Rollout 7: failure, 2 steps\nIt begins with:\n   > start\nStep by step the same as rollout 4."
    )


def test_rollouts_of_a_confirmation_are_named_apart() -> None:
    first, again = (played(0, ["a"], success=False) for _ in range(2))
    fresh = evolve(again[0], key="fresh", stream="confirm 1")
    text = paged([first, (fresh, again[1])], 1000)
    assert "## Rollout 0: failure" in text
    assert "## Rollout 0 of the confirmation: failure" in text
    assert text.endswith("Step by step the same as rollout 0.")


def test_lines_that_were_seen_before_are_counted() -> None:
    log = [f"entry {n}" for n in range(9)]
    text = paged([played(0, ["\n".join(log[:8]), "\n".join(log)], success=True)], 1000)
    assert "   > (8 lines as before)\n   > entry 8" in text


def test_what_went_wrong_and_what_reached_the_world_is_told() -> None:
    info: JsonObject = {"blocked": "Not that way."}
    blocked = evolve(
        step(Action("do"), "the same"), response=StepResponse(Observation("the same"), info=info)
    )
    silent = evolve(step(None, "again", "I wonder what to do."), dropped=2)
    episode, trajectory = played(0, [], success=False)
    text = paged([(episode, evolve(trajectory, steps=(blocked, silent)))], 1000)
    assert "1. do()  [blocked: Not that way.; reached the world: nothing]" in text
    assert "2. no tool call  [" in text
    assert "2 further actions of the reply weren't played" in text
    assert "   The policy: I wonder what to do." in text


def test_statistics_say_n_and_count_what_went_wrong() -> None:
    shown = evidence(0.6, 8, "4-4-10-10")
    told = counted(shown.baseline, shown.trajectory)
    wins = sum(episode.success for episode in shown.baseline)
    assert f"{wins} of 8 graded rollouts succeeded (95 % interval" in told
    calls = sum(len(shown.trajectory(episode).steps) for episode in shown.baseline)
    assert calls == sum(map(int, re.findall(r"(?:combine|undo|stop) (\d+) in", told)))


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_counted_without_rollouts(count: int) -> None:
    made = [played(index, [], success=True) for index in range(count)]
    known = {episode.key: trajectory for episode, trajectory in made}
    told = counted([episode for episode, _ in made], lambda episode: known[episode.key])
    assert ("no graded rollouts" in told) == (count == 0)
    assert "Calls: none" in told
