"""The one parser: what it does with all that models write, and that it never does what was only thought."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import Action, Tool
from envharness_core.calls import show_call
from envharness_core.guard import Guard
from envharness_core.recorder import Recorder
from envharness_core.testing import TextWorld, actions
from envharness_core.toy24.bridge import Toy24
from envharness_llm.messages import Answer, Finish, ToolCall
from envharness_llm.parsing import Format, Reading, outside_reasoning, read_json, read_reply

TOOLS = Toy24().tools()
SENTENCES = TextWorld().tools()
FORMATS: tuple[Format, ...] = ("tools", "think_action", "text")
STOP, UNDO = Action("stop"), Action("undo")
PLUS = Action("combine", {"i": 0, "j": 1, "op": "+"})
PLUS_CALL = ToolCall("c1", "combine", '{"i": 0, "j": 1, "op": "+"}')
IN_JSON = '{"name": "combine", "arguments": {"i": 0, "j": 1, "op": "+"}}'
IN_TEXT = '{"name": "combine", "arguments": "{\\"i\\": 0, \\"j\\": 1, \\"op\\": \\"+\\"}"}'


def read(
    text: str, way: Format, *calls: ToolCall, finish: Finish = "stop", tools: Sequence[Tool] = TOOLS
) -> Reading:
    return read_reply(Answer(text, calls, finish=finish), way, tools)


def done(reading: Reading) -> list[Action]:
    return [planned.action for planned in reading.plan if planned.action is not None]


@pytest.mark.parametrize(
    "text",
    [
        "<think>I add.</think><action>combine(0, 1, '+')</action>",
        '<action>combine(i=0, j=1, op="+")</action>',
        "<THINK>\nI add.\n</Think>\n<Action>\n combine 0 1 + \n</ACTION>",
        "<thinking>a</thinking> <reasoning>b</reasoning>\n<action>combine(0, 1, '+')</action> That is all.",
        "<think>a</think><think>b <action>stop()</action></think><action>combine(0, 1, '+')</action>",
        "<think>a <think>b</think> stop() </think><action>combine(0, 1, '+')</action>",
        "the opening mark was swallowed: <action>stop()</action></think><action>combine(0, 1, '+')</action>",
        "<action>stop()</action><think>a</think>, also swallowed</think><action>combine(0, 1, '+')</action>",
        "<action>combine(0, 1, '+')</action><think>a <think>b</think> c</think>",
        "[THINK]<action>stop()</action>[/THINK]<action>combine(0, 1, '+')</action>",
        "<action><think>or <action>stop()</action>?</think>combine(0, 1, '+')</action>",
        "<action>\n```python\ncombine(0, 1, '+')\n```\n</action>",
        "```\n<action>combine(0, 1, '+')</action>\n```",
        "<action>`combine(0, 1, '+')`</action>",
        f"<action>{IN_JSON}</action>",
        f"<action>\n```json\n{IN_JSON}\n```\n</action>",
        f"<tool_call>{IN_JSON}</tool_call>",
        f"I add.\n```json\n{IN_JSON}\n```",
    ],
)
def test_an_action_in_a_block_is_read(text: str) -> None:
    assert done(read(text, "think_action")) == [PLUS]


@pytest.mark.parametrize(
    "text",
    [
        "I add.\ncombine(0, 1, '+')",
        "combine 0 1 +\n\n",
        "stop() would be wrong, so:\nstop()\nundo\ncombine(i=0, j=1, op='+')",
        "I add.\n```\ncombine(0, 1, '+')\n```",
        "I add.\n```python\ncombine(0,\n  1,\n  '+')\n```",
        "**Action:** `combine(0, 1, '+')`",
        "Thought: I add.\nAction: combine(0, 1, '+')",
        "combine(0, 1, '+')\nI hope that this helps.",
        f"I add.\n{IN_JSON}",
        "<think>first\nstop()\n</think>\ncombine(0, 1, '+')",
        "<think>swallowed</think>combine(0, 1, '+')",
        "<action>combine(0, 1, '+')</action>",
    ],
)
def test_the_last_line_that_is_a_call_is_read(text: str) -> None:
    assert done(read(text, "text")) == [PLUS]


def test_where_a_sentence_is_the_only_argument_the_last_line_is_it() -> None:
    go = Action("do", {"text": "go kitchen"})
    assert done(read("I look for the key.\ngo kitchen", "text", tools=SENTENCES)) == [go]
    assert done(
        read("<think>go cellar</think><action>go kitchen</action>", "think_action", tools=SENTENCES)
    ) == [go]
    assert done(read("```\ngo kitchen\n```", "text", tools=SENTENCES)) == [go]


@pytest.mark.parametrize("way", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{IN_JSON}</tool_call>",
        f"<think>hm</think>\n<TOOL_CALL>\n{IN_JSON}\n</TOOL_CALL>",
        '<tool_call>{"name": "combine", "parameters": {"i": 0, "j": 1, "op": "+"}}</tool_call>',
        '<tool_call>{"type": "function", "function": ' + IN_TEXT + "}</tool_call>",
        f"I add.\n```json\n{IN_JSON}\n```\nThen we see.",
        '{"name": "combine",\n "parameters": {"i": 0, "j": 1, "op": "+"}}',
        f"```{IN_JSON}```",
    ],
)
def test_a_call_that_a_model_writes_into_its_text_is_read_in_every_format(text: str, way: Format) -> None:
    assert done(read(text, way)) == [PLUS]


@pytest.mark.parametrize("way", FORMATS)
def test_several_calls_come_in_order(way: Format) -> None:
    text = f'<tool_call>{IN_JSON}</tool_call><tool_call>{{"name": "undo"}}</tool_call>'
    assert done(read(text, way)) == [PLUS, UNDO]
    listed = f'<tool_call>[{IN_JSON}, {{"name": "undo", "arguments": {{}}}}]</tool_call>'
    assert done(read(listed, way)) == [PLUS, UNDO]
    native = read("", way, PLUS_CALL, ToolCall("c2", "undo", ""))
    assert done(native) == [PLUS, UNDO]
    assert native.native is (way == "tools")


def test_several_actions_come_in_order() -> None:
    text = "<action>combine(0, 1, '+')</action> then <action>undo()</action>"
    assert done(read(text, "think_action")) == [PLUS, UNDO]
    assert done(read("<action>\ncombine(0, 1, '+')\nundo\n</action>", "think_action")) == [PLUS, UNDO]


def test_an_action_that_can_not_be_read_keeps_its_place_among_others() -> None:
    reading = read("<action>combine 0</action><action>fly away</action><action>stop</action>", "think_action")
    first, second, third = reading.plan
    assert second.action is None
    assert "fly" in second.problem
    assert (first.action, third.action) == (Action("combine", {"i": 0}), STOP)
    assert reading.usable


@pytest.mark.parametrize("way", FORMATS)
@pytest.mark.parametrize("mark", ["think", "Thinking", "REASONING", "thought"])
@pytest.mark.parametrize(
    "call", ["\nstop()\n", "<action>stop()</action>", '<tool_call>{"name": "stop"}</tool_call>',
             '\n```json\n{"name": "stop", "arguments": {}}\n```\n']
)  # fmt: skip
def test_reasoning_is_never_executed(way: Format, mark: str, call: str) -> None:
    for text in (
        f"<{mark}>maybe {call}",  # never closed
        f"<{mark}>maybe {call}</{mark}>",
        f"<{mark}>a</{mark}> and <{mark}>maybe {call}",  # the second block never closed
        f"<{mark}>a <{mark}>b</{mark}> maybe {call} </{mark}>",
        f"< {mark} class='x'>maybe {call}",
        f"<{mark}\n{call}",  # the mark itself is torn
        f"maybe {call} </{mark}>",  # its opening mark was swallowed
    ):
        reading = read(text, way)
        assert not reading.plan, text
        assert reading.problem


def test_a_call_that_a_server_found_in_unclosed_reasoning_is_not_executed() -> None:
    reading = read("<think>I could call", "tools", PLUS_CALL)
    assert not reading.plan
    assert "isn't closed" in reading.problem
    assert done(read("<think>I do.</think>", "tools", PLUS_CALL)) == [PLUS]


SECRET = "combine(i=7, j=7, op='-')"
CALLS = [
    f"<action>{SECRET}</action>",
    SECRET,
    '<tool_call>{"name": "combine", "arguments": {"i": 7}}</tool_call>',
]
PIECES = st.sampled_from(
    ["<think>", "</think>", "<thinking>", "</Thinking>", "<reasoning>", "<action>", "</action>", "<tool_call>",
     "</tool_call>", "stop()", "undo", "\n", "```", "I think", " ", "<act", "ion>", '{"name": "stop"}', *CALLS]
)  # fmt: skip


@given(st.lists(PIECES), st.sampled_from(CALLS), st.lists(PIECES), st.sampled_from(FORMATS))
def test_nothing_between_the_marks_of_reasoning_is_in_an_action(
    before: list[str], call: str, after: list[str], way: Format
) -> None:
    plain = [piece for piece in (*before, *after) if piece not in CALLS]
    cut = len([piece for piece in before if piece not in CALLS])
    text = f"{''.join(plain[:cut])}<think>{call}</think>{''.join(plain[cut:])}"
    assert all(action.kwargs.get("i") != 7 for action in done(read(text, way)))


@given(st.text(alphabet="<>/thinkacto_l[]THINK`{}\"\n ()=,:1'", max_size=300), st.sampled_from(FORMATS))
def test_whatever_a_model_writes_is_read_without_an_error(text: str, way: Format) -> None:
    reading = read(text, way)
    assert bool(reading.plan) != bool(reading.problem)
    assert all(planned.action is not None or planned.problem for planned in reading.plan)


@given(actions(TOOLS), st.sampled_from(FORMATS))
def test_every_action_that_is_written_as_the_format_has_it_is_read(action: Action, way: Format) -> None:
    texts = {
        "tools": f"<tool_call>{show_call(Action(action.name, action.kwargs))}</tool_call>",
        "think_action": f"<think>so</think><action>{show_call(action)}</action>",
        "text": f"So:\n{show_call(action)}",
    }
    assert done(read(texts[way], way)) == [action]


@pytest.mark.parametrize("way", FORMATS)
@pytest.mark.parametrize(
    "text", ["", "stop()", f"<tool_call>{IN_JSON}</tool_call>", "<action>stop()</action>"]
)
def test_nothing_of_a_reply_that_was_cut_off_is_executed(way: Format, text: str) -> None:
    for calls in ((), (PLUS_CALL,), (ToolCall("c1", "stop", ""),)):
        reading = read(text, way, *calls, finish="length")
        assert not reading.plan
        assert reading.cut
        assert "token limit" in reading.problem


def test_nothing_of_a_reply_that_a_filter_stopped_is_executed() -> None:
    reading = read("", "tools", PLUS_CALL, finish="filtered")
    assert not reading.plan
    assert not reading.cut
    assert "filter" in reading.problem


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("<action>stop()", "think_action"),
        ("<action><action>stop()</action>", "think_action"),
        ("<action>stop()</tool_call>", "think_action"),
        ('<tool_call>{"name": "stop"}', "tools"),
        ('<tool_call>{"name": "stop", "arguments": {}</tool_call>', "tools"),
        ("<action></action>", "think_action"),
        ("<action>\nstop()\n", "text"),
        ("<action>\nundo\nfly away\n</action>", "think_action"),
    ],
)
def test_a_torn_call_is_never_mended(text: str, way: Format) -> None:
    reading = read(text, way)
    assert not reading.usable
    assert all(planned.problem for planned in reading.plan)


def test_a_torn_block_among_others_is_answered_in_its_place() -> None:
    first, second = read("<action>undo</action> <action>stop()", "think_action").plan
    assert first.action == UNDO
    assert "isn't closed" in second.problem
    nested = read("<action>go <action>kitchen</action>", "think_action", tools=SENTENCES)
    assert not nested.usable


@pytest.mark.parametrize(
    ("text", "way", "words"),
    [
        ("I would add.", "tools", "combine, undo, stop"),
        ("stop()", "tools", "calls no tool"),
        ("<action>stop()</action>", "tools", "calls no tool"),
        ("stop()" + "\nand so on" * 60, "text", "no line"),
        ("stop()", "think_action", "<action>name(argument=value)</action>"),
        ("I would add.", "text", "no line"),
        ('```json\n{"name": "Ada", "age": 36}\n```', "tools", "calls no tool"),
        ('```json\n{"name": "Ada"}\n```', "tools", "calls no tool"),
    ],
)
def test_a_reply_without_a_call_says_how_to_write_one(text: str, way: Format, words: str) -> None:
    reading = read(text, way)
    assert not reading.plan
    assert words in reading.problem


@pytest.mark.parametrize("arguments", ["", "  ", "{}", '""'])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert malformed("stop", arguments) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("null", "null"),
        ("[]", "a list"),
        ("7", "a number"),
        ('"{}"', "text"),
        ("{'i': 0}", "JSON"),
        ('{"i": 0, "j": 1, "op": "+"', "JSON"),
        ('{"i": 0, "j": 1, "op": "+"} and so', "JSON"),
        ('{"i": 0, "i": 2, "j": 1, "op": "+"}', "'i' is there twice"),
        ('{"i": NaN, "j": 1, "op": "+"}', "NaN"),
        ('{"i": Infinity, "j": 1, "op": "+"}', "Infinity"),
        ("[" * 100_000, "nested too deeply"),
        ('{"i": ' + "9" * 5000 + "}", "JSON"),
    ],
)
def test_arguments_that_are_no_object_are_the_guards_to_answer(arguments: str, words: str) -> None:
    planned = read("", "tools", ToolCall("c1", "combine", arguments)).plan[0]
    assert not planned.usable
    assert words in planned.problem
    assert malformed("combine", arguments) is not None


@pytest.mark.parametrize(
    "arguments", ['{"i": 1e999, "j": 1, "op": "+"}', '{"i": 0, "j": 1, "op": "\\ud83d"}',
                  '{"i": 99999999999999999999999, "j": 1, "op": "+"}', '{"i": 0}', '{"malformed": 1}']
)  # fmt: skip
def test_objects_that_no_tool_takes_are_the_guards_to_answer(arguments: str) -> None:
    assert malformed("combine", arguments) is not None


def test_an_unknown_tool_is_the_guards_to_answer() -> None:
    problem = malformed("fly", '{"to": "moon"}')
    assert problem is not None
    assert "unknown tool 'fly'" in problem


def malformed(name: str, arguments: str) -> str | None:
    """Return what a guarded world answers to a call, None where it takes it."""
    (action,) = done(read("", "tools", ToolCall("c1", name, arguments)))
    recorder = Recorder(Toy24())
    world = Guard(recorder, [recorder])
    world.reset(0, {"task": "1-2-3-4"})
    response = world.step(action)
    problem = response.info.get("malformed")
    return None if problem is None else str(problem)


def test_strict_json_is_read_as_it_is() -> None:
    assert read_json('{"a": [1, 2.5, null, true, "\\n"]}') == {"a": [1, 2.5, None, True, "\n"]}


@pytest.mark.parametrize(
    "text", ["<think" * 20_000, "```x\n" * 20_000, "<action " * 20_000, "< " * 50_000, "fly away\n" * 20_000,
             "*" * 100_000, "<action>" + "stop\n" * 20_000 + "fly</action>", "`" * 100_000, "[" * 100_000]
)  # fmt: skip
@pytest.mark.parametrize("way", FORMATS)
def test_long_replies_are_read_quickly(text: str, way: Format) -> None:
    began = time.perf_counter()
    read(text, way)
    assert time.perf_counter() - began < 2.0


def test_no_mark_arises_where_reasoning_was_cut_out() -> None:
    assert outside_reasoning("<act<think>x</think>ion>stop()</action>") == ("<act\nion>stop()</action>", True)
    assert not done(read("<act<think>x</think>ion>stop()</action>", "think_action"))


def test_broken_arguments_reach_no_tool_that_takes_any_object() -> None:
    anything = Tool.described("anything", "Takes anything.", {"type": "object"})
    (planned,) = read_reply(Answer("", (ToolCall("c1", "anything", "{broken"),)), "tools", (anything,)).plan
    assert planned.action is not None
    assert anything.problem_with(planned.action.kwargs) is not None


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("<analysis>", "</analysis>"),
        ("<scratchpad>", "</scratchpad>"),
        ("<reflection>", "</reflection>"),
        ("<reasoning_content>", "</reasoning_content>"),
        ("<thinking>", "</thinking>"),
        ("<antThinking>", "</antThinking>"),
        ("<seed:think>", "</seed:think>"),
        ("<|thinking|>", "<|/thinking|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<start_of_thought>", "<end_of_thought>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        ("&lt;think&gt;", "&lt;/think&gt;"),
        ("\uff1cthink\uff1e", "\uff1c/think\uff1e"),
    ],
)
def test_no_models_mark_of_reasoning_lets_a_call_out(start: str, end: str) -> None:
    spoken, closed = outside_reasoning(f"{start} stop() {end} undo()")
    assert closed
    assert "stop" not in spoken
    assert "undo()" in spoken
    assert "stop" not in outside_reasoning(f"{start} stop()")[0]
