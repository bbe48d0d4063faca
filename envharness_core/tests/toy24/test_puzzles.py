"""The arithmetic is exact, and there are as many puzzles as there are."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envharness_core.toy24 import puzzles
from envharness_core.toy24.puzzles import (
    OPERATORS,
    Number,
    apply,
    deal,
    multisets,
    parse,
    puzzle_of,
    show,
    solutions,
)

NUMBERS = st.builds(puzzles.reduced, st.integers(-99, 99), st.integers(1, 40))
HANDS = st.lists(st.integers(1, 13), min_size=4, max_size=4).map(lambda numbers: tuple(sorted(numbers)))


def fraction(number: Number) -> Fraction:
    return Fraction(*number)


def winnable(numbers: tuple[Fraction, ...]) -> bool:
    """Search signed rationals by brute force, as a model of ``solutions``."""
    if len(numbers) == 1:
        return numbers[0] == 24
    return any(
        winnable((*rest, made))
        for a, b, *rest in permutations(numbers)
        for made in (a + b, a - b, a * b, *((a / b,) if b else ()))
    )


def test_counts() -> None:
    assert len(list(multisets())) == 1820
    assert len(puzzles.puzzles()) == 1362


def test_splits_are_disjoint_stable_and_of_the_promised_size() -> None:
    counts = Counter(puzzle.split for puzzle in puzzles.puzzles().values())
    assert set(counts) == set(puzzles.SPLITS)
    assert counts == {"train": 960, "validation": 214, "test": 188}


def test_known_puzzles() -> None:
    hard = puzzle_of("3-3-8-8")
    assert hard is not None
    assert (hard.solutions, hard.needs_fraction, hard.numbers) == (1, True, (3, 3, 8, 8))
    easy = puzzle_of("2-3-4-12")
    assert easy is not None
    assert easy.solutions > 10
    assert not easy.needs_fraction


@pytest.mark.parametrize("task", ["1-1-1-1", "8-3-8-3", "3-3-8", "3-3-8-14", "0-3-8-8", "03-3-8-8", "x", ""])
def test_no_puzzle(task: str) -> None:
    assert puzzle_of(task) is None


def test_listing_alone_or_together_agrees() -> None:
    for task, puzzle in list(puzzles.puzzles().items())[:50]:
        assert puzzle_of(task) == puzzle
        assert puzzles.split_of(task) == puzzle.split


@given(a=NUMBERS, b=NUMBERS, operator=st.sampled_from(OPERATORS))
def test_arithmetic_is_that_of_fractions(a: Number, b: Number, operator: str) -> None:
    made = apply(a, operator, b)
    x, y = fraction(a), fraction(b)
    if operator == "/":
        assert made == (None if y == 0 else (x / y).as_integer_ratio())
    else:
        expected = {"+": x + y, "-": x - y, "*": x * y}[operator]
        assert made == expected.as_integer_ratio()


@given(NUMBERS)
def test_numbers_round_trip(number: Number) -> None:
    assert parse(show(number)) == number


@pytest.mark.parametrize("text", ["2/4", "3/1", "1/-2", "", "x", "1/0", "+3", " 3", "1_0"])
def test_nonsense_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"lowest terms|invalid literal"):
        parse(text)


@settings(deadline=None, max_examples=25)
@given(HANDS)
def test_solvable_as_a_brute_force_search_says(numbers: tuple[int, ...]) -> None:
    assert bool(solutions(deal(numbers))) == winnable(tuple(map(Fraction, numbers)))


@settings(deadline=None)
@given(HANDS)
def test_solutions_are_trees_that_end_in_24(numbers: tuple[int, ...]) -> None:
    for tree in solutions(deal(numbers)):
        assert any(made == (24, 1) for _, made in tree)
        for (x, y), made in tree:
            magnitudes = [apply(a, op, b) for (a, b), op in product([(x, y), (y, x)], OPERATORS)]
            assert made in [(abs(n[0]), n[1]) for n in magnitudes if n is not None]


def test_importing_computes_nothing_and_listing_is_quick() -> None:
    script = (
        "import time; from envharness_core.toy24 import puzzles; assert not puzzles.puzzles.cache_info().currsize;"
        "t = time.process_time(); puzzles.puzzles(); print(time.process_time() - t)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.0
