"""Every objective steers a real campaign, and a confirmation isn't begun that the budget can't complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envharness_core import campaign
from envharness_core.campaigns.summary import rate_band
from envharness_core.config import make_config
from envharness_core.jsondata import JsonObject
from envharness_core.store import Store

OBJECTIVES: dict[str, JsonObject] = {
    "sequential": {"use": "success_band"},
    "fixed": {"use": "success_band", "gate": "fixed", "confirm_rollouts": 0},
    "step_band": {"use": "step_band", "low": 3, "high": 12},
    "weakness": {"use": "weakness", "sentence": "it never plans ahead"},
    "autonomous": {"use": "autonomous"},
    "red_team": {"use": "red_team"},
}


def config(objective: JsonObject, **changes: Any) -> JsonObject:
    return {
        "seed": 7,
        "bridge": "toy24",
        "policy": {"use": "solver", "skill": 0.7},
        "tasks": {"limit": 6},
        "limits": {"steps": 20},
        "objective": objective,
        "designer": {
            "use": "scripted",
            "candidates": [
                *([{"use": "budget", "steps": steps}] for steps in (12, 8, 6, 4, 3)),
                *([{"use": "faults", "rate": 0.5}, {"use": "budget", "steps": steps}] for steps in (4, 3)),
            ],
        },
        "campaign": {"attempts": 7},
        "executor": "inline",
        **changes,
    }


def played(objective: JsonObject, folder: Path, **changes: Any) -> tuple[JsonObject, list[Any]]:
    summary = campaign(config(objective, **changes), folder)
    with Store.open(folder) as store:
        return summary, list(store.results())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_objective_steers_a_campaign(name: str, tmp_path: Path) -> None:
    summary, results = played(OBJECTIVES[name], tmp_path / "run")
    assert summary["faults"] == 0
    assert summary["accepted"], "some candidate is what was asked for"
    for result in results:
        for attempt in result["attempts"]:
            seen = attempt["validation"]
            assert (
                attempt["rejected"]
                or f"{seen['successes']} of {seen['graded']}" in attempt["reason"]
                or (name == "step_band")
            )


def test_a_fixed_gate_spends_at_most_k_rollouts_on_a_candidate(tmp_path: Path) -> None:
    _, results = played(OBJECTIVES["fixed"], tmp_path / "run")
    spent = [attempt["validation"]["graded"] for result in results for attempt in result["attempts"]]
    assert spent
    assert set(spent) <= {4, 5}


def test_a_band_of_steps_is_no_band_of_rates() -> None:
    assert rate_band(make_config(config(OBJECTIVES["step_band"]))) is None
    assert rate_band(make_config(config({"use": "success_band", "low": 0.2, "high": 1.0}))) == (0.2, 1.0)


def test_a_confirmation_that_the_budget_cannot_complete_is_not_begun(tmp_path: Path) -> None:
    objective: JsonObject = {"use": "success_band", "low": 0.0, "high": 1.0, "confirm_rollouts": 10}
    _, results = played(objective, tmp_path / "run", campaign={"budget": 12}, tasks={"limit": 1})
    (attempt,) = [attempt for attempt in results[0]["attempts"] if attempt["validation"]["graded"]][:1]
    assert attempt["confirmation"] is None
    assert attempt["rejected"].startswith("the budget allows no confirmation: ")
