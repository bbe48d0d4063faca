"""The game of 24 in exact arithmetic: hands of numbers, puzzles, their splits and their difficulty.

A number is a ``Number``, a reduced pair (numerator, positive denominator): several times faster than ``Fraction``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from math import gcd
from typing import TypeAlias

from attrs import frozen

Number: TypeAlias = tuple[int, int]
"""An exact rational, reduced: (numerator, denominator > 0)."""

Hand: TypeAlias = tuple[Number, ...]
"""The numbers on the table, in ascending order."""

Node: TypeAlias = tuple[tuple[Number, Number], Number]
"""A node of a solution: the two values that are combined, ascending, and the value that they make."""

Tree: TypeAlias = frozenset[Node]
"""A solution of a puzzle: its three nodes."""

TARGET: Number = (24, 1)
LARGEST = 13
OPERATORS = ("+", "-", "*", "/")
SPLITS = ("train", "validation", "test")


@frozen
class Puzzle:
    """Four numbers from which 24 can be made, and how hard that is.

    Args:
        id: the ascending numbers, such as ``3-3-8-8``.
        split: ``train``, ``validation`` or ``test``.
        solutions: how many distinct solutions there are, as ``solutions()`` counts them.
        needs_fraction: whether each of them has a non-integer value on the way.
    """

    id: str
    split: str
    solutions: int
    needs_fraction: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        """The four numbers, ascending."""
        return tuple(int(part) for part in self.id.split("-"))


def reduced(numerator: int, denominator: int) -> Number:
    """Return numerator / denominator in lowest terms; the denominator isn't 0."""
    divisor = gcd(numerator, denominator)
    if denominator < 0:
        divisor = -divisor
    return numerator // divisor, denominator // divisor


def apply(a: Number, operator: str, b: Number) -> Number | None:
    """Return the exact result of ``a operator b``, or None for a division by zero."""
    an, ad = a
    bn, bd = b
    if operator == "*":
        return reduced(an * bn, ad * bd)
    if operator == "/":
        return reduced(an * bd, ad * bn) if bn else None
    return reduced(an * bd + bn * ad if operator == "+" else an * bd - bn * ad, ad * bd)


@lru_cache(maxsize=1 << 14)
def show(number: Number) -> str:
    """Return a number as it is written: ``8``, ``-2`` or ``8/3``."""
    return str(number[0]) if number[1] == 1 else f"{number[0]}/{number[1]}"


@lru_cache(maxsize=1 << 14)
def parse(text: str) -> Number:
    """Read what ``show`` writes.

    Raises:
        ValueError: it isn't a number in lowest terms.
    """
    numerator, _, denominator = text.partition("/")
    number = int(numerator), int(denominator or "1")
    if number[1] < 1 or show(number) != text or reduced(*number) != number:
        raise ValueError(f"{text!r} is not a number in lowest terms")
    return number


def value(number: Number) -> float:
    """Return a number as a float, to order numbers by: those of a puzzle are too far apart to round together."""
    return number[0] / number[1]


def deal(numbers: tuple[int, ...]) -> Hand:
    """Return integers as a hand."""
    return tuple((number, 1) for number in sorted(numbers))


def combined(hand: Hand, i: int, j: int, made: Number) -> Hand:
    """Return the hand without its numbers i and j, and with what was made of them."""
    rest = [number for index, number in enumerate(hand) if index not in (i, j)]
    return tuple(sorted((*rest, made), key=value))


def split_of(task: str) -> str:
    """Return a task's split, by a stable hash of its id: 70 % train, 15 % validation, 15 % test."""
    place = int.from_bytes(_hash(task), "big") % 100
    return "train" if place < 70 else "validation" if place < 85 else "test"


def multisets() -> Iterator[tuple[int, ...]]:
    """Yield the 1,820 multisets of four numbers from 1 to 13."""
    return combinations_with_replacement(range(1, LARGEST + 1), 4)


