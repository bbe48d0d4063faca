"""The scripted model of Toy24: it knows nothing but the request, and plays, designs and learns by it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Action, Observation
from envharness_core.jsondata import Json, JsonObject
from envharness_core.testing.model_said import Said
from envharness_core.testing.toy24_model import brain
from envharness_core.testing.toy24_player import foreseen, seen, skills_in
from envharness_core.toy24.bridge import Toy24

TASKS = [task.id for task in Toy24().list_tasks("train", 30)]
SKILL = "Call again\nWhen: a call has just failed.\nWhat to do: Call again rather than use `stop`."


def tools(*names: str) -> list[Json]:
    return [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]


def body(said: str, *names: str, seed: int = 1, system: str = "You are an agent.") -> JsonObject:
    messages: list[Json] = [{"role": "system", "content": system}, {"role": "user", "content": said}]
    return {"model": "scripted", "messages": messages, "tools": tools(*names), "seed": seed}


def episode(task: str, seed: int, system: str = "You are an agent.", steps: int = 20) -> list[Action]:
    """Play a task as a client does, each call's result as its answer; return the calls."""
    bridge = Toy24()
    start = bridge.reset(0, {"task": task})
    asked: Any = body(f"Task: {start.instruction}\n\n{start.observation.text}", "combine", "undo", "stop")
    asked |= {"seed": seed}
    asked["messages"][0]["content"] = system
    done: list[Action] = []
    while len(done) < steps:
        said = brain(asked)
        calls: list[Any] = [
            {"id": f"call{len(done)}{n}", "type": "function", "function": {"name": name, "arguments": text}}
            for n, (name, text) in enumerate(said.calls)
        ]
        asked["messages"].append({"role": "assistant", "content": said.text or None, "tool_calls": calls})
        for call in calls:
            action = Action(call["function"]["name"], json.loads(call["function"]["arguments"]))
            done.append(action)
            response = bridge.step(action)
            if response.terminated:
                return done
            asked["messages"].append(
                {"role": "tool", "tool_call_id": call["id"], "content": response.observation.text}
            )
        if not calls:
            asked["messages"].append({"role": "user", "content": "Malformed call: no tool was called."})
    return done


def won(task: str, done: list[Action]) -> bool:
    bridge = Toy24()
    bridge.reset(0, {"task": task})
    for action in done:
        bridge.step(action)
    return bridge.evaluate().success


def test_it_plays_well_gives_up_after_failures_and_heeds_advice() -> None:
    plain = {task: episode(task, seed) for seed, task in enumerate(TASKS)}
    told = {
        task: episode(task, seed, f"You are an agent.\n\n# Advice from earlier tasks\n\nUse it.\n\n{SKILL}")
        for seed, task in enumerate(TASKS)
    }
    wins, advised = (sum(won(task, done) for task, done in played.items()) for played in (plain, told))
    assert 15 <= wins < advised
    assert any(done[-1].name == "stop" for done in plain.values())


def test_it_has_the_manners_of_models() -> None:
    start = Toy24().reset(0, {"task": TASKS[0]})
    said = [brain(body(start.observation.text, "combine", "undo", "stop", seed=seed)) for seed in range(200)]
    assert any(item.text and item.calls for item in said)
    assert any(len(item.calls) == 2 for item in said)
    assert any(item.text and not item.calls for item in said)


def test_equal_requests_have_equal_answers_and_the_seed_is_chance() -> None:
    start = Toy24().reset(0, {"task": TASKS[0]}).observation.text
    asked = [body(start, "combine", seed=seed) for seed in range(20)]
    assert [brain(item) for item in asked] == [brain(item) for item in asked]
    assert len({brain(item) for item in asked}) > 1


@given(st.sampled_from(TASKS), st.integers(0, 3), st.integers(0, 3), st.sampled_from("+-*/"))
def test_what_it_foresees_is_what_the_bridge_shows(task: str, i: int, j: int, operator: str) -> None:
    bridge = Toy24()
    start = bridge.reset(0, {"task": task}).observation
    action = Action("combine", {"i": i, "j": j, "op": operator})
    after = foreseen(seen(start.text, Observation("")), action)
    shown = bridge.step(action)
    if shown.info.get("error"):
        assert after is None or i == j
    else:
        assert after is not None
        assert after.data == {key: shown.observation.data[key] for key in ("numbers", "log")}
        assert seen(shown.observation.text, Observation("")).data == after.data


def test_advice_is_read_skill_by_skill() -> None:
    system = f"Be good.\n\n# Advice from earlier tasks\n\nUse it.\n\n{SKILL}\n\n{SKILL}"
    assert skills_in(system) == [SKILL, SKILL]
    assert skills_in("Where a call fails, never use `stop`.") == []


