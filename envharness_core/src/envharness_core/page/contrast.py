"""What differs between two texts, as runs that a page can mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Run: TypeAlias = tuple[str, bool]
"""A piece of text, and whether the other text lacks it."""

_WORDS = re.compile(r"\s+|[^\s]+")
_MOST_WORDS = 2_000
_MOST_LINES = 4_000


def contrast(left: str, right: str) -> tuple[list[Run], list[Run]]:
    """Return both texts as runs, by words, or by lines where they are long.

    The runs of a side put together are its text. Texts of more than 4,000 lines are marked as a whole.
    """
    if left == right:
        return [(left, False)], [(right, False)]
    one, two = _pieces(left, right)
    if max(len(one), len(two)) > _MOST_LINES:
        return [(left, True)], [(right, True)]
    blocks = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    lefts = [(one[a:b], tag != "equal") for tag, a, b, _, _ in blocks]
    rights = [(two[a:b], tag != "equal") for tag, _, _, a, b in blocks]
    return list(_joined(lefts)), list(_joined(rights))


def _pieces(left: str, right: str) -> tuple[list[str], list[str]]:
    one, two = _WORDS.findall(left), _WORDS.findall(right)
    if max(len(one), len(two)) <= _MOST_WORDS:
        return one, two
    return left.splitlines(keepends=True), right.splitlines(keepends=True)


def _joined(parts: Sequence[tuple[list[str], bool]]) -> Iterator[Run]:
    for pieces, changed in parts:
        if pieces:
            yield "".join(pieces), changed
