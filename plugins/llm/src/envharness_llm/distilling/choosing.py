"""Which of many skills are kept: those of each kind by turns, and none that says the same as one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from envharness_core import Skill
from envharness_core.skills import lexical
from envharness_core.skills.lines import Line

_SIMILAR = 0.8
"""How alike the words of two skills may at most be; a model that reads the same twice seldom words it the same."""


def by_turns(groups: Sequence[Sequence[Skill]]) -> list[Skill]:
    """Return the first of each group, then the second of each, and so on."""
    return [skill for row in zip_longest(*groups) for skill in row if skill is not None]


def distinct(skills: Iterable[Skill]) -> tuple[list[Skill], list[str]]:
    """Return the skills without those that repeat an earlier one, and why those are gone.

    Words that turn advice into its opposite have to be the same: "never undo" doesn't repeat "undo".
    """
    kept: list[Line] = []
    gone: list[str] = []
    for line in map(Line, skills):
        same = next((other for other in kept if _repeats(other, line)), None)
        if same is None:
            kept.append(line)
        else:
            gone.append(f"the item {line.skill.title[:60]!r} says the same as {same.skill.title[:60]!r}")
    return [line.skill for line in kept], gone


def _repeats(one: Line, other: Line) -> bool:
    if lexical.negations(one.skill.title) == lexical.negations(other.skill.title):
        called, also = (set(lexical.terms(line.skill.title)) for line in (one, other))
        if called and called == also:
            return True
    if one.negations != other.negations:
        return False
    contents = [lexical.wording(line.skill.content) for line in (one, other)]
    pairs = ((one.wording, other.wording), (contents[0], contents[1]))
    return any(lexical.alike(first, second) >= _SIMILAR for first, second in pairs)
