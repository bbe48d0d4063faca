"""Catalog: what it reads off trajectories, which layers its knobs stand for, and that it steers real tasks."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import Action, Plugins, campaign, rollout, stack
from envharness_core.designers.knobs import PREFIXES, RATES, SLACKS, Bench, Knobs, describe, through
from envharness_core.designers.wins import (
    all_ways,
    avoidable,
    choices,
    histories,
    shortest_way,
    spare_tools,
)
from envharness_core.jsondata import Json, JsonObject
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.store import Store
from envharness_core.trajectory import Trajectory

TASK = "3-8-9-11"
DETOUR: list[JsonObject] = [
    {"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "*"}},
    {"name": "undo", "kwargs": {}},
    {"name": "combine", "kwargs": {"i": 0, "j": 0, "op": "*"}},
    {"name": "combine", "kwargs": {"i": 2, "j": 3, "op": "+"}},
    {"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "*"}},
    {"name": "undo", "kwargs": {}},
    {"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "*"}},
]


def played(*actions: JsonObject, task: str = "1-1-1-8") -> Trajectory:
    (item,) = rollout("toy24", task, {"use": "scripted", "actions": list(actions), "repeat": True})
    return item.trajectory


def way_of(bench_task: str) -> tuple[Action, ...]:
    wins = [
        item.trajectory
        for item in rollout("toy24", bench_task, {"use": "solver", "skill": 0.9}, count=20)
        if item.episode.success
    ]
    return shortest_way(wins, ("log",))


def bench(task: str = "4-6-8-10") -> Bench:
    tools = tuple(stack("toy24").tools())
    all_choices = choices(tools)
    way = way_of(task)
    open_ways = tuple(i for i, choice in enumerate(all_choices) if avoidable([way], choice))
    return Bench(way, ("undo",), ("log",), all_choices, open_ways, 20)


def test_detours_and_failures_are_no_part_of_the_way() -> None:
    trajectory = played(*DETOUR[:5], {"name": "stop", "kwargs": {}})
    way = all_ways([trajectory], histories([trajectory]))[0]
    assert [str(action) for action in way[:2]] == [str(Action(**DETOUR[3])), str(Action(**DETOUR[4]))]  # type: ignore[arg-type]


def test_what_the_text_alone_tells_is_no_detour() -> None:
    """In a world whose data stay the same, something has happened all the same when its text says so."""
    add: JsonObject = {"name": "add", "kwargs": {"amount": 1}}
    actions: list[Json] = [add, add, add, {"name": "submit", "kwargs": {}}]
    plugins = Plugins({"quiet": "quiet_world"})
    (won,) = rollout("quiet", "three", {"use": "scripted", "actions": actions}, plugins=plugins)
    assert won.episode.success
    (way,) = all_ways([won.trajectory], histories([won.trajectory]))
    assert [action.name for action in way] == ["add", "add", "add", "submit"]


def test_the_log_is_found_to_be_a_history_and_the_numbers_are_not() -> None:
    assert histories([played(*DETOUR, {"name": "stop", "kwargs": {}})]) == ("log",)
    assert histories([]) == ()


def test_a_shortest_way_wins_when_it_is_replayed() -> None:
    way = way_of("4-6-8-10")
    assert len(way) == 3
    script: Any = [{"name": action.name, "kwargs": action.kwargs} for action in way]
    (item,) = rollout("toy24", "4-6-8-10", {"use": "scripted", "actions": script})
    assert item.episode.success


def test_what_a_winner_can_do_without() -> None:
    wandering = played(*DETOUR, {"name": "stop", "kwargs": {}})
    way = (Action("combine", {"i": 0, "j": 1, "op": "*"}),)
    assert spare_tools(way, [wandering]) == ("undo",)
    assert avoidable([way], ("combine", "op", "+"))
    assert not avoidable([way], ("combine", "op", "*"))
    tools = tuple(stack("toy24").tools())
    assert choices(tools) == tuple(("combine", "op", op) for op in "*+-/")


def test_every_setting_builds_and_leaves_the_shortest_way_open() -> None:
    table = bench()
    settings = list(table.settings())
    assert len({knobs.key for knobs in settings}) == len(settings)
    assert settings[0] == Knobs()
    for knobs in settings:
        features = table.features(knobs)
        assert len(features) == 1 + PREFIXES + 4 + len(table.choices)
        assert table.budget(knobs) >= table.need(knobs) + (knobs.slack is not None)
        assert describe(table, knobs)
        with build_stack(Plugins(), ComponentSpec("toy24"), table.layers(knobs)) as env:
            env.reset(0, {"task": "4-6-8-10"})
            rest = table.way[table.prefix(knobs) :]
            if not knobs.rate:
                assert [env.step(action).terminated for action in rest][-1]
                assert env.evaluate().success


def test_a_task_that_nobody_won_offers_little() -> None:
    table = Bench((), (), ("log",), (), (), 20)
    assert {knobs.key for knobs in table.settings()} == {Knobs().key, Knobs(forget=True).key}


@given(st.sampled_from(RATES), st.integers(1, 3), st.integers(1, 12), st.integers(1, 6))
def test_the_ceiling_is_the_chance_that_faults_leave_enough_steps(
    rate: float, streak: int, budget: int, need: int
) -> None:
    random, reached, episodes = Random(f"{rate}{streak}{budget}{need}"), 0, 3000
    for _ in range(episodes):
        row = done = 0
        for _ in range(budget):
            if row < streak and random.random() < rate:
                row += 1
            else:
                row, done = 0, done + 1
        reached += done >= need
    assert through(rate, streak, budget, need) == pytest.approx(reached / episodes, abs=0.05)


def test_slacks_and_rates_ascend() -> None:
    assert list(SLACKS) == sorted(SLACKS)
    assert list(RATES) == sorted(RATES)


@pytest.mark.slow
def test_it_steers_tasks_into_the_band_within_the_budget(tmp_path: Path) -> None:
    summary = campaign(
        {
            "seed": 5,
            "bridge": "toy24",
            "policy": {"use": "solver", "skill": 0.6},
            "tasks": {"limit": 30},
            "limits": {"steps": 20},
            "objective": {
                "use": "success_band",
                "min_rollouts": 6,
                "batch": 3,
                "confirm_rollouts": 6,
                "confirm": 0.02,
            },
            "designer": "catalog",
            "campaign": {"attempts": 12, "budget": 60, "wave": 10},
            "report": {"rollouts": 60},
            "executor": {"use": "local", "workers": 2},
        },
        tmp_path / "run",
    )
    band: Any = summary["in_band"]
    spent: Any = summary["design_rollouts_per_task"]
    assert band["after"] >= 0.5
    assert band["after"] >= band["before"] + 0.3
    assert spent["max"] <= 60
    with Store.open(tmp_path / "run") as store:
        for result in store.results():
            attempts: Any = result["attempts"]
            tried = [str(attempt["layers"]) for attempt in attempts]
            assert len(set(tried)) == len(tried), "no candidate is tried twice"
            assert all(not attempt["rejected"] or attempt["decision"] == "refine" for attempt in attempts)


def test_what_a_setup_replayed_is_no_part_of_the_way() -> None:
    way = way_of("4-6-8-10")
    script: Any = [{"name": action.name, "kwargs": action.kwargs} for action in way]
    setup = {"use": "setup", "actions": script[:1]}
    rest = {"use": "scripted", "actions": script[1:]}
    (item,) = rollout("toy24", "4-6-8-10", rest, [setup])
    assert item.episode.success
    assert shortest_way([item.trajectory], ("log",)) == way[1:]
