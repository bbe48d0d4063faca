"""Calls as text: what is surely a call is read as it is meant, all else says how to write one, and nothing crashes."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.calls import CallError, parse_call, show_call, show_signature
from envharness_core.data import Action
from envharness_core.errors import DataError
from envharness_core.jsondata import copy_object
from envharness_core.testing import Counter, TextWorld
from envharness_core.testing.strategies import actions, malformed_actions
from envharness_core.tools import Tool
from envharness_core.toy24.bridge import Toy24


def search(query: str, pages: list[int], exact: bool = False, limit: int | None = None) -> None:
    """Search."""


def book(isbn: str, price: float, options: dict[str, str], kind: Literal["a", "1"] = "a") -> None:
    """Book."""


def note(text: Annotated[str, msgspec.Meta(max_length=99)] = "") -> None:
    """Note."""


TOY = tuple(Toy24().tools())
SHOP = tuple(Tool.of(function) for function in (search, book, note))
WORLD = tuple(TextWorld().tools())
EVERY = (TOY, SHOP, WORLD, tuple(Counter().tools()))


@pytest.mark.parametrize(
    "text",
    [
        'combine(0, 1, "*")',
        "combine(0, 1, op='*')",
        ' combine(op="""*""", j = 1 , i=+0,)\n',
        "combine 0 1 *",
        "combine 0 1 '*'",
        "combine 0  op=* j=1",
        'combine op="*" i=0 j=1',
        '{"name": "combine", "arguments": {"i": 0, "j": 1, "op": "*"}}',
        '{"id": "call_1", "type": "function", "name": "combine", "kwargs": {"i": 0, "j": 1, "op": "*"}}',
        "{'name': 'combine', 'parameters': {'i': 0, 'j': 1, 'op': '*'}}",
    ],
)
def test_one_call_has_many_spellings(text: str) -> None:
    assert parse_call(text, TOY) == Action("combine", {"i": 0, "j": 1, "op": "*"})


@pytest.mark.parametrize("text", ["undo", "undo()", " undo( ) ", '{"name": "undo"}'])
def test_a_call_without_arguments_needs_no_brackets(text: str) -> None:
    assert parse_call(text, TOY) == Action("undo")


@pytest.mark.parametrize(
    ("text", "kwargs"),
    [
        ('search("x", [1, 2], true, null)', {"query": "x", "pages": [1, 2], "exact": True, "limit": None}),
        ("search('x', (1,), limit=None)", {"query": "x", "pages": [1], "limit": None}),
        ("search 3 [1, 2] true 4", {"query": "3", "pages": [1, 2], "exact": True, "limit": 4}),
        ("search null [] limit=null", {"query": "null", "pages": [], "limit": None}),
        ('search "3 rings" [1] exact=False', {"query": "3 rings", "pages": [1], "exact": False}),
        ("search it's [1]", {"query": "it's", "pages": [1]}),
        ("search x=1 [1]", {"query": "x=1", "pages": [1]}),
        ('search "[1]" few', {"query": "[1]", "pages": "few"}),
        (
            "book 0042 3 {'a': 'b'} 1",
            {"isbn": "0042", "price": 3, "options": {"a": "b"}, "kind": "1"},
        ),
        ("book -1 -1.5e3 {}", {"isbn": "-1", "price": -1500.0, "options": {}}),
    ],
)
def test_words_become_what_the_schema_says(text: str, kwargs: dict[str, Any]) -> None:
    got = parse_call(text, SHOP).kwargs
    assert got == kwargs
    assert list(map(type, got.values())) == list(map(type, kwargs.values()))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"\d+\.\w"', r"\d+\.\w"),  # a pattern, as models write it: Python keeps these, with a warning
        (r'r"\d\n"', r"\d\n"),
        (r'"\ud83d\ude00"', "\N{GRINNING FACE}"),  # JSON's two halves
        (r'"\U0001f600 \x41 \101 \/ \\ \" \n"', '\N{GRINNING FACE} A A / \\ " \n'),
        ('"one\ntwo"', "one\ntwo"),
        ('"""say "hi" """', 'say "hi" '),
        ("'''a''b'''", "a''b"),
        ("('x')", "x"),
        ('"\0"', "\0"),
    ],
)
def test_texts_are_those_of_json_and_python(written: str, meant: str) -> None:
    assert parse_call(f"note({written})", SHOP) == Action("note", {"text": meant})


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("do go to desk 1", "go to desk 1"),
        ("go to desk 1", "go to desk 1"),
        ("look", "look"),
        ('do  (it\'s) "here", text=3 ', '(it\'s) "here", text=3'),
        ("find(x y", "find(x y"),
        ("{ echo; }", "{ echo; }"),
        ("do cat <<E\n a\nE", "cat <<E\n a\nE"),
        ('do("go")', "go"),
        ('do text="go to desk 1"', "go to desk 1"),
        ("do text='go'", "go"),
        ("do text=go to desk 1", "text=go to desk 1"),
    ],
)
def test_the_only_text_of_the_only_tool_needs_no_quotes(text: str, meant: str) -> None:
    assert parse_call(text, WORLD) == Action("do", {"text": meant})


def test_a_text_tool_among_others_takes_the_rest_of_the_line_and_needs_its_name() -> None:
    assert parse_call("note it's 3 = three", SHOP) == Action("note", {"text": "it's 3 = three"})
    with pytest.raises(CallError, match="no tool 'notes'"):
        parse_call("notes it's 3", SHOP)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("launch(1, when='now')", Action("launch", {"0": 1, "when": "now"})),
        ('{"name": "launch", "arguments": {"x": 1}}', Action("launch", {"x": 1})),
        ("combine(1)", Action("combine", {"i": 1})),
        ('combine(1, speed="x")', Action("combine", {"i": 1, "speed": "x"})),
        ("combine one 2 *", Action("combine", {"i": "one", "j": 2, "op": "*"})),
    ],
)
def test_what_is_surely_a_call_is_left_to_the_guard(text: str, action: Action) -> None:
    assert parse_call(text, TOY) == action


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is written"),
        ("combin 1 2 +", r"no tool 'combin' \(did you mean 'combine'\?\); write one.*: combine\(i, j, op\), undo"),
        ("combine(0, 1, *)", r"text stands in quotes, at '\*\)'; write it as combine\(i, j, op\)"),
        ("combine(0, 1", "the text ends"),
        ("combine(0, 1, '+', 2)", "takes 3 arguments, got 4"),
        ("combine 0 1 + 2", "takes 3 arguments"),
        ("combine(0, i=1)", "'i' is given twice"),
        ("combine(i=0, i=1)", "'i' is given twice"),
        ("combine(i=0, 1)", "without a name after one with a name"),
        ("combine i=0 i=1", "'i' is given twice"),
        ("combine(0, 1)\nundo()", "something follows the call: 'undo"),
        ("combine(NaN)", "expected a value"),
        ("combine(1e999)", "inf is not a JSON number"),
        ("combine(18446744073709551616)", "beyond 64 bits"),
        ("combine(007)", "expected a value"),
        ("combine(__import__('os').getcwd())", "expected a value"),
        ("combine(f'{1}')", "expected a value"),
        ("combine({1})", "key must be text"),
        ('combine({"a": 1, "a": 2})', "'a' is given twice"),
        (r'combine("C:\users")', "hexadecimal digits"),
        (r'combine("\ud83d")', "lone surrogate"),
        ("combine(\ud83d)", "lone surrogate"),
        ('{"name": "undo", "arguments": null}', "arguments: expected an object, got None"),
        ('{"name": "undo", "arguments": []}', r"arguments: expected an object, got \[\]"),
        ('{"name": "undo", "arguments": {}, "kwargs": {}}', "given twice"),
        ('{"name": "combine", "i": 0}', "has no 'i'"),
        ('{"i": 0}', 'needs a "name"'),
        ('{"name": "undo"} {"name": "undo"}', "something follows the call"),
        ('{"name": "undo', "expected a value"),
        ("do(go to desk 1)", "expected a value"),
        ("[" * 100_000, "no tool"),
        ("combine(" + "[" * 100_000, "nested deeper"),
        ("combine(" + "-" * 100_000 + "1)", "expected a value"),
        ("combine(" + "9" * 100_000 + ")", "beyond 64 bits"),
        ("x" * 1_000_001, "longer than"),
    ],
)  # fmt: skip
def test_what_is_no_call_says_what_is_wrong_and_how_to_write_one(text: str, said: str) -> None:
    with pytest.raises(CallError, match=f"(?s){said}") as caught:
        parse_call(text, TOY)
    assert "; write " in str(caught.value)


def test_a_call_of_the_only_tool_that_is_broken_is_no_text() -> None:
    for text in ("do(go to desk 1)", '{"name": "do", "arguments": {"text": "go'):
        with pytest.raises(CallError, match="write"):
            parse_call(text, WORLD)


def test_signatures_say_what_may_be_left_out() -> None:
    assert list(map(show_signature, SHOP)) == [
        "search(query, pages, exact=..., limit=...)",
        "book(isbn, price, options, kind=...)",
        "note(text=...)",
    ]


@given(st.data(), st.sampled_from(EVERY))
def test_what_is_shown_reads_back(data: st.DataObject, tools: Sequence[Tool]) -> None:
    action = data.draw(actions(tools))
    assert parse_call(show_call(action), tools) == action


_texts = st.text(st.characters(exclude_categories=["Cs"]))
_json: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        _texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)),
    max_leaves=10,
)


@given(st.builds(Action, _texts, st.dictionaries(_texts, _json, max_size=3)), st.sampled_from(EVERY))
def test_what_is_shown_of_any_action_reads_back(action: Action, tools: Sequence[Tool]) -> None:
    assert parse_call(show_call(action), tools) == action


@given(malformed_actions(TOY))
def test_what_is_no_json_is_shown_as_an_error_of_ours(action: Action) -> None:
    try:
        assert parse_call(show_call(action), TOY) == action
    except (DataError, CallError):  # CallError: a name that is null
        return


_snippets = st.sampled_from(
    [*"()[]{}'\"\\,=:-+.#;*", "\0", "\n", " ", '"""', "combine", "do", "search(", "note(", "name", "arguments", "i=",
     '{"name":', '"do"', "NaN", "Infinity", "null", "True", "1e999", "9" * 30, "[" * 80, "(" * 300, "-" * 300,
     "lambda:", "\\u", "\\N{DIGIT ONE}", "\ud83d", "\u2028", "0x1f", "1_0", "b''", "r'", "\U0010ffff"]
)  # fmt: skip


@given(
    st.one_of(
        st.text(),
        st.lists(_snippets, max_size=12).map("".join),
        st.lists(st.one_of(_snippets, st.text(string.printable, max_size=5)), max_size=12).map(" ".join),
    ),
    st.sampled_from([(), *EVERY]),
)
def test_hostile_text_is_an_action_of_strict_json_or_a_call_error(text: str, tools: Sequence[Tool]) -> None:
    try:
        action = parse_call(text, tools)
    except CallError as error:
        str(error).encode()  # it can be told
    else:
        action.name.encode()
        assert copy_object(action.kwargs) == action.kwargs
        assert parse_call(show_call(action), tools) == action


@given(_json)
def test_json_means_what_it_means_everywhere(value: object) -> None:
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1), repr(value)):
        assert parse_call(f"launch(x={written})", ()).kwargs["x"] == value
