"""Exact search in the game of 24."""

from __future__ import annotations

from functools import lru_cache

from envharness_core.toy24.puzzles import TARGET, Hand
from envharness_core.toy24.solver import Option, outlook


@lru_cache(maxsize=1 << 14)
def winning(hand: Hand) -> tuple[Option, ...] | None:
    """Return moves that make 24 of a hand, always the same ones; None where there are none."""
    if len(hand) <= 1:
        return () if hand == (TARGET,) else None
    for option in outlook(hand):
        rest = winning(option.child)
        if rest is not None:
            return option, *rest
    return None
