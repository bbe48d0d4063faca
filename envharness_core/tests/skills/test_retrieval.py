"""Picking the best few, and some that differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.errors import ConfigError
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.retrieval import pick
from envharness_core.skills.skill import Provenance, Skill

WORDS = st.lists(
    st.sampled_from(["undo", "stop", "drawer", "fridge", "retry", "table", "sort", "cell"]),
    min_size=1,
    max_size=4,
)
TASKS = st.sampled_from(["a", "b", "c"])
SHARES = st.sampled_from([0.0, 0.3, 0.7, 1.0])


@st.composite
def skills(draw: st.DrawFn) -> Skill:
    title, content = " ".join(draw(WORDS)), " ".join(draw(WORDS))
    linked = draw(st.lists(TASKS, max_size=1))
    keys = tuple(map(str, range(draw(st.integers(0, 3)))))
    origin = Provenance(
        draw(TASKS), draw(st.sampled_from(["original", "reshaped"])), "", keys, "me", tuple(linked)
    )
    return Skill(title, "when", content, origin)


@given(st.lists(skills(), max_size=8), WORDS, TASKS, st.integers(0, 9), SHARES, SHARES)
def test_a_skill_never_serves_a_task_that_taught_it(
    known: list[Skill], query: list[str], task: str, k: int, threshold: float, diversity: float
) -> None:
    found = SkillBank(known).retrieve(
        " ".join(query), k, exclude_task=task, threshold=threshold, diversity=diversity
    )
    assert not any(task in (match.skill.provenance.task, *match.skill.provenance.linked) for match in found)
    assert all(threshold <= match.score <= 1.0 for match in found)
    assert len(found) <= k


@given(st.lists(skills(), max_size=8), WORDS, st.integers(0, 9), SHARES)
def test_with_a_threshold_of_nothing_the_best_k_are_always_returned(
    known: list[Skill], query: list[str], k: int, diversity: float
) -> None:
    found = SkillBank(known).retrieve(" ".join(query), k, exclude_task=None, diversity=diversity)
    assert len(found) == min(k, len(known))
    scores = [match.score for match in found]
    if diversity == 0.0:
        assert scores == sorted(scores, reverse=True)
    assert not scores or scores[0] == max(scores)


def test_ties_are_broken_by_support_and_then_by_order() -> None:
    known = [
        Skill(f"skill {name}", "when", "what", Provenance("t", trajectories=keys))
        for name, keys in (("a", ("1",)), ("b", ("1", "2")), ("c", ("1", "2")))
    ]
    found = SkillBank(known).retrieve("nothing like it", 3, exclude_task=None)
    assert [match.skill.title[-1] for match in found] == ["b", "c", "a"]


def test_diversity_passes_over_the_same_advice_twice() -> None:
    scores, support = [0.9, 0.89, 0.5], [1, 1, 1]

    def similarity(one: int, other: int) -> float:
        return 1.0 if {one, other} == {0, 1} else 0.0

    assert pick(scores, support, similarity, 2) == [0, 1]
    assert pick(scores, support, similarity, 2, diversity=0.5) == [0, 2]
    assert pick(scores, support, similarity, 3, diversity=1.0) == [0, 2, 1]


def test_a_condition_is_searched_by_itself() -> None:
    known = [Skill("undo", "when", name, Provenance("t", name)) for name in ("original", "reshaped")]
    found = SkillBank(known).retrieve("undo", 5, exclude_task=None, condition="reshaped")
    assert [match.skill.content for match in found] == ["reshaped"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"k": -1}, "k"),
        ({"threshold": 1.1}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"diversity": -0.1}, "diversity"),
    ],
)
def test_a_parameter_out_of_range_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=f"^{named}: must be"):
        SkillBank().retrieve("query", **{"k": 1, "exclude_task": None, **wrong})
