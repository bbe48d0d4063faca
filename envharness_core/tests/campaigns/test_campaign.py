"""A whole campaign over real puzzles: what is found doesn't depend on where, or in how many sessions, it was played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import envharness_core
from envharness_core import campaign
from envharness_core.campaigns.holding import Progress
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.plugins import Plugins
from envharness_core.store import Store
from envharness_core.verify import verify_run


def config(**changes: Any) -> JsonObject:
    return {
        "seed": 3,
        "bridge": {"use": "toy24"},
        "policy": {"use": "solver", "skill": 0.7},
        "tasks": {"limit": 4},
        "limits": {"steps": 20},
        "objective": {"use": "success_band"},
        "designer": {
            "use": "scripted",
            "candidates": [[{"use": "budget", "steps": 6}], [{"use": "faults", "rate": 0.5}]],
        },
        "executor": {"use": "inline"},
        "campaign": {"budget": 50, "wave": 2},
        "report": {
            "rollouts": 6,
            "weaker": "solver",
            "stronger": "solver",
            "sensitivity": 3,
            "layer_seeds": 2,
        },
        **changes,
    }


def facts(summary: JsonObject) -> JsonObject:
    return {key: value for key, value in summary.items() if key != "seconds"}


def test_workers_and_sessions_change_no_result(tmp_path: Path) -> None:
    whole = campaign(config(), tmp_path / "inline")
    local = campaign(config(executor={"use": "local", "workers": 2}), tmp_path / "local")
    assert facts(local) == facts(whole)

    class KilledError(Exception):
        pass

    seen: list[int] = []

    def kill(progress: Progress) -> None:
        seen.append(1)
        if len(seen) % 37 == 0:
            raise KilledError

    for _ in range(100):
        try:
            pieces = campaign(config(), tmp_path / "killed", listener=kill)
            break
        except KilledError:
            continue
    assert len(seen) > 37
    assert facts(pieces) == facts(whole)
    rollouts: Any = whole["rollouts"]
    assert len(seen) == sum(rollouts.values()), "no episode was played twice"
    with Store.open(tmp_path / "killed") as one, Store.open(tmp_path / "inline") as other:
        assert one.results() == other.results()
        assert [e.key for e in one.episodes()] == [e.key for e in other.episodes()]


def test_a_second_run_plays_nothing_and_answers_the_same(tmp_path: Path) -> None:
    first = campaign(config(), tmp_path / "run")
    heard: list[Progress] = []
    assert campaign(config(), tmp_path / "run", listener=heard.append) == first
    assert heard == []


def test_every_verdict_is_borne_out_by_its_events(tmp_path: Path) -> None:
    summary = campaign(config(), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        found = verify_run(store, Plugins())
    assert found.episodes == found.agreed == sum(summary["rollouts"].values())  # type: ignore[union-attr, arg-type]
    assert found.disagreed == 0


def test_verify_finds_a_forged_success(tmp_path: Path) -> None:
    campaign(config(policy={"use": "random"}), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        store._connection.execute("UPDATE episodes SET success = 1, score = 1.0 WHERE success = 0")
        found = verify_run(store, Plugins())
    assert found.disagreed > 0
    assert found.disagreements[0].detail == "stored True 1.0, replayed False 0.0"


def test_verify_finds_a_damaged_trajectory(tmp_path: Path) -> None:
    campaign(config(), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        key = next(store.episodes()).key
        store._connection.execute("UPDATE episodes SET trajectory = x'00' WHERE key = ?", (key,))
        found = verify_run(store, Plugins())
    assert [item.key for item in found.disagreements] == [key]
    assert "damaged" in found.disagreements[0].detail


def test_a_folder_of_another_config_is_refused_with_the_difference(tmp_path: Path) -> None:
    campaign(config(), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"seed: 3 \(now 4\)"):
        campaign(config(seed=4), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"policy\.skill: 0\.7 \(now 0\.8\)"):
        campaign(config(policy={"use": "solver", "skill": 0.8}), tmp_path / "run")


def test_the_budget_is_never_exceeded(tmp_path: Path) -> None:
    summary = campaign(config(campaign={"budget": 20}), tmp_path / "run")
    spent: Any = summary["design_rollouts_per_task"]
    assert spent["max"] <= 20


def test_streams_share_no_seed(tmp_path: Path) -> None:
    campaign(config(), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        rows = store._connection.execute(
            "SELECT task, policy_seed, count(*) FROM episodes WHERE stream NOT LIKE 'smoke%' GROUP BY 1, 2"
        ).fetchall()
    assert {count for _, _, count in rows} == {1}


def test_noop_keeps_what_is_in_order_and_changes_nothing(tmp_path: Path) -> None:
    summary = campaign(config(designer={"use": "noop"}, tasks={"limit": 8}), tmp_path / "run")
    assert summary["accepted"] == summary["kept"]
    with Store.open(tmp_path / "run") as store:
        results = store.results()
    assert all(result["layers"] == [] for result in results)
    assert {result["status"] for result in results} <= {"kept", "abandoned"}


PROPOSER = """
from attrs import frozen

from envharness_core import Candidate, Component, ComponentSpec, Designer, Diagnosis, hookimpl
from envharness_core.jsondata import JsonObject


@frozen
class Config:
    layers: tuple[ComponentSpec, ...] = ()


