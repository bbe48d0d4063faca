"""Deriving text from a game's grammar: what upstream's grammar does, without parsing or copying anything again."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import TypeAlias

from attrs import define, frozen

from envharness_bridge_alfworld.engine.compiled import (
    Alternative,
    Each,
    Expression,
    Listed,
    Rule,
    Symbol,
    Text,
    Var,
)
from envharness_bridge_alfworld.engine.facts import Facts

_EMPTY, _BETWEEN, _LAST = Rule("list_empty"), Rule("list_separator"), Rule("list_last_separator")


class GameError(Exception):
    """A game does what this engine doesn't know; upstream's own may."""


@define
class Entity:
    """A thing as expressions of a grammar see it: what upstream's has, and nothing else."""

    id: str
    type: str
    name: str
    indefinite: str = "a"
    definite: str = "the"
    noun: str | None = None
    adj: str | None = None
    desc: str | None = None
    room_type: str | None = None
    synonyms: list[str] | None = None

    def __str__(self) -> str:
        return self.name


@frozen
class Context:
    """What a symbol is derived in: which things placeholders stand for, and by their names what expressions see."""

    mapping: dict[Var, Var]
    variables: dict[str, Entity]


_Placed: TypeAlias = tuple[Symbol, Context]


class Grammar:
    """The rules of a game.

    Args:
        rules: the alternatives of each symbol, the first that applies counts.
        entities: the game's things, by their names in the task.
    """

    def __init__(self, rules: Mapping[str, Sequence[Alternative]], entities: Mapping[str, Entity]) -> None:
        self._rules = rules
        self._entities = entities

    def context(self, mapping: dict[Var, Var]) -> Context:
        """Return the context of an action, or of nothing."""
        return Context(mapping, {name: self._entities[thing] for (name, _), (thing, _) in mapping.items()})

    def derive(self, symbols: Sequence[Symbol], facts: Facts, context: Context) -> str:
        """Return the text of symbols.

        Raises:
            GameError: no alternative of a rule applies, or there is no such rule.
        """
        out: list[str] = []
        for symbol in symbols:
            self._emit(symbol, facts, context, out)
        return "".join(out)

    def _emit(self, symbol: Symbol, facts: Facts, context: Context, out: list[str]) -> None:
        match symbol:
            case Text():
                out.append(symbol.text)
            case Rule():
                for inner in self._chosen(symbol.name, facts, context):
                    self._emit(inner, facts, context, out)
            case Expression():
                out.append(str(eval(_code(symbol.code), {"__builtins__": {}}, dict(context.variables))))  # noqa: S307
            case Each():
                for inner, place in self._each(symbol, facts, context):
                    self._emit(inner, facts, place, out)
            case Listed():
                for inner, place in _joined([*self._each(symbol.each, facts, context)], context):
                    self._emit(inner, facts, place, out)

    def _chosen(self, name: str, facts: Facts, context: Context) -> Sequence[Symbol]:
        for alternative in self._rules.get(name, ()):
            condition = alternative.condition
            if condition is None or any(True for _ in facts.answers(condition, context.mapping)):
                return alternative.symbols
        raise GameError(f"the game's grammar has no rule that applies for #{name}#")

    def _each(self, each: Each, facts: Facts, context: Context) -> Iterator[_Placed]:
        if each.query is None:
            yield each.symbol, context
            return
        for mapping in [*facts.answers(each.query, context.mapping)]:
            added = {name: self._entities[thing] for (name, _), (thing, _) in mapping.items()}
            yield each.symbol, Context(mapping, {**context.variables, **added})


def rules_in(symbol: Symbol) -> Iterator[str]:
    """Yield the names of the rules that a symbol uses itself."""
    match symbol:
        case Rule():
            yield symbol.name
        case Each():
            yield from rules_in(symbol.symbol)
        case Listed():
            yield from rules_in(symbol.each)
            yield from ("list_empty", "list_separator", "list_last_separator")


def _joined(items: list[_Placed], context: Context) -> Iterator[_Placed]:
    if not items:
        yield _EMPTY, context
        return
    for number, item in enumerate(items):
        if number:
            yield (_LAST if number == len(items) - 1 else _BETWEEN), context
        yield item


@cache
def _code(source: str) -> CodeType:
    """Compile an expression of a game, which comes from a file: names, their attributes, texts, ``+``, ``or``, ``and``.

    Raises:
        GameError: it is anything else.
    """
    try:
        tree = ast.parse(source.strip(), "<grammar>", "eval")
        known = all(map(_is_harmless, ast.walk(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        known = False
    if not known:
        raise GameError(
            f"the game's grammar computes {source!r:.200}, which this engine doesn't: choose engine = \"stock\""
        )
    return compile(tree, "<grammar>", "eval")


def _is_harmless(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return not name.startswith("_")
        case ast.Constant(value=value):
            return isinstance(value, str)
    return isinstance(
        node, ast.Expression | ast.BinOp | ast.Add | ast.BoolOp | ast.And | ast.Or | ast.expr_context
    )
