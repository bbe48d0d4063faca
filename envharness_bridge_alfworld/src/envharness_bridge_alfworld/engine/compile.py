"""Compiling a game file with upstream's own parsers and translator; the one slow step, done once for a game."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from envharness_bridge_alfworld.engine.compiled import (
    ActionText,
    Alternative,
    CompiledGame,
    Each,
    Expression,
    Fact,
    Listed,
    Predicate,
    Query,
    Rule,
    Symbol,
    Text,
)
from envharness_bridge_alfworld.engine.grammar import GameError
from envharness_bridge_alfworld.engine.play import fact_of


def compile_game(game: Mapping[str, str], library: Any) -> CompiledGame:
    """Compile a game.

    Args:
        game: a game file's contents: ``pddl_domain``, ``grammar``, ``pddl_problem``.
        library: upstream's library, which holds the game afterwards.
    """
    from textworld.envs.pddl import logic as upstream

    logic = upstream.GameLogic(domain=game["pddl_domain"], grammar=game["grammar"])
    task, sas = translate(game["pddl_domain"], game["pddl_problem"])
    types = {thing.name: thing.type_name for thing in task.objects}
    library.load_sas(sas.encode())
    facts = [*_stated(task.init, types), *_found(library, types)]
    reader = _Reader(task.types)
    parameters = {
        action.name: tuple((each.name.strip("?"), each.type_name) for each in action.parameters)
        for action in task.actions
    }
    return CompiledGame(
        sas=sas,
        facts=tuple(facts),
        types=types,
        names=_names({thing for _, arguments in facts for thing, _ in arguments}),
        actions={
            name: ActionText(
                parameters[name], reader.text(action.template), reader.text(action.feedback_rule)
            )
            for name, action in logic.actions.items()
            if name in parameters
        },
        rules={name: tuple(map(reader.alternative, rules)) for name, rules in logic.grammar._rules.items()},
        intro=reader.text("#intro#"),
    )


def translate(domain: str, problem: str, *, optimise: bool = False) -> tuple[Any, str]:
    """Return a planning task, and what the library loads of it: all of it, or what its planner wants."""
    import fast_downward

    with _arguments_kept():
        translated: tuple[Any, str] = fast_downward.pddl2sas(domain, problem, optimize=optimise)
    return translated


@contextmanager
def _arguments_kept() -> Iterator[None]:
    """Undo what the translator does to the process's arguments."""
    kept = sys.argv
    try:
        yield
    finally:
        sys.argv = kept


def _stated(atoms: Sequence[Any], types: Mapping[str, str]) -> Iterator[Fact]:
    """Yield what a problem states, its costs and distances aside."""
    from fast_downward.translate.pddl.conditions import Atom
    from fast_downward.translate.pddl.f_expression import Assign

    for atom in atoms:
        if isinstance(atom, Atom) and atom.predicate != "=":
            yield atom.predicate, tuple((thing, types[thing]) for thing in atom.args)
        elif isinstance(atom, Assign) and atom.fluent.symbol != "total-cost":
            name = str(atom.expression.value)
            if not name.isdigit():
                yield name, tuple((thing, types[thing]) for thing in atom.fluent.args)


def _found(library: Any, types: dict[str, str]) -> Iterator[Fact]:
    """Yield what the library holds to be true."""
    import fast_downward

    atoms = (fast_downward.Atom * library.get_state_size())()
    library.get_state(atoms)
    for atom in atoms:
        fact = fact_of(atom.name, types)
        if not fact[0].startswith("not_"):
            yield fact


def _names(things: set[str]) -> dict[str, str]:
    """Return what ALFWorld calls each thing."""
    from alfworld.agents.utils.misc import Demangler
    from textworld.generator.game import EntityInfo

    demangler = Demangler(game_infos={thing: EntityInfo(thing, "") for thing in things})
    return {thing: demangler.demangle_alfred_name(thing) for thing in sorted(things)}


class _Reader:
    """Turns upstream's symbols into plain data."""

    def __init__(self, types: Sequence[Any]) -> None:
        from textworld.logic import Type, TypeHierarchy

        self._types = TypeHierarchy()
        for kind in types:
            try:
                self._types.add(Type(kind.name, kind.supertype_names))
            except ValueError:  # named twice
                continue

    def text(self, source: str) -> tuple[Symbol, ...]:
        """Read a text with symbols in it."""
        from textworld.envs.pddl.textgen import _parse_and_convert

        return tuple(map(self._symbol, _parse_and_convert(source, rule_name="symbols")))

    def alternative(self, rule: Any) -> Alternative:
        """Read one right side of a rule."""
        return Alternative(self._query(rule.condition), tuple(map(self._symbol, rule.rhs)))

    def _symbol(self, symbol: Any) -> Symbol:
        from textworld.envs.pddl import textgen

        if isinstance(symbol, textgen.TerminalSymbol):
            return Text(str(symbol.symbol))
        if isinstance(symbol, textgen.ListSymbol):
            return Listed(self._each(symbol.symbol))
        if isinstance(symbol, textgen.ConditionalSymbol):
            return self._each(symbol)
        return self._replaced(symbol)

    def _each(self, symbol: Any) -> Each:
        return Each(self._replaced(symbol.expression), self._query(symbol.given))

    def _replaced(self, symbol: Any) -> Rule | Expression:
        from textworld.envs.pddl import textgen

        if isinstance(symbol, textgen.NonterminalSymbol):
            return Rule(str(symbol.symbol))
        if isinstance(symbol, textgen.EvalSymbol):
            return Expression(symbol.expression)
        raise GameError(f"the game's grammar has a symbol that this engine doesn't know: {symbol!r}")

    def _query(self, source: str | None) -> Query | None:
        from textworld.logic import Rule as UpstreamRule

        if not source:
            return None
        return tuple(map(self._predicate, UpstreamRule.parse_conjunctive_query(source).preconditions))

    def _predicate(self, predicate: Any) -> Predicate:
        kinds = [self._types.get(kind) for kind in predicate.signature.types]
        signatures = tuple(
            (predicate.name, *[kind.name for kind in subtypes])
            for subtypes in self._types.multi_subtypes(kinds)
        )
        return Predicate(tuple((each.name, each.type) for each in predicate.parameters), signatures)
