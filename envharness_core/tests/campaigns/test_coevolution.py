"""Co-evolution: the skills of finished waves equip the policy that the next ones diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from paid_models import Says  # type: ignore[import-not-found]

from envharness_core import campaign
from envharness_core.campaigns.course import waves
from envharness_core.campaigns.merge import merge_runs
from envharness_core.campaigns.replay import replay_run
from envharness_core.config import make_config
from envharness_core.data import TaskSummary
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.plugins import Plugins
from envharness_core.rows import Row
from envharness_core.skills.bank import SkillBank
from envharness_core.store import Store

PLUGINS = {"paid": "paid_models"}


def config(**changes: Any) -> JsonObject:
    told: JsonObject = {
        "seed": 5,
        "bridge": "toy24",
        "policy": {"use": "paid/paid"},
        "designer": {"use": "scripted", "candidates": [[{"use": "faults", "rate": 0.3}]]},
        "objective": {
            "use": "success_band",
            "low": 0.05,
            "high": 0.95,
            "min_rollouts": 2,
            "confirm_rollouts": 2,
        },
        "tasks": {"limit": 6},
        "limits": {"steps": 12},
        "campaign": {"rollouts": 3, "attempts": 1, "wave": 2, "rounds": 2},
        "extractor": {"use": "paid/says"},
        "skills": {"coevolve": True, "rollouts": 3, "per_task": 2, "retrieve": 4},
        "report": {"rollouts": 2},
        "executor": "inline",
        "plugins": {**PLUGINS},
    }
    return {**told, **changes}


def rows(folder: Path) -> list[Row]:
    with Store.open(folder, read_only=True) as store:
        return list(store.recorded())


def told(row: Row) -> list[str]:
    return cast("list[str]", (row.design or {})["skills"])


def baselines(folder: Path, number: int) -> dict[str, list[str]]:
    stream = "baseline" if number == 0 else f"baseline of round {number}"
    return {row.task: told(row) for row in rows(folder) if row.episode and row.episode.stream == stream}


def test_rounds_come_one_after_the_other_where_the_policy_learns() -> None:
    tasks = [TaskSummary(name, "train", name) for name in "abcde"]
    ordered = waves(tasks, make_config(config()))
    assert [(wave.round, "".join(task.id for task in wave.tasks), wave.last) for wave in ordered] == [
        (0, "ab", False),
        (0, "cd", False),
        (0, "e", False),
        (1, "ab", True),
        (1, "cd", True),
        (1, "e", True),
    ]
    alone = waves(tasks, make_config(config(skills={})))
    assert [(wave.round, wave.last) for wave in alone] == [(0, True)] * 3


def test_waves_learn_from_the_waves_before_them(tmp_path: Path) -> None:
    campaign(config(), tmp_path)
    with Store.open(tmp_path, read_only=True) as store:
        tasks = [str(result["task"]) for result in store.results()]
    first, second = baselines(tmp_path, 0), baselines(tmp_path, 1)
    assert all(first[task] == [] for task in tasks[:2])  # the first wave has nothing to learn from
    later = [skill for task in tasks[2:4] for skill in first[task]]
    assert later
    assert all(any(f"lesson of {task} " in skill for task in tasks[:2]) for skill in later)
    given = [skill for skills in second.values() for skill in skills]
    assert any(f"lesson of {task} " in skill for task in tasks[4:] for skill in given)


def test_no_task_is_given_what_was_learnt_on_it(tmp_path: Path) -> None:
    campaign(config(), tmp_path)
    bank = SkillBank.read(tmp_path / "skills.jsonl")
    assert len({skill.provenance.task for skill in bank}) > 2
    given = [(row.task, skill) for row in rows(tmp_path) for skill in told(row)]
    assert given
    assert not any(f"lesson of {task} " in skill for task, skill in given)


def test_a_tasks_rollouts_of_a_round_are_all_equipped_alike(tmp_path: Path) -> None:
    campaign(config(), tmp_path)
    seen: dict[tuple[str, int], set[str]] = {}
    for row in rows(tmp_path):
        assert row.episode
        if not row.episode.stream.startswith(("report", "smoke")):
            number = int(row.episode.stream.endswith("of round 1"))
            seen.setdefault((row.task, number), set()).add(repr(told(row)))
    assert all(len(alike) == 1 for alike in seen.values())


def test_a_run_goes_on_without_asking_for_skills_again(tmp_path: Path) -> None:
    whole = campaign(config(), tmp_path / "whole")
    asked = Says.calls = 0
    campaign(config(), tmp_path / "again")
    asked = Says.calls
    assert asked > 0
    with Store.open(tmp_path / "again") as store:
        store.set_meta("summary", None)
    Says.calls = 0
    assert {**campaign(config(), tmp_path / "again"), "seconds": 0} == {**whole, "seconds": 0}
    assert Says.calls == 0


def test_its_decisions_are_replayed(tmp_path: Path) -> None:
    campaign(config(), tmp_path)
    Says.calls = 0
    with Store.open(tmp_path, read_only=True) as store:
        replayed = replay_run(store, Plugins(PLUGINS))
    assert replayed.same
    assert len(replayed.tasks) == 6
    assert Says.calls == 0


def test_without_it_the_skills_belong_to_no_identity() -> None:
    def identity(**changes: Any) -> JsonObject:
        return make_config(config(**changes)).identity()

    assert identity(skills={}) == identity(skills={"retrieve": 9}, extractor="contrast")
    assert identity() != identity(extractor="contrast")
    assert identity(evaluation={"runs": 9}, budget={"usd": 1.0}, settings={"llm": {}}) == identity()


def test_such_runs_arent_merged(tmp_path: Path) -> None:
    for name in ("a", "b"):
        campaign(config(tasks={"limit": 2}, seed=ord(name)), tmp_path / name)
    with pytest.raises(ConfigError, match="learnt from task to task"):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
