"""Plugins that cheat, leave or break: none manufactures a success, none ends the program, each is named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envharness_core import ComponentSpec, Plugins, campaign, rollout, stack
from envharness_core.checkpoint import load, save
from envharness_core.contract import check_layer
from envharness_core.errors import ExecutorError, LayerError
from envharness_core.jsondata import JsonObject
from envharness_core.store import FILE, Store

PLUGIN = '''
import sys

from attrs import frozen

from envharness_core import (
    Action, Candidate, Component, ComponentSpec, Decision, Designer, Diagnosis, Executor, Judgement, Layer, Objective,
    Policy, Reply, hookimpl,
)
from envharness_core.player import Player


class OtherTask(Layer):
    """Plays an easy task instead."""
    def reset(self, seed, options):
        return super().reset(seed, {**options, "task": "1-2-3-4"})


class Again(Layer):
    """Starts over within an episode."""
    def step(self, action):
        self.inner.reset(self.seed, self.options)
        return self.inner.step(action)

    def reset(self, seed, options):
        self.seed, self.options = seed, options
        return super().reset(seed, options)


class Keeps(Layer):
    """Doesn't pass a second reset on: shows yesterday's world."""
    first = None

    def reset(self, seed, options):
        if self.first is None:
            type(self).first = super().reset(seed, options)
        return self.first


class Leaves(Layer):
    def step(self, action):
        sys.exit(0)


class Says(Policy):
    def start(self, instruction, tools, seed, skills=()):
        pass

    def act(self, observation):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        match self.config.how:
            case "surrogate":
                raise ValueError("bad \\ud800 error")
            case "deep":
                return Reply((Action("combine", {"i": deep, "j": 1, "op": "+"}), Action("stop")))
            case _:
                return Reply((Action("combine", {"i": 10**5000, "j": 1, "op": "+"}), Action("stop")))


class Quits(Policy):
    def start(self, instruction, tools, seed, skills=()):
        pass

    def act(self, observation):
        raise SystemExit(0)


@frozen
class Where:
    breaks: str = "propose"
    how: str = "raise"


class Broken(Designer):
    def _at(self, place, answer):
        if self.config.breaks != place:
            return answer
        if self.config.how == "raise":
            raise ZeroDivisionError("the designer broke")
        return "nonsense"

    def diagnose(self, evidence):
        return self._at("diagnose", Diagnosis("none", "none", "harden"))

    def propose(self, evidence, diagnosis, history):
        return self._at("propose", Candidate((ComponentSpec("faults"),)))

    def review(self, evidence, diagnosis, history, attempt):
        return self._at("review", Decision.MORE)


class Careless(Designer):
    def diagnose(self, evidence):
        return Diagnosis("none", "none", "harden")

    def propose(self, evidence, diagnosis, history):
        if len(history) == 2:
            return None
        return {
            "short": Candidate((ComponentSpec("faults", {"rate": 0.3}),) if not history else
                               (ComponentSpec("core/faults", {"rate": 0.3}),)),
            "none": Candidate(None),
            "text": Candidate("budget"),
            "set": Candidate((ComponentSpec("faults", {"rate": {1}}),)),
            "nameless": Candidate((ComponentSpec(None, {}),)),
            "surrogate": Candidate((ComponentSpec("faults", {"text": "\\ud800"}),)),
            "reason": Candidate((ComponentSpec("faults"),), rationale="\\ud800"),
        }[self.config.how]


class Odd(Objective):
    summary = "odd"

    def judge(self, baseline, attempt):
        match self.config.how:
            case "raise":
                raise ZeroDivisionError("the objective broke")
            case "at once":
                return Judgement(Decision.ACCEPT, "leave", 1.0, "why not")
            case "nothing":
                return Judgement(Decision.MORE, "leave", 0.0, "more", rollouts=0)
            case "much":
                return Judgement(Decision.MORE, "leave", 0.0, "more", rollouts=10**9)
            case _:
                return "nonsense"


class Loses(Executor):
    def run(self, jobs, plugins):
        with Player(plugins) as player:
            for number, job in enumerate(jobs):
                match self.config.how:
                    case "lose" if number == 3:
                        return
                    case "raise" if number == 3:
                        raise OSError("the cluster is gone")
                    case "garbage" if number == 3:
                        yield "garbage"
                    case "twice":
                        yield player.play(job)
                yield player.play(job)


@hookimpl
def envharness_executors():
    yield Component("loses", Loses, Where)


@hookimpl
def envharness_layers():
    yield Component("other_task", OtherTask)
    yield Component("again", Again)
    yield Component("keeps", Keeps)
    yield Component("leaves", Leaves, summary="[/red] not markup [bold]")


@hookimpl
def envharness_policies():
    yield Component("quits", Quits)
    yield Component("says", Says, Where)


@hookimpl
def envharness_designers():
    yield Component("broken", Broken, Where)
    yield Component("careless", Careless, Where)


@hookimpl
def envharness_objectives():
    yield Component("odd", Odd, Where)
'''


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    (tmp_path / "hostile_plugin_of_a_test.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    return Plugins({"hostile": "hostile_plugin_of_a_test"})


def run(tmp_path: Path, plugins: Plugins, **changes: Any) -> tuple[JsonObject, list[Any]]:
    config: Any = {
        "bridge": "toy24",
        "policy": "solver",
        "tasks": {"limit": 1},
        "designer": {"use": "scripted", "candidates": [[{"use": "faults"}]]},
        "executor": "inline",
        **changes,
    }
    summary = campaign(config, tmp_path / "run", plugins=plugins)
    with Store.open(tmp_path / "run") as store:
        return summary, list(store.results())


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("hostile/other_task", "a layer may change how a task is played, not which"),
        ("hostile/again", "a layer reset Toy24 within an episode; only the runner begins one"),
        ("hostile/leaves", "SystemExit: 0"),
    ],
)
def test_a_layer_that_cheats_or_leaves_is_a_rules_error_and_found_by_the_checks(
    plugins: Plugins, layer: str, says: str
) -> None:
    (played,) = rollout("toy24", "3-3-8-8", "solver", [layer], plugins=plugins)
    assert (played.episode.outcome, played.episode.verdict) == ("rules_error", None)
    assert says in played.episode.error
    assert not all(result.passed for result in check_layer(plugins, ComponentSpec(layer)))


def test_a_layer_that_keeps_a_reset_to_itself_is_a_rules_error(plugins: Plugins) -> None:
    _, second = rollout("toy24", "3-3-8-8", "solver", ["hostile/keeps"], count=2, plugins=plugins)
    assert "didn't pass the reset on" in second.episode.error
    assert not all(result.passed for result in check_layer(plugins, ComponentSpec("hostile/keeps")))


def test_a_loaded_stack_cannot_be_begun_anew_by_a_layer(plugins: Plugins) -> None:
    with stack("toy24", ["hostile/again"], plugins=plugins) as env:
        env.reset(0, {"task": "1-2-3-4"})
        checkpoint = save(env)
    with (
        load(plugins, checkpoint) as env,
        pytest.raises(LayerError, match="within an episode"),
    ):
        env.chain.layers[0][1].inner.reset(0, {"task": "1-2-3-4"})


@pytest.mark.parametrize("how", ["deep", "huge"])
def test_arguments_that_nobody_can_write_down_are_malformed_calls(plugins: Plugins, how: str) -> None:
    (played,) = rollout("toy24", "1-2-3-4", {"use": "hostile/says", "how": how}, plugins=plugins)
    assert (played.episode.outcome, played.episode.steps) == ("completed", 2)
    assert "malformed" in played.trajectory.steps[0].response.info


def test_an_error_that_cannot_be_encoded_is_kept_all_the_same(tmp_path: Path, plugins: Plugins) -> None:
    summary, _ = run(tmp_path, plugins, policy={"use": "hostile/says", "how": "surrogate"})
    assert summary["episodes"] == {"graded": 0, "excluded": {"policy_error": 5}}


@pytest.mark.parametrize("how", ["none", "text", "set", "nameless", "surrogate", "reason"])
def test_a_candidate_that_is_no_data_costs_its_task(tmp_path: Path, plugins: Plugins, how: str) -> None:
    summary, results = run(tmp_path, plugins, designer={"use": "hostile/careless", "how": how})
    assert summary["faults"] == 1
    assert results[0]["reason"].startswith("Careless.propose must return layers as data: ")


def test_short_and_full_names_are_the_same_candidate(tmp_path: Path, plugins: Plugins) -> None:
    _, results = run(
        tmp_path, plugins, designer={"use": "hostile/careless", "how": "short"},
        objective={"use": "success_band", "low": 0.01, "high": 0.02},
    )  # fmt: skip
    first, second = results[0]["attempts"]
    assert first["layers"] == second["layers"] == [{"use": "core/faults", "rate": 0.3}]
    assert second["rejected"] == "the candidate equals an earlier one"


def test_a_policy_that_leaves_is_a_policy_error(plugins: Plugins) -> None:
    (played,) = rollout("toy24", "3-3-8-8", "hostile/quits", plugins=plugins)
    assert (played.episode.outcome, played.episode.error.split(" [")[0]) == ("policy_error", "SystemExit: 0")


@pytest.mark.parametrize("place", ["diagnose", "propose", "review"])
@pytest.mark.parametrize(("how", "says"), [("raise", "ZeroDivisionError"), ("answer", "got 'nonsense'")])
def test_a_designer_that_breaks_costs_its_task_and_is_named(
    tmp_path: Path, plugins: Plugins, place: str, how: str, says: str
) -> None:
    designer = {"use": "hostile/broken", "breaks": place, "how": how}
    patient = {"use": "success_band", "reject": 0.0}  # so that there is something to review
    summary, results = run(tmp_path, plugins, designer=designer, objective=patient)
    assert (summary["faults"], results[0]["status"]) == (1, "abandoned")
    assert results[0]["reason"].startswith(f"Broken.{place} ")
    assert says in results[0]["reason"]
    assert results[0]["baseline"]["graded"] == 5


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("raise", "Odd.confirm raised ZeroDivisionError"),
        ("at once", "Odd.judge accepts without a rollout"),
        ("nothing", "Odd.judge asks for 0 more rollouts"),
        ("much", "Odd.judge asks for 1000000000 more rollouts"),
        ("answer", "Odd.confirm must return Judgement, got 'nonsense'"),
    ],
)
def test_an_objective_that_breaks_costs_its_task_and_is_named(
    tmp_path: Path, plugins: Plugins, how: str, says: str
) -> None:
    summary, results = run(tmp_path, plugins, objective={"use": "hostile/odd", "how": how})
    assert (summary["faults"], results[0]["status"]) == (1, "abandoned")
    assert says in results[0]["reason"]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("lose", "executor Loses ended with 2 episodes not played; run again to go on"),
        ("raise", "executor Loses raised OSError: the cluster is gone"),
        ("garbage", "executor Loses yielded what it wasn't given to play: 'garbage'"),
        ("twice", "executor Loses yielded what it wasn't given to play: Record"),
    ],
)
def test_an_executor_that_breaks_leaves_a_run_that_goes_on(
    tmp_path: Path, plugins: Plugins, how: str, says: str
) -> None:
    with pytest.raises(ExecutorError, match=re.escape(says)):
        run(tmp_path, plugins, executor={"use": "hostile/loses", "how": how})
    with Store.open(tmp_path / "run") as store:
        assert store.meta("summary") is None
    summary, _ = run(tmp_path, plugins)
    assert summary["tasks"] == 1


def test_a_complete_run_answers_where_nothing_may_be_written(tmp_path: Path, plugins: Plugins) -> None:
    summary, _ = run(tmp_path, plugins)
    (tmp_path / "run" / FILE).chmod(0o444)
    (tmp_path / "run").chmod(0o555)
    try:
        assert run(tmp_path, plugins)[0] == summary
    finally:
        (tmp_path / "run").chmod(0o755)


def test_the_draft_of_a_killed_start_is_in_nobodys_way(tmp_path: Path, plugins: Plugins) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".{FILE}.new").write_text("half of a store")
    summary, _ = run(tmp_path, plugins)
    assert summary["tasks"] == 1


def envharness(*args: Any, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envharness_core.cli.main", *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **env}
    )


def test_the_command_line_survives_what_plugins_say_and_do(tmp_path: Path, plugins: Plugins) -> None:
    module = "hostile=hostile_plugin_of_a_test"
    where = {"PYTHONPATH": str(tmp_path)}
    listed = envharness("plugins", "--plugin", module, **where)
    assert "[/red] not markup [bold]" in listed.stdout
    (tmp_path / "leaving_plugin_of_a_test.py").write_text("raise SystemExit(3)")
    left = envharness("plugins", "--json", "--plugin", "gone=leaving_plugin_of_a_test", **where)
    assert left.returncode == 0
    rows = {row["name"]: row for row in json.loads(left.stdout)}
    assert "can't be imported: SystemExit: 3" in rows["gone"]["error"]
    checked = envharness("check", "hostile/leaves", "--plugin", module, **where)
    assert checked.returncode == 1
    assert "SystemExit: 0" in checked.stdout