@lru_cache(maxsize=1)
def puzzles() -> dict[str, Puzzle]:
    """Return the 1,362 solvable puzzles by id, in the order of a stable hash, so that the first n are a fair sample."""
    found = (puzzle_of("-".join(map(str, numbers))) for numbers in multisets())
    solvable = [puzzle for puzzle in found if puzzle is not None]
    return {puzzle.id: puzzle for puzzle in sorted(solvable, key=lambda puzzle: _hash(puzzle.id))}


@lru_cache(maxsize=2048)
def puzzle_of(task: str) -> Puzzle | None:
    """Return one puzzle without computing the others, or None where the id names no solvable one."""
    numbers = _numbers_of(task)
    trees = solutions(deal(numbers)) if numbers is not None else frozenset()
    if not trees:
        return None
    needs_fraction = all(any(made[1] != 1 for _, made in tree) for tree in trees)
    return Puzzle(task, split_of(task), len(trees), needs_fraction)


def solutions(hand: Hand) -> frozenset[Tree]:
    """Return the distinct solutions of four positive numbers.

    A solution is a tree of values: three nodes, each of two values and what is made of them. Two that differ in order
    (3 * 8, 8 * 3), in which of two independent moves came first, in which of two equal numbers was used, or only in
    the operators (2 + 2, 2 * 2; 5 * 1, 5 / 1) are one. Values are magnitudes: 4 - 9 and 9 - 4 are one, for signs can
    always be pushed outwards (4 + (3 - 5) is 4 - (5 - 3)), so that nothing needs a negative value on the way.
    """
    found: set[Tree] = set()
    seen: set[tuple[Number, ...]] = set()
    for i, j in combinations(range(4), 2):
        x, y = hand[i], hand[j]
        z, u = (hand[k] for k in range(4) if k not in (i, j))
        if (x, y) in seen:
            continue
        seen.add((x, y))
        for v in _makeable(x, y):
            first = _node(x, y, v)
            for one, last in ((z, u), (u, z)):
                for w in _makeable(v, one) & _partners(last):
                    found.add(frozenset((first, _node(v, one, w), _node(w, last, TARGET))))
            for w in _makeable(z, u) & _partners(v):
                found.add(frozenset((first, _node(z, u, w), _node(v, w, TARGET))))
    return frozenset(found)


def _hash(task: str) -> bytes:
    return hashlib.blake2b(task.encode(), digest_size=8).digest()


def _numbers_of(task: str) -> tuple[int, ...] | None:
    """Read an id; None where it isn't exactly as ``puzzles`` writes it."""
    parts = task.split("-")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    numbers = tuple(sorted(map(int, parts)))
    written = "-".join(map(str, numbers))
    return numbers if written == task and numbers[0] >= 1 and numbers[-1] <= LARGEST else None


def _node(x: Number, y: Number, made: Number) -> Node:
    return ((x, y) if x <= y else (y, x)), made


@lru_cache(maxsize=1 << 16)
def _makeable(x: Number, y: Number) -> frozenset[Number]:
    """Return the magnitudes that one operator makes of two magnitudes."""
    xn, xd = x
    yn, yd = y
    across, back, below = xn * yd, yn * xd, xd * yd
    made = {reduced(across + back, below), reduced(abs(across - back), below), reduced(xn * yn, below)}
    if yn:
        made.add(reduced(across, back))
    if xn:
        made.add(reduced(back, across))
    return frozenset(made)


@lru_cache(maxsize=1 << 16)
def _partners(x: Number) -> frozenset[Number]:
    """Return the magnitudes from which, with x, one operator makes 24."""
    n, d = x
    target = TARGET[0]
    made = {reduced(abs(target * d - n), d), reduced(target * d + n, d), reduced(target * n, d)}
    if n:
        made |= {reduced(target * d, n), reduced(n, target * d)}
    return frozenset(y for y in made if TARGET in _makeable(x, y))