BASE = """# What is asked for

A success rate between 0.2 and 0.8.

# How the policy plays it now

- Success: {wins} of 5 graded rollouts succeeded (95 % interval of the rate: 0.57 to 1.00).

# Its rollouts, step by step

## Rollout 0: failure, 3 steps
1. combine(i=1, j=3, op="+")
   > Numbers: [0] 1
2. combine(i=0, j=4, op="*")  [error]
   > There are numbers 0 to 2.
3. stop()
   > (shown as before)
End: the world ended it; failure, score 0.

## Rollout 1: success, 1 steps
1. combine(i=0, j=1, op="+")  [reward 1]
   > Numbers: [0] 24
End: the world ended it; success, score 1.
"""


def first_usable(said: str, *names: str) -> tuple[str, Any]:
    """Ask as a designer does until an answer is whole; a second complaint is never needed."""
    answer = brain(body(said, *names))
    if len(answer.calls) != 1 or answer.finish == "length" or "complete" not in _kind(answer):
        asked: Any = body(said, *names)
        asked["messages"] += [{"role": "user", "content": "That can't be used: look."}]
        answer = brain(asked)
    ((name, text),) = answer.calls
    return name, json.loads(text)


def _kind(answer: Said) -> str:
    needed = {"diagnose": "flaw", "propose": "rationale", "give_up": "reason"}
    ((name, text),) = answer.calls
    return "complete" if needed.get(name, "") in json.loads(text) else "incomplete"


@pytest.mark.parametrize(("wins", "direction"), [(0, "scaffold"), (3, "leave"), (5, "harden")])
def test_a_diagnosis_follows_the_numbers(wins: int, direction: str) -> None:
    name, told = first_usable(BASE.format(wins=wins), "diagnose")
    assert (name, told["direction"]) == ("diagnose", direction)
    assert f"{wins} of 5" in told["evidence"]
    assert "gives up" in told["flaw"]


def tried(*rates: float) -> str:
    return "# What was tried\n\n" + "\n\n".join(
        f'## Attempt {n}\n- {{"use": "core/faults", "rate": {rate}}}\nWhy: so.'
        for n, rate in enumerate(rates, 1)
    )


@pytest.mark.parametrize(
    ("rates", "turn", "rate"),
    [
        ((), "This is the first attempt.", 0.25),
        ((0.25,), "it has to become harder", 0.375),
        ((0.25,), "easier", 0.15),
    ],
)
def test_a_proposal_changes_the_magnitude_as_it_is_told(
    rates: tuple[float, ...], turn: str, rate: float
) -> None:
    head = f"{BASE.format(wins=5)}\n# The diagnosis\n\n- Direction: harden\n\n"
    prompt = f"{head}{tried(*rates)}\n\n# Your turn\n\n{turn}"
    name, told = first_usable(prompt, "propose", "give_up")
    assert (name, told["layers"]) == ("propose", [{"use": "core/faults", "rate": rate}])


def test_it_gives_up_after_many_attempts_and_helps_where_it_is_too_hard() -> None:
    head = f"{BASE.format(wins=0)}\n# The diagnosis\n\n- Direction: scaffold\n\n"
    name, told = first_usable(f"{head}# Your turn\n\nNow.", "propose", "give_up")
    assert told["layers"] == [
        {"use": "core/setup", "actions": [{"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "+"}}]}
    ]
    name, _ = first_usable(
        f"{head}{tried(0.1, 0.2, 0.3, 0.4, 0.5)}\n\n# Your turn\n\nNow.", "propose", "give_up"
    )
    assert name == "give_up"


def test_it_is_careless_once_in_a_while_and_never_when_told_so() -> None:
    asked: list[Any] = [body(BASE.format(wins=5), "diagnose", seed=seed) for seed in range(100)]
    first = [brain(item) for item in asked]
    bad = sum(len(said.calls) != 1 or said.finish == "length" or _kind(said) != "complete" for said in first)
    assert 3 <= bad <= 30
    for item in asked:
        item["messages"] += [{"role": "user", "content": "That can't be used: look."}]
        assert _kind(brain(item)) == "complete"


def test_lessons_are_what_several_rollouts_show() -> None:
    one = BASE.format(wins=1)
    several = one + one.partition("# Its rollouts, step by step")[2].replace("Rollout 0", "Rollout 2")
    assert "stop" not in _said(brain(body(one, "remember")))
    assert "rather than use `stop`" in _said(brain(body(several, "remember")))


def test_lessons_come_in_the_forms_of_models() -> None:
    several = BASE.format(wins=1) * 2
    forms = [brain(body(several, "remember", seed=seed)) for seed in range(60)]
    assert {bool(said.calls) for said in forms} == {True, False}
    assert any("```json" in (said.text or "") for said in forms)
    assert any("# Memory Item 1" in (said.text or "") for said in forms)


def _said(answer: Said) -> str:
    return f"{answer.text}{answer.calls}"


@given(
    st.text(max_size=300),
    st.text(max_size=100),
    st.sampled_from(["diagnose", "propose", "review", "remember", "combine", ""]),
)
def test_whatever_it_is_told_it_answers(said: str, system: str, tool: str) -> None:
    answer = brain(body(said, *([tool] if tool else []), system=system))
    assert answer.text or answer.calls
