"""Goals: every sentence of ALFWorld's is read, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_bridge_alfworld.goals import TASK_TYPES, Goal, parse_goal

words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=12)
CASES: tuple[Callable[[str], str], ...] = (str, str.upper, str.capitalize)
goals = st.builds(Goal, st.sampled_from(TASK_TYPES), words, words)


@given(goals, st.data())
def test_every_sentence_is_read(goal: Goal, data: st.DataObject) -> None:
    assert len(goal.sentences()) == 2
    sentence = data.draw(st.sampled_from(goal.sentences()))
    case = data.draw(st.sampled_from(CASES))
    end = data.draw(st.sampled_from(["", ".", " .", ".\n"]))
    assert parse_goal(f" {case(sentence)}{end}") == goal


@given(
    goals, st.sampled_from(["", "\n\nAdmissible commands: go to desk 1, look", "\nYou are in a household."])
)
def test_a_goal_is_found_in_the_text_that_tells_it(goal: Goal, after: str) -> None:
    for sentence in goal.sentences():
        text = (
            f"-= Welcome! =-\n\nLooking around you, you see a desk 1.\n\nYour task is to: {sentence}.{after}"
        )
        assert parse_goal(text) == goal


@pytest.mark.parametrize(
    ("sentence", "goal"),
    [
        ("put a mug in desk.", Goal("pick_and_place_simple", "mug", "desk")),
        ("put some mug on desk.", Goal("pick_and_place_simple", "mug", "desk")),
        ("put some mug in desk.", Goal("pick_and_place_simple", "mug", "desk")),
        ("put a clean mug in desk.", Goal("pick_clean_then_place_in_recep", "mug", "desk")),
        ("put a hot mug on desk.", Goal("pick_heat_then_place_in_recep", "mug", "desk")),
        ("cool some mug and put it in desk.", Goal("pick_cool_then_place_in_recep", "mug", "desk")),
        ("find two mug and put them in desk.", Goal("pick_two_obj_and_place", "mug", "desk")),
        ("look at mug under the desklamp.", Goal("look_at_obj_in_light", "mug", "desklamp")),
        ("examine the mug with the desklamp.", Goal("look_at_obj_in_light", "mug", "desklamp")),
    ],
)
def test_forms(sentence: str, goal: Goal) -> None:
    assert parse_goal(sentence) == goal


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "Your task is to: ",
        "Put the mug on the desk",
        "Move a clean mug to the coffee machine.",
        "put a hot slice of apple in fridge.",
        "put two sliced apple in fridge.",
        "put a pan of apple in fridge.",
        "put a mug in the coffee machine.",
        "please put a mug in desk.",
    ],
)
def test_what_it_cannot_read_is_no_goal(sentence: str) -> None:
    assert parse_goal(sentence) is None


def test_what_a_goal_needs() -> None:
    heat, two, look = (Goal(TASK_TYPES[number], "mug", "desk") for number in (3, 5, 1))
    assert (heat.treatment, heat.count, heat.lamp) == (("heat", "microwave"), 1, False)
    assert (two.treatment, two.count, two.lamp) == (None, 2, False)
    assert (look.treatment, look.count, look.lamp) == (None, 1, True)
