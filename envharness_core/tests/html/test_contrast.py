"""What differs between two texts is marked, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envharness_core.page.contrast import contrast

TEXTS = st.text(st.sampled_from("ab \n<>&\u2028"), max_size=40)


@given(TEXTS, TEXTS)
def test_the_runs_of_a_side_are_its_text_and_what_isnt_marked_is_common(left: str, right: str) -> None:
    one, two = contrast(left, right)
    assert "".join(text for text, _ in one) == left
    assert "".join(text for text, _ in two) == right
    assert [text for text, marked in one if not marked and text] == [
        text for text, marked in two if not marked and text
    ]


@given(TEXTS)
def test_equal_texts_are_not_marked(text: str) -> None:
    assert contrast(text, text) == ([(text, False)], [(text, False)])


def test_what_a_layer_adds_is_marked_alone() -> None:
    left, right = contrast("Target: 24", "It failed.\n\nTarget: 24")
    assert left == [("Target: 24", False)]
    assert right == [("It failed.\n\n", True), ("Target: 24", False)]


def test_long_texts_are_compared_by_lines_and_the_longest_not_at_all() -> None:
    lines = [f"line {number} of many words in a row\n" for number in range(1000)]
    changed = [*lines[:500], "a new one\n", *lines[500:]]
    assert contrast("".join(lines), "".join(changed))[1][1] == ("a new one\n", True)
    huge = "a\n" * 5000
    assert contrast(huge, huge + "b") == ([(huge, True)], [(huge + "b", True)])
