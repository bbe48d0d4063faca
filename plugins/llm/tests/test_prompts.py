"""What the model policy tells a model, and what a config may change of that."""

from __future__ import annotations

from typing import cast

import pytest
from canned_policy import says, started  # type: ignore[import-not-found]

from envharness_core import Action, Observation, Tool
from envharness_core.converter import structure
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.testing import TextWorld
from envharness_core.toy24.bridge import Toy24
from envharness_llm.messages import Request
from envharness_llm.parsing import Format
from envharness_llm.policy import ModelPolicy, PolicyConfig

TOOLS = Toy24().tools()
FORMATS: tuple[Format, ...] = ("tools", "think_action", "text")
START = Observation("Numbers: [0] 1  [1] 2")


def prompt(request: Request) -> str:
    return request.messages[0].text


@pytest.mark.parametrize("way", ["think_action", "text"])
def test_formats_that_are_text_offer_no_functions_but_describe_the_tools(way: Format) -> None:
    policy, model = started(says("stop()"), format=way)
    policy.act(START)
    assert model.requests[0].tools == ()
    assert 'combine(i: integer, j: integer, op: "*" | "+" | "-" | "/")' in prompt(model.requests[0])
    assert "Take back the last move" in prompt(model.requests[0])
    assert '\ncombine(i=0, j=1, op="*")\n' in prompt(model.requests[0])
    assert ("<action>" in prompt(model.requests[0])) == (way == "think_action")


@pytest.mark.parametrize("way", FORMATS)
def test_the_first_message_is_the_task_with_the_first_observation(way: Format) -> None:
    policy, model = started(says("stop()"), format=way)
    policy.act(START)
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]
    assert model.requests[0].messages[1].text == f"Task: Make 24.\n\n{START.text}"


@pytest.mark.parametrize("way", FORMATS)
def test_skills_are_told_and_where_there_are_none_nothing_is_said_of_them(way: Format) -> None:
    with_skills, told = started(
        says(""), format=way, skills=("Undo early\nWhen: ...\nUndo.", "Check $${tools}")
    )
    with_skills.act(START)
    without, untold = started(says(""), format=way, skills=(" ",))
    without.act(START)
    assert "earlier tasks\n" in prompt(told.requests[0])
    assert "Undo early\nWhen: ...\nUndo.\n\nCheck $${tools}" in prompt(told.requests[0])
    assert "earlier tasks" not in prompt(untold.requests[0])
    assert "\n\n\n" not in prompt(untold.requests[0])


@pytest.mark.parametrize("way", FORMATS)
def test_no_placeholder_is_left_in_a_packaged_prompt(way: Format) -> None:
    policy, model = started(says(""), format=way, skills=("One.",))
    policy.act(START)
    assert "${" not in prompt(model.requests[0])


def test_a_prompt_can_be_replaced() -> None:
    system = "T ${tools}\n${skills}\nF ${format} $5 $${x}\nI ${instruction}"
    policy, model = started(
        says(""), system=system, observation="See: ${observation} (${instruction})", format="text"
    )
    policy.act(Observation("${tools}"))
    assert prompt(model.requests[0]).startswith("T combine(i: integer")
    assert prompt(model.requests[0]).endswith("$5 ${x}\nI Make 24.")
    assert model.requests[0].messages[1].text == "See: ${tools} (Make 24.)"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"system": "Use ${tool}."},
            ["policy: 'system'", "unknown placeholder ${tool}", "'tools'", "${instruction}"],
        ),
        ({"observation": "${observation} ${tools}"}, ["policy: 'observation'", "${tools}", "${observation}"]),
        ({"observation": "nothing"}, ["policy: 'observation'", "put ${observation}"]),
        ({"format": "xml"}, ["policy.format", "think_action"]),
        ({"temperature": -1}, ["policy: 'temperature'", "0 to 2"]),
        ({"temperature": 3.0}, ["policy: 'temperature'", "0 to 2"]),
        ({"window": 0}, ["policy", "'window'"]),
        ({"context_tokens": 0}, ["policy", "'context_tokens'"]),
        ({"max_tokens": 0}, ["policy", "'max_tokens'"]),
        ({"reasoning": "much"}, ["policy.reasoning"]),
        ({"reask": -1}, ["policy", "'reask'"]),
        ({"model": ""}, ["policy", "'model'"]),
        ({"modell": "x"}, ["unknown key 'modell'", "'model'"]),
    ],
)
def test_a_wrong_config_is_refused_with_what_is_allowed(config: JsonObject, words: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        structure({"model": "canned/model", **config}, PolicyConfig, "policy")
    for word in words:
        assert word in str(refused.value)


def test_an_unknown_placeholder_is_refused_when_a_config_is_made_in_python_too() -> None:
    with pytest.raises(ConfigError, match=r"'system' has an unknown placeholder \$\{task\}"):
        PolicyConfig("canned/model", system="${task}")


def test_names_that_are_no_functions_are_refused_for_function_calling_alone() -> None:
    odd = [
        Tool.described(name, "", {"type": "object"})
        for name in ("click.left", "x" * 65, "", "schließen", "ok\n")
    ]
    for tool in odd:
        with pytest.raises(ConfigError, match='use "think_action"'):
            ModelPolicy(PolicyConfig("m")).check([tool])
        ModelPolicy(PolicyConfig("m", format="think_action")).check([tool])
        ModelPolicy(PolicyConfig("m", format="text")).check([tool])
    ModelPolicy(PolicyConfig("m")).check(TOOLS)


def test_a_sentence_world_is_played_in_text() -> None:
    tools = TextWorld().tools()
    policy, model = started(says("The key first.\ngo kitchen"), format="text", tools=tools)
    assert policy.act(START).actions == (Action("do", {"text": "go kitchen"}),)
    assert "do(text: string)" in prompt(model.requests[0])


def test_a_tool_is_described_with_all_that_its_schema_says() -> None:
    schema = cast(
        "JsonObject",
        {
            "properties": {
                "paths": {"type": "array", "items": {"type": "string"}, "description": "files to read"},
                "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "ratio": {"type": "number", "minimum": 0},
                "at": {"$ref": "#/$defs/Point"},
            },
            "required": ["paths", "at"],
            "$defs": {"Point": {"type": "object"}},
        },
    )
    policy, model = started(says(""), format="text", tools=[Tool.described("read", "Reads.\nTwice.", schema)])
    policy.act(START)
    for line in (
        "read(paths: list of string, depth: integer | null = null, ratio: number = null, at: Point)",
        "    Reads.\n    Twice.",
        "    paths: files to read",
        '    ratio: {"minimum": 0}',
        '    where {"Point": {"type": "object"}}',
    ):
        assert line in prompt(model.requests[0])


def test_skills_are_told_even_where_a_replaced_prompt_has_no_place_for_them() -> None:
    policy, model = started(says(""), system="Play.", skills=("Undo early.",))
    policy.act(START)
    assert prompt(model.requests[0]).startswith("Play.\n\n# Advice")
    assert prompt(model.requests[0]).endswith("Undo early.")
    bare, asked = started(says(""), system="Play.")
    bare.act(START)
    assert prompt(asked.requests[0]) == "Play."
