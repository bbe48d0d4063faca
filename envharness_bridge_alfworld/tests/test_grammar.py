"""Texts that are derived from a grammar: what expressions may do, and which alternative counts."""

from __future__ import annotations

import pytest

from envharness_bridge_alfworld.engine.compiled import (
    Alternative,
    Each,
    Expression,
    Listed,
    Predicate,
    Rule,
    Text,
)
from envharness_bridge_alfworld.engine.facts import Facts
from envharness_bridge_alfworld.engine.grammar import Entity, GameError, Grammar

MUG, CUP, DESK = ("mug_1", "object"), ("cup_1", "object"), ("desk_1", "receptacle")
THING, R = ("o", "object"), ("r", "receptacle")
ON = (Predicate((THING, R), (("inreceptacle", "object", "receptacle"),)),)
RULES = {
    "list_empty": (Alternative(None, (Text("nothing"),)),),
    "list_separator": (Alternative(None, (Text(", "),)),),
    "list_last_separator": (Alternative(None, (Text(", and "),)),),
    "told": (Alternative(ON, (Text("something"),)), Alternative(None, (Text("nothing at all"),))),
}
ENTITIES = {
    thing: Entity(thing, kind, name)
    for (thing, kind), name in ((MUG, "mug 1"), (CUP, "cup 1"), (DESK, "desk 1"))
}
GRAMMAR = Grammar(RULES, ENTITIES)
LIST = Listed(Each(Expression(" o.indefinite + ' ' + o.name "), ON))


def told(*facts: tuple[str, tuple[tuple[str, str], ...]]) -> str:
    return GRAMMAR.derive([LIST], Facts(facts), GRAMMAR.context({R: DESK}))


def test_lists_read_as_in_a_sentence() -> None:
    on = [("inreceptacle", (thing, DESK)) for thing in (MUG, CUP)]
    assert told() == "nothing"
    assert told(on[0]) == "a mug 1"
    assert told(*on) == "a cup 1, and a mug 1"


def test_the_first_alternative_that_applies_counts() -> None:
    context = GRAMMAR.context({R: DESK})
    assert GRAMMAR.derive([Rule("told")], Facts(), context) == "nothing at all"
    assert GRAMMAR.derive([Rule("told")], Facts([("inreceptacle", (MUG, DESK))]), context) == "something"
    with pytest.raises(GameError, match="#untold#"):
        GRAMMAR.derive([Rule("untold")], Facts(), context)


@pytest.mark.parametrize(
    "code", ["r", "r.name", "r.name or r.id", "r.indefinite + ' ' + r.name", " r.desc and 'x' or r.name"]
)
def test_expressions_of_names_and_texts_are_computed(code: str) -> None:
    assert GRAMMAR.derive([Expression(code)], Facts(), GRAMMAR.context({R: DESK})).endswith("desk 1")


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('true')",
        "r.__class__",
        "().__class__.__base__.__subclasses__()",
        "[x for x in r.name]",
        "r.name.format(r)",
        "(lambda: 1)()",
        "'a' * 9",
        "9 ** 9",
        "f'{r}'",
        "r.name if",
        "(" * 300 + "r" + ")" * 300,
    ],
)
def test_expressions_that_do_anything_else_are_refused(code: str) -> None:
    with pytest.raises(GameError, match='engine = "stock"'):
        GRAMMAR.derive([Expression(code)], Facts(), GRAMMAR.context({R: DESK}))
