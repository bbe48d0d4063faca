"""Playing a compiled game on upstream's library: it decides what can be done, what that changes, and who has won."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import fast_downward
from attrs import frozen

from envharness_bridge_alfworld.engine.compiled import (
    ActionText,
    CompiledGame,
    Each,
    Fact,
    Listed,
    Signature,
    Symbol,
    Var,
)
from envharness_bridge_alfworld.engine.facts import Facts, opposite
from envharness_bridge_alfworld.engine.grammar import Context, Entity, GameError, Grammar, rules_in
from envharness_bridge_alfworld.engine.messages import Shown

NOTHING = "Nothing happens."
"""What this world says to a command that it doesn't take."""


@frozen
class _Operator:
    """An operator of the planning task, with what the agent calls it."""

    name: str
    command: str
    action: ActionText
    context: Context


class FastGame:
    """A game that is played again and again; texts and commands are upstream's own, to the character.

    Args:
        compiled: the game.
        library: upstream's library, which holds one game at a time; ``begin`` takes it over.
    """

    def __init__(self, compiled: CompiledGame, library: Any) -> None:
        self._compiled = compiled
        self._library = library
        self._sas = compiled.sas.encode()
        self._first = Facts(compiled.facts)
        entities = {
            thing: Entity(thing, compiled.types[thing], name) for thing, name in compiled.names.items()
        }
        self._grammar = Grammar(compiled.rules, entities)
        self._told = _predicates(compiled, [action.command for action in compiled.actions.values()])
        self._known: dict[int, _Operator] = {}
        self._renamed = False
        self._effects: dict[bytes, Fact] = {}
        self._facts = self._first
        self._here: list[tuple[_Operator, Any]] = []
        self._intro = ""

    def begin(self) -> Shown:
        """Start anew."""
        self._library.load_sas(self._sas)
        if self._renamed:
            self._known.clear()
            self._renamed = False
        self._facts = self._first.copy()
        if not self._intro:
            self._intro = self._grammar.derive(self._compiled.intro, self._facts, self._grammar.context({}))
        return self._shown(self._intro, understood=True)

    def do(self, command: str) -> Shown:
        """Do a command; one that the game doesn't take changes nothing."""
        wanted = command.strip()
        for operator, raw in self._here:
            if operator.command == wanted:
                self._apply(raw)
                text = self._grammar.derive(operator.action.feedback, self._facts, operator.context)
                return self._shown(text, understood=True)
        return self._shown(NOTHING, understood=False)

    def plan(self, sas: str) -> list[str] | None:
        """Return the commands by which the library's planner wins from here, or None.

        Args:
            sas: the planning task as the planner wants it.
        """
        self._library.load_sas_replan(sas.encode())
        if not self._library.replan(False):  # noqa: FBT003 - a C function's
            return None
        steps = (fast_downward.Operator * self._library.get_last_plan_length())()
        self._library.get_last_plan(steps)
        return [self._named(step.name).command for step in steps]

    def _apply(self, raw: Any) -> None:
        effects = (fast_downward.Atom * raw.nb_effect_atoms)()
        self._library.apply_operator(raw.id, effects)
        changed = set()
        for effect in effects:
            fact = self._fact(effect._name)
            self._facts.discard(opposite(fact))
            self._facts.add(fact)
            changed.add(fact[0].removeprefix("not_"))
        if changed & self._told:  # what a command is called may depend on what has changed
            self._known.clear()
            self._renamed = True

    def _shown(self, text: str, *, understood: bool) -> Shown:
        self._here = [*self._applicable()]
        commands = sorted({operator.command for operator, _ in self._here})
        held = sorted({self._compiled.names[arguments[-1][0]] for arguments in self._facts.named("holds")})
        return Shown(text, commands, bool(self._library.check_goal()), held, understood)

    def _applicable(self) -> Iterable[tuple[_Operator, Any]]:
        """Yield what can be done, in the library's order, the first of those with one name."""
        count = self._library.get_applicable_operators_count()
        found = (fast_downward.Operator * count)()
        self._library.get_applicable_operators(found)
        seen = set()
        for raw in found:
            operator = self._known.get(raw.id)
            if operator is None:
                operator = self._known[raw.id] = self._named(raw.name)
            if operator.name not in seen:
                seen.add(operator.name)
                yield operator, raw

    def _named(self, name: str) -> _Operator:
        action_name, *things = name.split()
        action = self._compiled.actions.get(action_name)
        if action is None:
            raise GameError(f"the game's grammar has no action {action_name!r}")
        mapping: dict[Var, Var] = {
            placeholder: (thing, placeholder[1])
            for placeholder, thing in zip(action.parameters, things, strict=False)
        }
        context = self._grammar.context(mapping)
        command = self._grammar.derive(action.command, self._facts, context)
        if "{" in command or "}" in command:
            command = command.format(**self._compiled.names)
        return _Operator(name, command, action, context)

    def _fact(self, raw: bytes) -> Fact:
        fact = self._effects.get(raw)
        if fact is None:
            fact = self._effects[raw] = fact_of(raw.decode("cp1252"), self._compiled.types)
        return fact


def fact_of(atom: str, types: dict[str, str]) -> Fact:
    """Read an atom as the library writes it, such as ``NegatedAtom holds(agent1, mug)``."""
    kind, _, rest = atom.partition(" ")
    name, _, inside = rest.partition("(")
    things = [thing for thing in inside[:-1].split(", ") if thing]
    return (
        f"not_{name}" if kind == "NegatedAtom" else name,
        tuple((thing, types[thing]) for thing in things),
    )


def _predicates(compiled: CompiledGame, texts: Iterable[Sequence[Symbol]]) -> set[str]:
    """Return the predicates on which texts depend, without negation."""
    found: set[str] = set()
    todo, seen = [symbol for text in texts for symbol in text], set[str]()
    while todo:
        symbol = todo.pop()
        each = symbol.each if isinstance(symbol, Listed) else symbol
        if isinstance(each, Each) and each.query is not None:
            found |= {_name(signature) for predicate in each.query for signature in predicate.signatures}
        for name in rules_in(symbol):
            if name not in seen:
                seen.add(name)
                for alternative in compiled.rules.get(name, ()):
                    todo += alternative.symbols
                    for predicate in alternative.condition or ():
                        found |= {_name(signature) for signature in predicate.signatures}
    return found


def _name(signature: Signature) -> str:
    return signature[0].removeprefix("not_")