class Proposer(Designer):
    def __init__(self, config):
        self.config = config

    def diagnose(self, evidence):
        return Diagnosis("none", "none", "harden")

    def propose(self, evidence, diagnosis, history):
        return None if history else Candidate(self.config.layers)


@hookimpl
def envharness_designers():
    yield Component(name="proposer", factory=Proposer, config=Config)
"""

BAD: list[tuple[list[Any], str]] = [
    ([], "the candidate is empty"),
    ([{"use": "falts"}], "did you mean 'faults'"),
    ([{"use": "faults", "rate": 3}], "'rate' must be <= 1"),
    (
        [{"use": "setup", "actions": [{"name": "jump"}]}],
        "setup action 0, jump(): malformed: unknown tool 'jump'",
    ),
    ([{"use": "setup", "actions": [{"name": "stop"}]}], "ends the episode"),
    ([{"use": "closed", "tool": "und"}], "closed.tool: unknown tool 'und' (did you mean 'undo'?)"),
    (
        [{"use": "closed", "tool": tool} for tool in ("combine", "undo", "stop")],
        "it blocks every action of a baseline rollout",
    ),
    (
        [{"use": "rules", "source": "class _Rules(Rules): pass"}],
        "(compile, line 1): _Rules defines no hook",
    ),
    ([{"use": "rules", "source": "class _Rules(Rules)"}], "source (compile, line 1): expected ':'"),
    (
        [
            {
                "use": "rules",
                "source": "def f():\n    return g()\nx = f()\nclass _Rules(Rules): filter_action = f",
            }
        ],
        "name 'g' is not defined",
    ),
    (
        [
            {
                "use": "rules",
                "source": "class _Rules(Rules):\n def filter_action(self, a, s): return a.kwargs['no']",
            }
        ],
        "a layer broke: filter_action (raised, line 2): KeyError: 'no' [line 2, in filter_action: def filter_action",
    ),
]


@pytest.mark.parametrize(("layers", "problem"), BAD)
def test_a_bad_candidate_costs_no_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: list[Any], problem: str
) -> None:
    (tmp_path / "proposer_of_a_test.py").write_text(PROPOSER)
    monkeypatch.syspath_prepend(tmp_path)
    changes: Any = {
        "designer": {"use": "proposer/proposer", "layers": layers},
        "plugins": {"proposer": "proposer_of_a_test"},
        "tasks": {"limit": 1},
        "report": {},
    }
    summary = campaign(config(**changes), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        (result,) = store.results()
    attempt: Any = result["attempts"][0]  # type: ignore[index]
    assert problem in attempt["rejected"]
    assert attempt["validation"]["played"] == 0
    assert summary["candidates"] == {"proposed": 1, "evaluated": 0}


@pytest.mark.parametrize(
    ("layers", "problem"),
    [pair for pair in BAD if pair[0] and not any(word in pair[1] for word in ("ends", "it blocks", "broke"))],
)
def test_a_bad_candidate_in_the_config_is_found_before_anything_is_written(
    tmp_path: Path, layers: list[Any], problem: str
) -> None:
    designer = {"use": "scripted", "candidates": [layers]}
    with pytest.raises(ConfigError) as caught:
        campaign(config(designer=designer), tmp_path / "run")
    assert str(caught.value).startswith("designer.candidates[0]: ")
    assert problem in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_an_equal_candidate_is_not_evaluated_again(tmp_path: Path) -> None:
    same = [{"use": "closed", "tool": "stop"}]
    designer = {"use": "scripted", "candidates": [same, same]}
    campaign(config(designer=designer, tasks={"limit": 1}, report={}), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        (result,) = store.results()
    attempts: Any = result["attempts"]
    if len(attempts) == 2:
        assert attempts[1]["rejected"] == "the candidate equals an earlier one"
    else:
        assert attempts[0]["decision"] == "accept"


def test_rounds_build_on_the_accepted_stack(tmp_path: Path) -> None:
    summary = campaign(
        config(
            policy={"use": "random"},
            objective={"use": "success_band", "low": 0.0, "high": 0.5, "confirm_rollouts": 2},
            campaign={"rounds": 2},
            tasks={"limit": 1},
            report={},
        ),
        tmp_path / "run",
    )
    assert summary["accepted"] == 1
    with Store.open(tmp_path / "run") as store:
        (result,) = store.results()
    layers: Any = result["layers"]
    assert [layer["use"] for layer in layers] == ["core/budget", "core/budget"]


def test_progress_foresees_the_report(tmp_path: Path) -> None:
    heard: list[Progress] = []
    summary = campaign(config(), tmp_path / "run", listener=heard.append)
    rollouts: Any = summary["rollouts"]
    total = sum(rollouts.values())
    assert [item.episodes for item in heard] == list(range(1, total + 1))
    assert heard[-1].designed == heard[-1].tasks == 4
    designed = [item for item in heard if item.designed == 4]
    assert {item.expected for item in designed} == {total}


def test_the_versions_of_all_plugins_are_recorded(tmp_path: Path) -> None:
    campaign(config(plugins={"kit": "envharness_core.testing.plugin"}), tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        versions: Any = store.meta("versions")
    assert versions["core"] == f"envharness-core {envharness_core.__version__}"
    assert versions["kit"] == "module envharness_core.testing.plugin"
