"""What is true in a game, and how queries are answered from it, in the order in which upstream answers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envharness_bridge_alfworld.engine.compiled import Fact, Predicate, Query, Signature, Var

Mapping = dict[Var, Var]
"""Which thing each placeholder stands for."""


class Facts:
    """A set of facts by their signatures; queries see those of a signature in sorted order."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._held: dict[Signature, set[tuple[Var, ...]]] = {}
        self._sorted: dict[Signature, list[tuple[Var, ...]]] = {}
        for fact in facts:
            self.add(fact)

    def copy(self) -> Facts:
        """Return facts that change on their own."""
        other = Facts()
        other._held = {signature: set(held) for signature, held in self._held.items()}
        return other

    def add(self, fact: Fact) -> None:
        """Make something true."""
        signature = signature_of(fact)
        self._held.setdefault(signature, set()).add(fact[1])
        self._sorted.pop(signature, None)

    def discard(self, fact: Fact) -> None:
        """Make something no longer true, be it or not."""
        signature = signature_of(fact)
        if signature in self._held:
            self._held[signature].discard(fact[1])
            self._sorted.pop(signature, None)

    def of(self, signature: Signature) -> list[tuple[Var, ...]]:
        """Return the arguments of all facts with a signature, sorted."""
        found = self._sorted.get(signature)
        if found is None:
            found = self._sorted[signature] = sorted(self._held.get(signature, ()))
        return found

    def named(self, name: str) -> list[tuple[Var, ...]]:
        """Return the arguments of all facts with a predicate's name, sorted."""
        return sorted(args for signature, held in self._held.items() if signature[0] == name for args in held)

    def answers(self, query: Query, mapping: Mapping) -> Iterator[Mapping]:
        """Yield every way to meet a query, as mappings that extend the given one; each is its receiver's own.

        Distinct placeholders never stand for the same thing.
        """
        for found in self._met(query, 0, dict(mapping), set(mapping.values())):
            yield dict(found)

    def _met(self, query: Query, depth: int, mapping: Mapping, used: set[Var]) -> Iterator[Mapping]:
        if depth == len(query):
            yield mapping
            return
        predicate = query[depth]
        for signature in predicate.signatures:
            for arguments in self.of(signature):
                bound: list[Var] = []
                if _bind(predicate, arguments, mapping, used, bound):
                    yield from self._met(query, depth + 1, mapping, used)
                for placeholder in bound:
                    used.discard(mapping.pop(placeholder))


def _bind(
    predicate: Predicate, arguments: tuple[Var, ...], mapping: Mapping, used: set[Var], bound: list[Var]
) -> bool:
    """Let placeholders stand for arguments, noting which are new; say whether they fit."""
    for placeholder, thing in zip(predicate.parameters, arguments, strict=False):
        known = mapping.get(placeholder)
        if known is None:
            if thing in used:
                return False
            mapping[placeholder] = thing
            used.add(thing)
            bound.append(placeholder)
        elif known != thing:
            return False
    return True


def signature_of(fact: Fact) -> Signature:
    """Return a fact's predicate and the types of its arguments."""
    return (fact[0], *[kind for _, kind in fact[1]])


def opposite(fact: Fact) -> Fact:
    """Return what is true when a fact isn't."""
    name, arguments = fact
    return (name.removeprefix("not_") if name.startswith("not_") else f"not_{name}", arguments)
