"""Rollouts as text, step by step, as many as a budget of tokens holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain, zip_longest

from attrs import frozen

from envharness_core import Episode, Trajectory
from envharness_core.jsondata import canonical
from envharness_core.trajectory import Step

TOKEN = 4
"""Characters of a token, as an estimate that needs no tokenizer."""

_WIDTHS = (8000, 4000, 2000, 1000, 500, 250)  # characters of a text, beyond which its middle is left out
_ENOUGH = 4  # rollouts that should fit before texts are shown in more length
_REPEATED = 3  # lines that the step before showed too, from which on they are counted only
_LONGEST = 600  # lines of a text that are compared with the ones before
_WORD = re.compile(r"\w+")
_TELLING = ("blocked", "malformed", "transient_error", "error", "handoff")


@frozen
class Block:
    """A rollout as text: its head, one text a step, and its end."""

    head: str
    steps: tuple[str, ...]
    end: str

    def __str__(self) -> str:
        return "\n".join((self.head, *self.steps, self.end))


@frozen
class _Played:
    """A rollout, and what each step showed that the one before hadn't."""

    episode: Episode
    trajectory: Trajectory
    start: str
    shown: tuple[str, ...]

    @property
    def name(self) -> str:
        """The rollout's number, and whether it is one of a confirmation, whose numbers begin anew."""
        fresh = self.episode.stream.startswith("confirm")
        return f"{self.episode.index}{' of the confirmation' if fresh else ''}"

    @classmethod
    def of(cls, episode: Episode, trajectory: Trajectory) -> _Played:
        start = "" if trajectory.start is None else trajectory.start.observation.text
        texts = [start, *(step.response.observation.text for step in trajectory.steps)]
        return cls(episode, trajectory, start, tuple(map(_changes, texts, texts[1:])))


def pages(
    episodes: Sequence[Episode], trajectory: Callable[[Episode], Trajectory], tokens: int, known: str = ""
) -> str:
    """Return rollouts step by step, failures and successes by turns, and say how many are left out.

    Args:
        episodes: in rollout order.
        trajectory: loads an episode's trajectory.
        tokens: what they may take together; the sentences that say what is left out come on top.
        known: a first observation that has been shown already.
    """
    room, ordered = tokens * TOKEN, _by_turns(episodes)
    played = [_Played.of(episode, trajectory(episode)) for episode in ordered]
    kept: list[str] = []
    for width in _WIDTHS:
        kept = _fitting(_texts(played, width, known), room)
        if len(kept) >= min(len(played), _ENOUGH):
            break
    if played and not kept:
        kept = [_shortened(_block(played[0], _WIDTHS[-1], known), room)]
    left = len(ordered) - len(kept)
    note = f"({left} more of {len(ordered)} rollouts left out for want of room.)"
    return "\n\n".join([*kept, note] if left else kept)


def clipped(text: str, width: int) -> str:
    """Return a text whose middle is left out where it is longer than a width, with a note of how much."""
    if len(text) <= width:
        return text
    head = width * 2 // 3
    tail = width - head
    return f"{text[:head]} [... {len(text) - width} characters left out ...] {text[len(text) - tail :]}"


def _by_turns(episodes: Sequence[Episode]) -> list[Episode]:
    """Return a failure, a success, a failure and so on, then what is left of either."""
    failures = [episode for episode in episodes if not episode.success]
    successes = [episode for episode in episodes if episode.success]
    pairs = chain.from_iterable(zip_longest(failures, successes))
    return [episode for episode in pairs if episode is not None]


def _texts(played: Sequence[_Played], width: int, known: str) -> Iterator[str]:
    """Return rollouts as texts; one that went as an earlier one did only says so."""
    seen: dict[tuple[str, ...], str] = {}
    for item in played:
        block = _block(item, width, known)
        first = seen.setdefault((*block.steps, block.end), item.name)
        same = first != item.name
        yield f"{block.head}\nStep by step the same as rollout {first}." if same else str(block)


def _fitting(texts: Iterator[str], room: int) -> list[str]:
    kept: list[str] = []
    for text in texts:
        room -= len(text) + 2
        if room < 0:
            break
        kept.append(text)
    return kept


