"""The parametrised layers of the core: what each does to an episode of Toy24."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import Action, ComponentSpec, Plugins
from envharness_core import stack as make_stack
from envharness_core.checkpoint import load, save
from envharness_core.contract import check_layer
from envharness_core.errors import ConfigError
from envharness_core.stacks import Stack

TASK = {"task": "1-2-3-4"}
ADD = Action("combine", {"i": 0, "j": 1, "op": "+"})
UNDO = Action("undo")


def started(*layers: Any, seed: int = 0) -> Stack:
    env = make_stack("toy24", list(layers))
    env.reset(seed, {**TASK})
    return env


@pytest.mark.parametrize(
    "spec",
    [
        ComponentSpec("faults", {"rate": 0.4, "streak": 1}),
        ComponentSpec("budget", {"steps": 3}),
        ComponentSpec("closed", {"tool": "combine", "where": {"op": "+"}, "uses": 1}),
        ComponentSpec("short_memory", {"key": "log", "keep": 1}),
        ComponentSpec("setup", {"actions": [{"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "+"}}]}),
    ],
    ids=lambda spec: spec.use,
)
def test_each_passes_the_checks_of_the_contract(spec: ComponentSpec) -> None:
    failed = [result for result in check_layer(Plugins(), spec) if not result.passed]
    assert failed == []


@given(st.floats(0, 1), st.integers(1, 4), st.integers(0, 2**32))
def test_faults_leave_the_world_and_end_within_a_streak(rate: float, streak: int, seed: int) -> None:
    with started({"use": "faults", "rate": rate, "streak": streak}, seed=seed) as env:
        row = 0
        for _ in range(30):
            before = env.get_env_state()
            failed = "transient_error" in env.step(UNDO).info
            row = row + 1 if failed else 0
            assert row <= streak
            if failed:
                assert env.get_env_state() == before


def test_a_fault_tells_the_agent_and_shows_the_same_world() -> None:
    with started({"use": "faults", "rate": 1.0, "text": "no luck"}) as env:
        response = env.step(ADD)
        assert response.observation.text == f"no luck\n\n{env.observe().text}"
        assert response.info == {"transient_error": "no luck"}


def test_the_share_of_faults_is_the_rate() -> None:
    with started({"use": "faults", "rate": 0.3, "streak": 50}) as env:
        failed = sum("transient_error" in env.step(UNDO).info for _ in range(2000))
    assert 0.25 < failed / 2000 < 0.35


def test_a_budget_truncates_after_so_many_steps_and_not_before() -> None:
    with started({"use": "budget", "steps": 3}) as env:
        ends = [env.step(action).truncated for action in (ADD, UNDO, ADD)]
    assert ends == [False, False, True]


def test_a_budget_counts_faults_inside_but_no_replay() -> None:
    setup = {"use": "setup", "actions": [{"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "+"}}]}
    with started({"use": "faults", "rate": 1.0, "streak": 9}, {"use": "budget", "steps": 2}) as env:
        assert [env.step(ADD).truncated for _ in range(2)] == [False, True]
    with started({"use": "budget", "steps": 2}, setup) as env:
        assert [env.step(action).truncated for action in (ADD, UNDO)] == [False, True]


def test_a_budget_that_the_benchmark_beats_truncates_nothing() -> None:
    with started({"use": "budget", "steps": 1}) as env:
        response = env.step(Action("stop"))
    assert (response.terminated, response.truncated) == (True, False)


def test_closed_blocks_what_matches_and_nothing_else() -> None:
    with started({"use": "closed", "tool": "combine", "where": {"op": "+"}}) as env:
        blocked = env.step(ADD)
        assert blocked.info == {"blocked": "combine with op '+' is closed; find another way."}
        assert env.events()[0][-1].kind == "reset"
        assert "blocked" not in env.step(Action("combine", {"i": 0, "j": 1, "op": "*"})).info


def test_closed_allows_so_many_uses_in_an_episode() -> None:
    with started({"use": "closed", "tool": "undo", "uses": 2, "reason": "no more"}) as env:
        told = []
        for _ in range(4):
            env.step(ADD)
            told.append(env.step(UNDO).info.get("blocked"))
        assert told == [None, None, "no more", "no more"]
        env.reset(0, {**TASK})
        env.step(ADD)
        assert env.step(UNDO).info.get("blocked") is None


def test_closed_counts_only_what_took_place() -> None:
    closed = {"use": "closed", "tool": "undo", "uses": 1}
    with started(closed) as env:
        assert "error" in env.step(UNDO).info
        env.step(ADD)
        assert env.step(UNDO).info == {}
        assert "blocked" in env.step(UNDO).info
    with started({"use": "faults", "rate": 1.0, "streak": 1}, closed) as env:
        env.step(ADD)
        env.step(ADD)
        assert [list(env.step(UNDO).info) for _ in range(3)] == [["transient_error"], [], ["blocked"]]


def test_the_uses_of_closed_are_saved() -> None:
    with started({"use": "closed", "tool": "undo", "uses": 1}) as env:
        env.step(ADD)
        env.step(UNDO)
        with load(Plugins(), save(env)) as loaded:
            assert "blocked" in loaded.step(UNDO).info


def test_closing_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"closed\.tool: unknown tool 'und' \(did you mean 'undo'\?\)"):
        make_stack("toy24", [{"use": "closed", "tool": "und"}])


@given(st.integers(0, 5), st.lists(st.sampled_from(["+", "*", "undo"]), max_size=8))
def test_short_memory_shows_the_end_of_the_log_in_data_and_text(keep: int, moves: list[str]) -> None:
    with (
        started({"use": "short_memory", "key": "log", "keep": keep}) as short,
        started() as whole,
    ):
        for move in moves:
            action = UNDO if move == "undo" else Action("combine", {"i": 0, "j": 1, "op": move})
            seen, full = short.step(action), whole.step(action)
            log: Any = full.observation.data["log"]
            assert seen.observation.data == {**full.observation.data, "log": log[max(0, len(log) - keep) :]}
            lines = seen.observation.text.split("\n")
            kept = log[max(0, len(log) - keep) :]
            assert (lines[-len(kept) :] if kept else []) == kept
            assert len(lines) == len(full.observation.text.split("\n")) - (len(log) - len(kept))
            if full.ended:
                break
