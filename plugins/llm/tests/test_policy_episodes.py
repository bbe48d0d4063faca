"""Whole episodes of the model policy through the real player: on canned answers, and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from canned_policy import USED, WON, calls, says  # type: ignore[import-not-found]

from envharness_core import Limits, Observation, Outcome, Plugins, rollout
from envharness_core.converter import unstructure
from envharness_core.jsondata import JsonObject
from envharness_core.testing import Fault, ModelServer, Said, script
from envharness_core.toy24.bridge import Toy24
from envharness_llm.messages import Answer
from envharness_llm.parsing import Format

TOOLS = Toy24().tools()
FORMATS: tuple[Format, ...] = ("tools", "think_action", "text")
START = Observation("Numbers: [0] 1  [1] 2")


def play(
    answers: tuple[Answer, ...], *, task: str = "1-2-3-4", fails: str = "", steps: int = 12, **config: Any
) -> Any:
    """Play an episode of Toy24 with canned answers through the player."""
    plugins = Plugins({"canned_policy": "canned_policy"})
    spec: JsonObject = {
        "use": "canned_policy/canned",
        "answers": [unstructure(answer) for answer in answers],
        "policy": {"model": "canned/model", **config},
        "fails": fails,
    }
    (played,) = rollout("toy24", task, spec, limits=Limits(steps=steps), plugins=plugins)
    return played


def shown(played: Any) -> list[str]:
    return [step.response.observation.text for step in played.trajectory.steps]


def test_a_game_is_won_by_function_calls_two_of_them_in_one_reply() -> None:
    played = play((calls(*WON), calls(WON[0])))
    assert played.episode.outcome == Outcome.COMPLETED
    assert played.episode.verdict.success
    assert [str(action) for action in played.trajectory.actions()] == ['combine(i=0, j=1, op="*")'] * 3
    assert played.episode.usage == {"calls": 2, "input_tokens": 20, "output_tokens": 6, "cost_usd": 1.0}
    assert [bool(step.text) for step in played.trajectory.steps] == [True, False, True]


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("think_action", "<think>Twelve, then 24.</think>\n<action>combine(0, 1, '*')</action>"),
        ("text", "I multiply.\ncombine 0 1 *"),
        ("tools", '<tool_call>{"name": "combine", "arguments": {"i": 0, "j": 1, "op": "*"}}</tool_call>'),
    ],
)
def test_a_game_is_won_in_every_format(way: Format, text: str) -> None:
    played = play((says(text),), format=way)
    assert played.episode.verdict.success
    assert played.episode.steps == 3
    assert {step.text for step in played.trajectory.steps} == {text}


@pytest.mark.parametrize("arguments", ["null", "[]", "7", "{", '{"i": NaN}', '{"i": 0, "i": 1}', "[" * 5000])
def test_malformed_arguments_are_answered_and_the_episode_lives(arguments: str) -> None:
    played = play((calls(("combine", arguments)), calls(WON[0])))
    assert played.episode.verdict.success
    first, *rest = played.trajectory.steps
    assert "malformed" in first.response.info
    assert "combine" in first.action.name
    assert "malformed" in first.action.kwargs
    assert not played.trajectory.events_of(first)
    assert len(rest) == 3


def test_no_arguments_are_an_empty_object_for_a_tool_without_any() -> None:
    for arguments in ("", '""', "{}"):
        played = play((calls(("stop", arguments)),))
        assert played.episode.outcome == Outcome.COMPLETED
        assert [str(action) for action in played.trajectory.actions()] == ["stop()"]


def test_an_unknown_tool_is_answered_by_the_world() -> None:
    played = play((calls(("fly", "{}")), calls(WON[0])))
    assert "unknown tool 'fly'" in shown(played)[0]
    assert played.episode.verdict.success


@pytest.mark.parametrize(
    "answer", [says("Hm."), says(""), says("<think>stop()"), says("<think>a</think><think>stop()")]
)
def test_a_reply_without_an_action_costs_a_step_and_says_why(answer: Answer) -> None:
    played = play((answer, calls(WON[0])))
    first = played.trajectory.steps[0]
    assert first.action is None
    assert "closed" in shown(played)[0] or "calls no tool" in shown(played)[0]
    assert played.episode.verdict.success
    assert played.episode.steps == 4


@pytest.mark.parametrize("way", FORMATS)
def test_a_reply_that_was_cut_off_does_nothing_and_is_counted(way: Format) -> None:
    cut = Answer("<action>stop()</action>\nstop()", calls(("stop", "{}")).calls, finish="length", usage=USED)
    played = play((cut,), steps=2, format=way)
    assert played.episode.outcome == Outcome.AGENT_LIMIT
    assert played.trajectory.actions() == []
    assert played.episode.usage["truncated"] == 2
    assert "cut off at its token limit" in shown(played)[0]


@pytest.mark.parametrize(
    ("fails", "outcome"),
    [
        ("context", Outcome.AGENT_LIMIT),
        ("provider", Outcome.PROVIDER_ERROR),
        ("access", Outcome.PROVIDER_ERROR),
    ],
)
def test_what_a_service_raises_ends_the_episode_as_what_it_is(fails: str, outcome: Outcome) -> None:
    played = play((calls(WON[0]),), fails=fails)
    assert played.episode.outcome == outcome
    assert (played.episode.verdict is None) == (fails != "context")
    assert played.episode.steps == 1


def served(server: ModelServer, *, cassette: Path | None = None, **config: Any) -> Any:
    """Play an episode of Toy24 with the installed policy, whose model answers over HTTP."""
    settings: JsonObject = {"api_base": server.base_url, "keys": ["TEST_MODEL_KEY"], "retries": 0}
    if cassette is not None:
        settings["cassette"] = {"file": str(cassette)}
    spec: JsonObject = {"use": "llm", "model": "openai/scripted", **config}
    plugins = Plugins(settings={"llm": settings})
    (played,) = rollout("toy24", "1-2-3-4", spec, limits=Limits(steps=12), plugins=plugins)
    return played


def test_an_episode_is_replayed_from_its_record_of_calls_with_nobody_to_ask(tmp_path: Path) -> None:
    record = tmp_path / "calls.sqlite3"
    answers = (
        Said(calls=(("combine", "[]"), ("undo", ""))),
        Said("Hm."),
        Said(calls=WON),
        Said(calls=(WON[0],)),
    )
    with ModelServer(script(*answers)) as server:
        first = served(server, cassette=record)
    assert [path.name for path in tmp_path.iterdir()] == ["calls.sqlite3"]  # the policy let go of it
    again = served(server, cassette=record)
    assert first.episode.verdict.success
    assert again.trajectory.actions() == first.trajectory.actions()
    assert [step.text for step in again.trajectory.steps] == [step.text for step in first.trajectory.steps]
    assert again.episode.usage == first.episode.usage
    assert len(server.requests) == again.episode.usage["calls"]


def test_the_installed_policy_plays_over_http() -> None:
    answers = Said("Hm."), Said(calls=(("combine", "{broken"), ("fly away", "null"))), Said("So.", calls=WON)
    with ModelServer(script(*answers, Said(calls=(WON[0],)))) as server:
        played = served(server, window=2)
    assert played.episode.error == ""
    assert played.episode.verdict.success
    assert (played.episode.steps, played.episode.usage["calls"]) == (6, 4)
    last = cast("Any", server.requests[-1].body)["messages"]
    assert [message["role"] for message in last] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "tool", "tool"
    ]  # fmt: skip
    assert [call["function"]["name"] for call in last[2]["tool_calls"]] == ["combine", "fly_away"]
    assert "left out here: 1]" in last[1]["content"]


def test_a_context_that_is_full_ends_the_episode_and_a_refused_key_the_run() -> None:
    for fault, outcome in (
        (Fault.context_overflow(), Outcome.AGENT_LIMIT),
        (Fault.bad_key(), Outcome.PROVIDER_ERROR),
    ):
        with ModelServer(script(fault)) as server:
            played = served(server)
        assert played.episode.outcome == outcome
        assert len(server.requests) == 1
