"""A whole campaign whose designer is the model designer on canned answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, campaign
from envharness_core.store import Store

BROKEN = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        oops"
CANDIDATES = (
    [{"use": "rules", "source": BROKEN}],
    [{"use": "core/budget", "steps": 1}],
    [{"use": "core/faults", "rate": 0.3, "streak": 3}, {"use": "core/budget", "steps": 8}],
    None,
)


def run(folder: Path, *candidates: Any, **changes: Any) -> tuple[Any, list[Any]]:
    config: Any = {
        "bridge": "toy24",
        "policy": {"use": "solver", "skill": 0.8},
        "tasks": {"limit": 3},
        "designer": {"use": "canned", "candidates": [*candidates]},
        "executor": "inline",
        "plugins": {"canned": "canned_designer"},
        **changes,
    }
    summary = campaign(config, folder, plugins=Plugins({"canned": "canned_designer"}))
    with Store.open(folder) as store:
        return summary, sorted(store.results(), key=lambda result: str(result["task"]))


def test_a_campaign_tries_what_the_model_proposes_and_tells_it_what_came_of_it(tmp_path: Path) -> None:
    summary, results = run(tmp_path / "run", *CANDIDATES)
    assert summary["tasks"] == 3
    asked = 3 + summary["candidates"]["proposed"] + 3  # a diagnosis each, the candidates, and giving up
    assert summary["usage"]["designer"]["calls"] == asked
    assert summary["candidates"]["proposed"] >= 3
    assert summary["candidates"]["evaluated"] >= 1
    for result in results:
        assert result["diagnosis"]["flaw"] == "It multiplies without looking ahead."
        first = result["attempts"][0]
        assert first["rejected"].startswith("source (compile, line 2)")
        assert first["rationale"].startswith("It strikes the flaw.")


def test_a_review_keeps_out_what_the_gate_would_accept(tmp_path: Path) -> None:
    tight = [[{"use": "core/budget", "steps": steps}] for steps in (4, 6)]
    accepted, _ = run(tmp_path / "gate", *tight, None)
    strict: Any = {"use": "canned", "candidates": [*tight, None], "word": "reject"}
    strict["designer"] = {"model": "canned/model", "review": True}
    reviewed, results = run(tmp_path / "review", designer=strict)
    assert (accepted["accepted"], reviewed["accepted"]) == (1, 0)
    assert any(
        attempt["decision"] == "reject" and attempt["validation"]["graded"]
        for attempt in results[0]["attempts"]
    )


def test_the_same_campaign_twice_is_the_same(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a", *CANDIDATES), run(tmp_path / "b", *CANDIDATES)
    assert first[1] == second[1]


@pytest.mark.parametrize("candidates", [("REJECT!!",), ([],), ([{"use": "no_such_layer"}],)])
def test_answers_that_cant_be_used_are_never_accepted(tmp_path: Path, candidates: tuple[Any, ...]) -> None:
    summary, results = run(tmp_path / "run", *candidates)
    assert summary["candidates"]["evaluated"] == 0
    for result in results:
        assert result["status"] == "abandoned"
        assert all("empty" in attempt["rejected"] for attempt in result["attempts"])
        assert all("no candidate from" in attempt["rationale"] for attempt in result["attempts"])
