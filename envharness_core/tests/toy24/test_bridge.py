"""Toy24's bridge keeps what it promises: exact, resumable, restorable, and graded from its log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Action, StepResponse
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.jsondata import Json, copy_object
from envharness_core.toy24 import puzzles
from envharness_core.toy24.bridge import Toy24

UNDO, STOP = Action("undo"), Action("stop")
ACTIONS = st.one_of(
    st.just(UNDO),
    st.builds(
        lambda i, j, op: combine(i, j, op), st.integers(-1, 4), st.integers(-1, 4), st.sampled_from("+-*/")
    ),
)
WIN = ((2, 0, "/"), (1, 0, "-"), (1, 0, "/"))


def combine(i: int, j: int, op: str) -> Action:
    return Action("combine", {"i": i, "j": j, "op": op})


def started(task: str = "3-3-8-8") -> Toy24:
    bridge = Toy24()
    bridge.reset(0, {"task": task})
    return bridge


def won() -> tuple[Toy24, StepResponse]:
    bridge = started()
    return bridge, [bridge.step(combine(*move)) for move in WIN][-1]


def test_a_win() -> None:
    bridge, last = won()
    assert last.terminated
    assert last.reward == 1.0
    verdict = bridge.evaluate()
    assert (verdict.success, verdict.score) == (True, 1.0)
    assert verdict.metrics == {"moves": 3, "undos": 0}
    assert bridge.get_env_state() == {
        "numbers": ["24"],
        "target": "24",
        "log": ["8 / 3 = 8/3", "3 - 8/3 = 1/3", "8 / 1/3 = 24"],
        "steps": 3,
        "can_undo": True,
        "done": True,
    }


def test_text_and_data_of_an_observation() -> None:
    bridge = started()
    assert bridge.observe().text == "Target: 24\nNumbers: [0] 3  [1] 3  [2] 8  [3] 8"
    bridge.step(combine(2, 0, "/"))
    observation = bridge.step(UNDO).observation
    assert observation.data == {
        "numbers": ["3", "3", "8", "8"],
        "target": "24",
        "log": ["8 / 3 = 8/3", "undo"],
    }
    assert observation.text.splitlines()[2:] == ["Log:", "8 / 3 = 8/3", "undo"]


def solves(bridge: Toy24) -> bool:
    """Do what its search says, to the end; False where it says that nothing helps."""
    actions = bridge.solution("search")
    if actions is None:
        return False
    ends = [bridge.step(action).terminated for action in actions]
    assert not ends or ends.index(True) == len(ends) - 1
    assert bridge.evaluate().success
    return True


@pytest.mark.parametrize("number", range(len(puzzles.SPLITS)))
def test_the_search_solves_every_puzzle(number: int) -> None:
    for task in Toy24().list_tasks(puzzles.SPLITS[number]):
        assert solves(started(task.id))


@given(st.lists(ACTIONS, max_size=6), st.integers(0, 6))
def test_the_search_solves_what_undo_can_still_save_and_asking_changes_nothing(
    actions: list[Action], replayed: int
) -> None:
    bridge = started("1-4-8-11")
    done = False
    for number, action in enumerate(actions):
        if number == replayed and not done:
            bridge.notify_replay_complete()
        if not done:
            done = bridge.step(action).terminated
    before = bridge.save_state()
    hopeless = bridge.solution("search") is None
    assert bridge.save_state() == before
    if done:
        assert hopeless != bridge.evaluate().success
    elif replayed >= len(actions):
        assert not hopeless  # back to the start, at worst
    assert solves(bridge) != hopeless


def test_a_setup_can_leave_what_no_search_solves() -> None:
    bridge = started()
    bridge.step(combine(2, 3, "-"))  # 8 - 8 = 0, and 3, 3, 0 don't make 24
    assert [action.name for action in bridge.solution("search") or ()] == ["undo", *["combine"] * 3]
    bridge.notify_replay_complete()
    assert bridge.solution("search") is None


def test_a_win_that_was_resumed_has_only_to_be_submitted() -> None:
    bridge, _ = won()
    assert bridge.solution("search") == ()
    bridge.resume()
    assert bridge.solution("search") == [STOP]


def test_stop_ends_without_success() -> None:
    bridge = started()
    last = bridge.step(STOP)
    assert (last.terminated, last.reward) == (True, 0.0)
    assert not bridge.evaluate().success


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (combine(0, 4, "+"), "out of range"),
        (combine(-1, 0, "+"), "out of range"),
        (combine(1, 1, "+"), "itself"),
        (UNDO, "nothing to undo"),
    ],
)
def test_what_cannot_be_done_is_an_observation(action: Action, problem: str) -> None:
    bridge = started()
    before = bridge.observe()
    response = bridge.step(action)
    assert problem in str(response.info["error"])
    assert response.observation.text == f"{response.info['error']}\n\n{before.text}"
    assert response.observation.data == before.data
    assert not response.ended
    assert bridge.observe() == before


def test_no_division_by_zero() -> None:
    bridge = started()
    bridge.step(combine(0, 1, "-"))
    assert "divided by zero" in str(bridge.step(combine(1, 0, "/")).info["error"])
    assert bridge.get_env_state()["numbers"] == ["0", "8", "8"]


def test_undo_stops_at_a_replay() -> None:
    bridge = started()
    bridge.step(combine(*WIN[0]))
    bridge.notify_replay_complete()
    state = bridge.get_env_state()
    assert (state["steps"], state["can_undo"], state["log"]) == (0, False, ["8 / 3 = 8/3"])
    assert "error" in bridge.step(UNDO).info
    bridge.step(combine(*WIN[1]))
    assert "error" not in bridge.step(UNDO).info
    assert "error" in bridge.step(UNDO).info


def test_resume_after_stop_and_after_the_last_number() -> None:
    bridge, _ = won()
    bridge.resume()
    assert bridge.evaluate().success
    assert bridge.get_env_state()["done"] is False
    response = bridge.step(UNDO)
    assert not response.ended
    assert not bridge.evaluate().success
    bridge.step(STOP)
    bridge.resume()
    assert bridge.step(combine(*WIN[2])).reward == 1.0
    assert bridge.evaluate().metrics == {"moves": 4, "undos": 1}


def test_the_seed_changes_nothing_and_a_reset_forgets() -> None:
    fresh = Toy24().reset(1, {"task": "3-3-8-8"})
    bridge, _ = won()
    assert bridge.reset(2, {"task": "3-3-8-8"}) == fresh
    assert bridge.save_state() == started().save_state()


def test_what_is_returned_is_a_copy() -> None:
    bridge, _ = won()
    listed: Any = bridge.get_env_state()["log"]
    listed.clear()
    shown: Any = bridge.observe().data["log"]
    shown.clear()
    assert bridge.evaluate().success


def test_tasks() -> None:
    bridge = Toy24()
    tasks = bridge.list_tasks("test", 5)
    assert tasks == bridge.list_tasks("test")[:5]
    assert all(task.split == "test" == puzzles.split_of(task.id) for task in tasks)
    assert set(tasks[0].metadata) == {"solutions", "needs_fraction"}
    assert sum(len(bridge.list_tasks(split)) for split in bridge.splits) == 1362


def test_unknown_names_are_errors_with_a_suggestion() -> None:
    bridge = Toy24()
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        bridge.list_tasks("trian")
    with pytest.raises(ConfigError, match="did you mean '3-3-8-8'"):
        bridge.reset(0, {"task": "3-3-8-88"})
    with pytest.raises(ConfigError, match="expected a task id"):
        bridge.reset(0, {})


def test_tools() -> None:
    assert [tool.name for tool in Toy24().tools()] == ["combine", "undo", "stop"]
    tool = Toy24().tools()[0]
    assert tool.problem_with({"i": 0, "j": 1, "op": "+"}) is None
    assert tool.problem_with({"i": 0, "j": 1, "op": "^"}) is not None


@given(st.lists(ACTIONS, max_size=9), st.lists(ACTIONS, max_size=6), st.booleans())
def test_a_restored_bridge_goes_on_in_the_same_way(
    before: list[Action], after: list[Action], replay: bool
) -> None:
    bridge, other = started("2-3-4-12"), Toy24()
    for action in before:
        bridge.step(action)
    if replay:
        bridge.notify_replay_complete()
    saved = bridge.save_state()
    other.load_state(copy_object(saved))
    assert other.save_state() == saved
    for action in after:
        assert bridge.step(action) == other.step(action)
    assert bridge.evaluate() == other.evaluate()
    assert bridge.get_env_state() == other.get_env_state()


@given(st.lists(ACTIONS, max_size=12))
def test_the_verdict_agrees_with_the_world(actions: list[Action]) -> None:
    bridge = started("1-2-3-4")
    for action in actions:
        bridge.step(action)
    assert bridge.evaluate().success == (bridge.get_env_state()["numbers"] == ["24"])
    assert bridge.evaluate() == bridge.evaluate()


def test_a_fresh_bridge_can_be_saved_and_restored() -> None:
    bridge = started()
    bridge.load_state(Toy24().save_state())
    assert not bridge.evaluate().success


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task", 3),
        ("task", "1-1-1-1"),
        ("log", "undo"),
        ("log", [1]),
        ("log", ["undo"]),
        ("log", ["8 / 3 = 3"]),
        ("log", ["8 + 13 = 21"]),
        ("log", ["x"]),
        ("log", ["8 / 3 = 8/3", "3 - 8/3 = 1/3", "undo", "undo", "8 * 8 = 64"]),
        ("replayed", 9),
        ("replayed", True),
        ("steps", -1),
        ("done", None),
    ],
)
def test_a_nonsense_state_is_refused(key: str, value: Json) -> None:
    bridge = started()
    bridge.step(combine(*WIN[0]))
    bridge.notify_replay_complete()
    with pytest.raises(CheckpointError, match="toy24"):
        Toy24().load_state({**bridge.save_state(), key: value})
