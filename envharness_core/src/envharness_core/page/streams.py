"""Streams: what each rollout was for, in words for people who read the report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from attrs import frozen

_NAME = re.compile(r"(?P<kind>\w+)(?: (?P<part>\w+))?(?: of round (?P<round>\d+))?")

TITLES = {
    "baseline": "Baseline",
    "demonstration": "Demonstration",
    "smoke": "Smoke test",
    "attempt": "Validation",
    "confirm": "Confirmation",
    "report before": "Measured before",
    "report after": "Measured after",
    "report weaker": "Measured: weaker policy",
    "report stronger": "Measured: stronger policy",
    "report seeds": "Measured: layers' luck fixed",
}
"""What a kind of stream is called on the page, in the order of a run."""

PURPOSES = {
    "baseline": "the unchanged task, played to see how the policy does",
    "demonstration": "a stronger policy shows a way to win",
    "smoke": "a baseline rollout's actions replayed on a candidate, to see that nothing breaks",
    "attempt": "a candidate played for the first time, for the gate to judge",
    "confirm": "a candidate that the gate liked, played again on fresh rollouts",
    "report before": "the unchanged task, once everything was decided",
    "report after": "the task on its accepted layers, once everything was decided",
    "report weaker": "the accepted layers, played by a weaker policy",
    "report stronger": "the accepted layers, played by a stronger policy",
    "report seeds": "the accepted layers with their own randomness held fixed",
}
"""What a kind of stream is for."""


@frozen
class Stream:
    """A stream's name, taken apart.

    Args:
        kind: a key of ``TITLES``, or the first word of a name that isn't known.
        part: which candidate, such as ``0`` or ``unchanged``; empty for none.
        round: the campaign's round, from 0.
    """

    kind: str
    part: str = ""
    round: int = 0

    @classmethod
    def of(cls, name: str) -> Stream:
        """Take a stream's name apart."""
        found = _NAME.fullmatch(name)
        if found is None:
            return cls(name)
        kind, part, number = found["kind"], found["part"] or "", int(found["round"] or 0)
        return cls(f"{kind} {part}", "", number) if kind == "report" else cls(kind, part, number)

    @property
    def purpose(self) -> str:
        """What the stream is for; empty where that isn't known."""
        return PURPOSES.get(self.kind, "")

    @property
    def title(self) -> str:
        """What the stream is called on the page; candidates are counted from 1."""
        title = TITLES.get(self.kind, self.kind)
        if self.part:
            title += (
                f" of attempt {int(self.part) + 1}" if self.part.isdecimal() else f" of the {self.part} task"
            )
        return f"{title} (round {self.round + 1})" if self.round else title


def attempt_parts(attempts: list[Any]) -> Iterator[tuple[str, int]]:
    """Yield, for each attempt of a task's result, its part of the stream's name and its round.

    An accepted attempt ends its round; the unchanged task is judged apart and isn't counted.
    """
    number = rounds = 0
    for attempt in attempts:
        if is_unchanged(attempt):
            yield "unchanged", rounds
        else:
            yield str(number), rounds
            number += 1
        if attempt["decision"] == "accept":
            number, rounds = 0, rounds + 1


def is_unchanged(attempt: Any) -> bool:
    """Whether an attempt was the task as it stands, without a new layer."""
    return not attempt["layers"] and not attempt["rejected"]


def stream_name(kind: str, part: str, rounds: int) -> str:
    """Return a stream's name as the store has it."""
    name = f"{kind} {part}" if part else kind
    return f"{name} of round {rounds}" if rounds else name
