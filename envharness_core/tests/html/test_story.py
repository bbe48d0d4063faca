"""A task's history in plain words: what was tried, why it was accepted, and how it was measured."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.page.story import Told, gate_words, layer_words, percent, rate_words


def counted(won: int, graded: int, played: int | None = None) -> dict[str, int]:
    return {"successes": won, "graded": graded, "played": graded if played is None else played}


def attempt(decision: str, layers: Any, **changes: Any) -> dict[str, Any]:
    return {
        "layers": layers,
        "rationale": "because",
        "rejected": None,
        "validation": counted(6, 12),
        "confirmation": None,
        "decision": decision,
        "reason": "the gate's reason",
        **changes,
    }


FAULTS = [{"use": "core/faults", "rate": 0.3}]
UNCHANGED = attempt("refine", [], validation=counted(9, 9), reason="too easy")
REFUSED = attempt("reject", FAULTS, validation=counted(0, 0), rejected="it can't be built", reason="")
ACCEPTED = attempt("accept", FAULTS, confirmation=counted(3, 6, 7), reason="9 of 18")


def told(status: str, attempts: list[Any], after: tuple[int, int] | None = None, **changes: Any) -> Told:
    result = {
        "task": "a",
        "status": status,
        "layers": FAULTS if status == "accepted" else [],
        "reason": "the attempts are used up",
        "baseline": counted(5, 5),
        "diagnosis": {"flaw": "too good", "evidence": "5 of 5", "direction": "harden"},
        "attempts": attempts,
        **changes,
    }
    return Told("a", status, (190, 200), after, (0.4, 0.6), result, {})


def test_an_accepted_task_says_what_was_tried_and_why_it_was_accepted() -> None:
    task = told("accepted", [UNCHANGED, REFUSED, ACCEPTED], (100, 200))
    story = " ".join(task.story())
    assert "Unchanged, the policy won 5 of 5 baseline rollouts." in story
    assert "“too good”. It set out to make the task harder." in story
    assert "didn't pass: it won 9 of 9 (the gate: “too easy”)" in story
    assert "2 designs were tried. Accepted: faults (rate = 0.3)." in story
    assert "it won 6 of 12 validation rollouts, then 3 of 6 fresh confirmation rollouts" in story
    assert "“9 of 18”" in story
    assert "won 100 of 200 (50%; 95 % interval 43% to 57%) on the accepted layers, inside the band" in story
    assert "can be wrong" not in story
    shown: Any = task.as_json()["attempts"]
    assert [item["title"] for item in shown] == ["The unchanged task", "Attempt 1", "Attempt 2"]
    assert [item["verdict"] for item in shown] == ["not accepted", "rejected", "accepted"]
    assert shown[1]["validation"] == "none: it was refused before any rollout"
    assert shown[1]["reason"] == "it can't be built"
    assert shown[2]["confirmation"] == "3 of 6 won, 1 excluded"
    assert shown[2]["streams"] == ["attempt 1", "confirm 1"]


def test_a_gate_that_was_wrong_is_said_to_be() -> None:
    story = " ".join(told("accepted", [ACCEPTED], (150, 200)).story())
    assert "outside the band 0.4 to 0.6 (the gate, which had 18 rollouts to go by, can be wrong)" in story


def test_a_task_without_layers_says_why() -> None:
    kept = " ".join(told("kept", [attempt("accept", [], reason="fits")]).story())
    assert "already is what is wanted, so it was kept. Why: it won 6 of 12 validation rollouts." in kept
    abandoned = " ".join(told("abandoned", [REFUSED]).story())
    assert (
        "1 design was tried, and none was accepted; the task was given up: the attempts are used up."
        in abandoned
    )
    nothing = told("abandoned", [], diagnosis=None, reason="no baseline: 0 graded")
    assert "0 designs were tried" in " ".join(nothing.story())
    assert nothing.as_json()["diagnosis"] == []


def test_the_gates_rule_is_said_where_it_is_the_usual_one() -> None:
    objective = {
        "use": "core/success_band",
        "low": 0.4,
        "high": 0.6,
        "accept": 0.44,
        "reject": 0.12,
        "confirm": 0.15,
    }
    words = gate_words(objective)
    assert "lies in [0.4, 0.6]" in words
    assert "At 0.44 or more" in words
    assert "at 0.15 or more" in words
    assert gate_words({**objective, "gate": "fixed"}).startswith("Its settings: success_band (low = 0.4")
    assert gate_words({"use": "core/other", "steps": 3}) == "Its settings: other (steps = 3)."


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ({"use": "core/closed", "tool": "undo"}, 'closed (tool = "undo")'),
        ({"use": "core/noise"}, "noise"),
        (
            {"use": "core/setup", "actions": [{"name": "combine", "kwargs": {"i": 0, "j": 1}}] * 3},
            "setup (3 actions)",
        ),
        ({"use": "core/rules", "source": "class MyRules: ..." * 10}, "rules (source …)"),
    ],
)
def test_a_layer_is_one_short_line(layer: Any, words: str) -> None:
    assert layer_words(layer) == words


@given(st.integers(0, 500), st.integers(0, 500))
def test_only_all_and_nothing_are_100_and_0_per_cent(won: int, lost: int) -> None:
    if won + lost:
        words = percent(won / (won + lost))
        assert (words == "100%") == (lost == 0)
        assert (words == "0%") == (won == 0)
        assert rate_words((won, won + lost)).startswith(f"{won} of {won + lost} ({words};")
