"""A game made ready to play: its planning task, its first facts, and its grammar, as plain data.

It is what upstream's parsers and translator make of a game file, so that neither is needed to play it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Var: TypeAlias = tuple[str, str]
"""A thing of the game, or a placeholder for one: its name and its type."""

Signature: TypeAlias = tuple[str, ...]
"""A predicate's name and the types of its arguments."""

Fact: TypeAlias = tuple[str, tuple[Var, ...]]
"""A predicate's name and its arguments."""


class Predicate(msgspec.Struct, array_like=True, frozen=True):
    """A condition with placeholders, and under which signatures facts may meet it, in upstream's order."""

    parameters: tuple[Var, ...]
    signatures: tuple[Signature, ...]


Query: TypeAlias = tuple[Predicate, ...]
"""Conditions that hold together."""


class Text(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """A symbol that is itself."""

    text: str


class Rule(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """A symbol that a rule of the grammar replaces."""

    name: str


class Expression(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """A Python expression over the variables at hand, such as ``o.name``."""

    code: str


class Each(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """A symbol, once for each way to meet a query; once where there is none."""

    symbol: Rule | Expression
    query: Query | None


class Listed(msgspec.Struct, array_like=True, tag=True, frozen=True):
    """The symbols of ``each``, joined as a list in a sentence."""

    each: Each


Symbol: TypeAlias = Text | Rule | Expression | Each | Listed


class Alternative(msgspec.Struct, array_like=True, frozen=True):
    """One right side of a rule, and when it applies; None for always."""

    condition: Query | None
    symbols: tuple[Symbol, ...]


class ActionText(msgspec.Struct, array_like=True, frozen=True):
    """How an action reads as a command, and what is said when it was done."""

    parameters: tuple[Var, ...]
    command: tuple[Symbol, ...]
    feedback: tuple[Symbol, ...]


class CompiledGame(msgspec.Struct, array_like=True, frozen=True):
    """All that playing a game takes.

    Args:
        sas: the planning task as the engine's library reads it.
        facts: what is true at the start.
        types: the type of every thing, by its name.
        names: what the game calls each thing that a fact is about, by its name in the task.
        actions: by their names.
        rules: the grammar, by the names of its symbols.
        intro: what derives the first text.
    """

    sas: str
    facts: tuple[Fact, ...]
    types: dict[str, str]
    names: dict[str, str]
    actions: dict[str, ActionText]
    rules: dict[str, tuple[Alternative, ...]]
    intro: tuple[Symbol, ...]


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(CompiledGame).decode
