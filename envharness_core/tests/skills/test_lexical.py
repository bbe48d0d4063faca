"""Words in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.skills.lexical import Index, alike, negations, stem, terms, wording

TEXTS = st.lists(
    st.text(st.sampled_from("abcde xyz's\u2019.\n\u4e2d"), max_size=40) | st.text(max_size=20), max_size=6
)


@given(TEXTS, st.text(max_size=30))
def test_scores_and_similarities_are_shares(texts: list[str], query: str) -> None:
    index = Index(texts)
    assert all(0.0 <= score <= 1.0 for score in index.scores(query))
    for one in range(len(texts)):
        for other in range(len(texts)):
            assert 0.0 <= index.similarity(one, other) <= 1.0
            assert index.similarity(one, other) == pytest.approx(index.similarity(other, one))


@given(TEXTS)
def test_a_text_is_most_like_itself(texts: list[str]) -> None:
    index = Index(texts)
    for number, text in enumerate(texts):
        scores = index.scores(text)
        assert scores[number] == pytest.approx(1.0 if terms(text) else 0.0)


@given(st.text(max_size=30), st.text(max_size=30))
def test_alike_is_symmetric_and_one_of_the_same(one: str, other: str) -> None:
    assert alike(wording(one), wording(one)) == 1.0
    assert 0.0 <= alike(wording(one), wording(other)) == alike(wording(other), wording(one)) <= 1.0


@pytest.mark.parametrize(
    "family",
    [
        "try tries tried trying",
        "move moves moved moving",
        "stop stops stopped stopping",
        "box boxes boxed",
        "search searches searched searching",
        "fall falls falling",
        "quick quickly",
    ],
)
def test_forms_of_a_word_share_their_stem(family: str) -> None:
    assert len(set(map(stem, family.split()))) == 1


@pytest.mark.parametrize("word", ["glass", "status", "this", "red", "ring", "bed", "is", "as", "24"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word


def test_identifiers_and_other_scripts_are_split() -> None:
    assert terms("getUserName, get_user_name") == [*terms("get user name")] * 2
    assert terms("\u6253\u5f00 box") == ["\u6253", "\u5f00", "box"]


def test_rare_words_count_more_than_common_ones_and_unknown_ones_count_against() -> None:
    index = Index(["open drawer", "open fridge", "open safe"])
    assert index.scores("open fridge")[1] > index.scores("open fridge")[0] > 0.0
    assert index.scores("open fridge")[1] > index.scores("open fridge zebra crossing")[1] > 0.0
    assert index.scores("") == index.scores("of the") == [0.0] * 3


def test_one_number_is_as_good_as_another_and_the_opposite_is_told() -> None:
    assert wording("wait 3 times") == wording("wait 17 times")
    assert negations("Don't undo.") != negations("Do undo.")
    assert negations("Never undo") == negations("never UNDO")