def _shortened(block: Block, room: int) -> str:
    """Return a rollout without as many of its middle steps as need be."""
    first: list[str] = []
    last: list[str] = []
    steps, left = [*block.steps], room - len(block.head) - len(block.end) - 2
    while steps:
        behind = len(first) > len(last)
        text = steps.pop(-1 if behind else 0)
        left -= len(text) + 1
        if left < 0:
            break
        (last if behind else first).append(text)
    count = len(block.steps)
    note = f"(steps {len(first) + 1} to {count - len(last)} of {count} left out for want of room)"
    middle = [note] if len(first) + len(last) < count else []
    text = "\n".join((block.head, *first, *middle, *reversed(last), block.end))
    return clipped(text, max(room, _WIDTHS[-1]) + len(note))


def _block(played: _Played, width: int, known: str) -> Block:
    episode, trajectory = played.episode, played.trajectory
    word = "success" if episode.success else "failure"
    head = f"## Rollout {played.name}: {word}, {episode.steps} steps"
    if played.start != known:
        head += f"\nIt begins with:\n{_indented(clipped(played.start, width))}"
    steps = [
        _step(number, step, shown, trajectory, width)
        for number, (step, shown) in enumerate(zip(trajectory.steps, played.shown, strict=True), 1)
    ]
    return Block(head, tuple(steps), _end(episode, trajectory, width))


def _step(number: int, step: Step, shown: str, trajectory: Trajectory, width: int) -> str:
    proposed = "no tool call" if step.action is None else str(step.action)
    lines = [f"{number}. {clipped(proposed, width)}{_notes(step, trajectory, width)}"]
    if set(_WORD.findall(step.text)) - set(_WORD.findall(proposed)):  # it says more than the call
        lines.append(f"   The policy: {clipped(' '.join(step.text.split()), width)}")
    return "\n".join([*lines, _indented(clipped(shown, width))])


def _notes(step: Step, trajectory: Trajectory, width: int) -> str:
    """Say of a step what its action and its observation don't."""
    reached = [str(event.action) for event in trajectory.events_of(step) if event.kind == "step"]
    notes = [*_flags(step, width)]
    if reached != [str(step.action)]:
        notes.append(f"reached the world: {clipped(', '.join(reached), width) or 'nothing'}")
    if step.response.reward:
        notes.append(f"reward {step.response.reward:g}")
    if step.dropped:
        notes.append(f"{step.dropped} further actions of the reply weren't played")
    return f"  [{'; '.join(notes)}]" if notes else ""


def _flags(step: Step, width: int) -> Iterator[str]:
    for key in _TELLING:
        value = step.response.info.get(key)
        if value:
            told = isinstance(value, str) and value not in step.response.observation.text
            yield f"{key}: {clipped(str(value), width)}" if told else key


def _changes(before: str, shown: str) -> str:
    """Return a text in which longer runs of lines that the one before had too are counted only."""
    if shown == before:
        return "(shown as before)"
    old, new = before.split("\n"), shown.split("\n")
    if max(len(old), len(new)) > _LONGEST:
        return shown
    lines: list[str] = []
    for tag, _, _, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = tag == "equal" and stop - start >= _REPEATED
        lines += [f"({stop - start} lines as before)"] if same else new[start:stop]
    return "\n".join(lines)


def _end(episode: Episode, trajectory: Trajectory, width: int) -> str:
    verdict = episode.verdict
    if verdict is None:
        return f"End: {episode.outcome}, no verdict: {clipped(episode.error, width)}"
    told = f"score {verdict.score:g}"
    if verdict.metrics:
        told += f", {clipped(canonical(verdict.metrics).decode(), width)}"
    return f"End: {_ended(episode, trajectory)}; {'success' if verdict.success else 'failure'}, {told}."


def _ended(episode: Episode, trajectory: Trajectory) -> str:
    last = trajectory.steps[-1].response if trajectory.steps else None
    if last is not None and last.terminated:
        return "the world ended it"
    if last is not None and last.truncated:
        return "it was cut off"
    return str(episode.outcome)


def _indented(text: str) -> str:
    return "\n".join(f"   > {line}" for line in text.split("\n"))
