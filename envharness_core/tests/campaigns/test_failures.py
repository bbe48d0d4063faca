"""Infrastructure trouble is excluded and counted, and never becomes a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envharness_core import campaign
from envharness_core.errors import BridgeError
from envharness_core.jsondata import JsonObject
from envharness_core.store import Store

PLUGIN = """
import os
import time

from attrs import frozen

from envharness_core import Action, Component, Layer, Policy, Reply, Rules, hookimpl
from envharness_core.testing import Counter


@frozen
class Config:
    how: str = "raise"
    every: int = 1


class Bad(Policy):
    def __init__(self, config):
        self.config = config

    def start(self, instruction, tools, seed, skills=()):
        self.bad = seed % self.config.every == 0

    def act(self, observation):
        if self.bad and self.config.how == "raise":
            raise RuntimeError("the policy broke")
        if self.bad and self.config.how == "die":
            os._exit(7)
        if self.bad and self.config.how == "slow":
            time.sleep(0.05)
            return Reply((Action("undo"),))
        if self.bad and self.config.how == "print":
            print("garbage on stdout")
        return Reply((Action("stop"),))


class Twins(Counter):
    def list_tasks(self, split, limit=None):
        return super().list_tasks(split) * 2


class Forgetful(Rules):
    def modify_transition(self, action, response, env_state):
        response.info["seen"] = True


class Crashing(Layer):
    def step(self, action):
        raise ZeroDivisionError("the layer broke")


@hookimpl
def envharness_policies():
    yield Component(name="bad", factory=Bad, config=Config)


@hookimpl
def envharness_bridges():
    yield Component(name="twins", factory=Twins)


@hookimpl
def envharness_layers():
    yield Component(name="forgetful", factory=Forgetful)
    yield Component(name="crashing", factory=Crashing)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "bad_plugin_of_a_test.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    return "bad_plugin_of_a_test"


def run(folder: Path, module: str, **changes: Any) -> tuple[JsonObject, list[Any]]:
    config: Any = {
        "bridge": "toy24",
        "policy": {"use": "bad/bad"},
        "tasks": {"limit": 2},
        "designer": {"use": "scripted", "candidates": [[{"use": "faults"}]]},
        "executor": "inline",
        "plugins": {"bad": module},
        **changes,
    }
    summary = campaign(config, folder)
    with Store.open(folder) as store:
        return summary, list(store.results())


def test_a_policy_that_always_raises_gives_no_judgement(tmp_path: Path, module: str) -> None:
    summary, results = run(tmp_path / "run", module)
    assert summary["episodes"] == {"graded": 0, "excluded": {"policy_error": 10}}
    assert summary["abandoned"] == 2
    assert (
        "no baseline: 0 graded, excluded: 5 policy_error; RuntimeError: the policy broke"
        in results[0]["reason"]
    )
    assert summary["success_rate"] == {"before": None, "after": None}


def test_failures_now_and_then_are_made_up_for(tmp_path: Path, module: str) -> None:
    policy = {"use": "bad/bad", "how": "raise", "every": 7}
    summary, results = run(tmp_path / "run", module, policy=policy, campaign={"rerolls": 10})
    assert summary["episodes"]["excluded"].keys() == {"policy_error"}  # type: ignore[index, call-overload, union-attr]
    for result in results:
        assert result["baseline"] == {"successes": 0, "graded": 5, "played": 5}


@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        (
            "bad/forgetful",
            "modify_transition (contract): expected a StepResponse, got NoneType (is a return missing?)",
        ),
        ("bad/crashing", "ZeroDivisionError: the layer broke"),
    ],
)
def test_a_layer_that_breaks_is_rejected_by_the_smoke_replay(
    tmp_path: Path, module: str, layer: str, problem: str
) -> None:
    summary, results = run(
        tmp_path / "run",
        module,
        policy={"use": "solver"},
        designer={"use": "scripted", "candidates": [[{"use": layer}]]},
    )
    attempt = results[0]["attempts"][0]
    assert problem in attempt["rejected"]
    assert attempt["validation"]["played"] == 0
    assert summary["rollouts"]["smoke"] == 2  # type: ignore[index, call-overload]


def test_a_worker_that_dies_costs_one_more_try_and_then_an_env_error(tmp_path: Path, module: str) -> None:
    summary, results = run(
        tmp_path / "run",
        module,
        policy={"use": "bad/bad", "how": "die"},
        tasks={"limit": 1},
        campaign={"rollouts": 2, "rerolls": 0},
        executor={"use": "local", "workers": 1},
    )
    assert summary["episodes"] == {"graded": 0, "excluded": {"env_error": 2}}
    assert "the worker died (exit code 7), 2 times" in results[0]["reason"]


def test_garbage_on_stdout_harms_nobody(tmp_path: Path, module: str) -> None:
    summary, _ = run(
        tmp_path / "run",
        module,
        policy={"use": "bad/bad", "how": "print"},
        executor={"use": "local", "workers": 1},
    )
    assert summary["episodes"]["excluded"] == {}  # type: ignore[index, call-overload]


def test_a_timeout_without_a_verdict_is_excluded(tmp_path: Path, module: str) -> None:
    summary, _ = run(
        tmp_path / "run",
        module,
        policy={"use": "bad/bad", "how": "slow"},
        tasks={"limit": 1},
        limits={"wall_seconds": 0.01},
        campaign={"rollouts": 2, "rerolls": 0, "backoff": 0.0},
    )
    assert summary["episodes"] == {"graded": 0, "excluded": {"timeout": 2}}


def test_a_bridge_that_lists_a_task_twice_is_named(tmp_path: Path, module: str) -> None:
    with pytest.raises(BridgeError, match="Twins lists the task 'three' twice"):
        run(tmp_path / "run", module, bridge={"use": "bad/twins"})
    assert not (tmp_path / "run").exists()
