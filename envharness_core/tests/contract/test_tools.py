"""Tools: the schema of a signature, and what is said of malformed calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.data import Action
from envharness_core.errors import PluginError
from envharness_core.testing import actions, malformed_actions
from envharness_core.tools import Tool, Toolbox


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Node(msgspec.Struct):
    inner: Optional["Node"] = None  # noqa: UP037, UP045 - refers to itself


def nested(node: Node) -> None:
    """Take a tree."""


def everything(
    index: Annotated[int, msgspec.Meta(description="from 0", ge=0)],
    op: Literal["+", "-"],
    names: list[str],
    table: dict[str, int],
    flag: bool,
    place: Point,
    maybe: Optional[int] = None,  # noqa: UP045 - as people write it
    share: float = 0.5,
    either: int | str = 1,
    many: tuple[int, ...] = (),
    empty: list[str] = [],  # noqa: B006 - as people write it
) -> None:
    """Take everything.

    And more words.
    """


def nothing() -> None:
    """Take nothing."""


EVERYTHING, NOTHING = Tool.of(everything), Tool.of(nothing)
GOOD: dict[str, Any] = {
    "index": 0,
    "op": "+",
    "names": ["a"],
    "table": {"a": 1},
    "flag": True,
    "place": {"x": 1},
}


def test_the_schema_is_that_of_the_signature() -> None:
    schema: Any = EVERYTHING.schema
    assert EVERYTHING.name == "everything"
    assert EVERYTHING.description == "Take everything.\n\nAnd more words."
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["index", "op", "names", "table", "flag", "place"]
    properties = schema["properties"]
    assert properties["index"] == {"type": "integer", "description": "from 0", "minimum": 0}
    assert properties["op"] == {"enum": ["+", "-"]}
    assert properties["names"] == {"type": "array", "items": {"type": "string"}}
    assert properties["table"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert properties["flag"] == {"type": "boolean"}
    assert properties["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert properties["share"] == {"type": "number", "default": 0.5}
    assert properties["empty"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert properties["place"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert NOTHING.schema == {"title": "nothing", "type": "object", "properties": {}, "required": [],
                              "additionalProperties": False}  # fmt: skip
    assert EVERYTHING.as_json().keys() == {"name", "description", "schema"}


def test_a_method_has_no_self() -> None:
    class Bridge:
        def act(self, text: str) -> None:
            """Act."""

    assert Tool.of(Bridge().act).schema["required"] == ["text"]
    assert Tool.of(Bridge.act).schema["required"] == ["text"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"index": -1}, "Expected `int` >= 0 - at `$.index`"),
        ({"index": "0"}, "Expected `int`, got `str` - at `$.index`"),
        ({"index": True}, "Expected `int`, got `bool`"),
        ({"index": 1.0}, "Expected `int`, got `float`"),
        ({"op": "*"}, "Invalid enum value '*' - at `$.op`"),
        ({"names": "a"}, "Expected `array`, got `str`"),
        ({"names": [1]}, "Expected `str`, got `int` - at `$.names[0]`"),
        ({"table": {"a": None}}, "Expected `int`, got `null`"),
        ({"flag": 1}, "Expected `bool`, got `int`"),
        ({"place": {}}, "missing required field `x` - at `$.place`"),
        ({"maybe": "1"}, "Expected `int | null`, got `str`"),
        ({"extra": 1}, "unknown field `extra`"),
        ({"op": "\ud83d"}, "lone surrogate"),
        ({"\ud83d": 1}, "lone surrogate"),
    ],
)
def test_a_wrong_argument_is_said(change: dict[str, Any], problem: str) -> None:
    assert EVERYTHING.problem_with(GOOD) is None
    said = EVERYTHING.problem_with({**GOOD, **change})
    assert said is not None
    assert problem in said
    said.encode()


def test_a_missing_argument_and_none_at_all() -> None:
    said = EVERYTHING.problem_with({})
    assert said == "Object missing required field `index`"
    assert NOTHING.problem_with({}) is None
    junks: list[object] = [None, [], "", "text", 7]
    for junk in junks:
        said = NOTHING.problem_with(junk)
        assert said == f"the arguments must be an object, got {type(junk).__name__}"


def test_what_is_nested_too_deeply_is_said() -> None:
    tree: dict[str, Any] = {}
    for _ in range(100_000):
        tree = {"inner": tree}
    assert Tool.of(nested).problem_with({"node": {"inner": {}}}) is None
    assert Tool.of(nested).problem_with({"node": tree}) == "nested too deeply, or contains itself"


@pytest.mark.parametrize("name", ["no_such_tool", "", None, 3, "\ud83d"])
def test_an_unknown_tool_is_said_with_those_that_there_are(name: Any) -> None:
    said = Toolbox((EVERYTHING, NOTHING)).problem_with(Action(name))
    assert said == f"unknown tool {name!r}; the tools are: everything, nothing"


def unannotated(x) -> None:  # type: ignore[no-untyped-def]
    """Say nothing of x."""


def variadic(*parts: int) -> None:
    """Take any number."""


def keywords(**parts: int) -> None:
    """Take any names."""


def foreign(x: Toolbox) -> None:
    """Take what JSON can't hold."""


def unsafe(x: list[int] = [1]) -> None:  # noqa: B006 - what is refused
    """Have a default that is shared."""


def dangling(x: NoSuchName) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Name a type that isn't there."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (unannotated, "tool unannotated: annotate 'x'"),
        (variadic, r"tool variadic: \*parts can't be described"),
        (keywords, r"tool keywords: \*parts can't be described"),
        (foreign, "tool foreign: its parameters can't be described"),
        (unsafe, "tool unsafe: its parameters can't be described"),
        (dangling, "tool dangling: its parameters can't be described: name 'NoSuchName'"),
    ],
)
def test_a_signature_that_no_schema_describes_is_the_authors_error(function: Any, problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        Tool.of(function)


@given(st.data())
def test_drawn_actions_are_well_formed_and_malformed_ones_are_not(data: st.DataObject) -> None:
    tools = (EVERYTHING, NOTHING)
    toolbox = Toolbox(tools)
    assert toolbox.problem_with(data.draw(actions(tools))) is None
    assert toolbox.problem_with(data.draw(malformed_actions(tools))) is not None
