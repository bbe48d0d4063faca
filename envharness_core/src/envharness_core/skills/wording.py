"""Lessons in words: what to do in which situation, said so that it holds for other tasks too."""

from __future__ import annotations

import re

from attrs import frozen

from envharness_core.skills.habits import Habit, Move, Situation

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NUMBERS = re.compile(r"\bN(?:(?:,| and|, and| or)? N)+\b")
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|:(?=\n|$))", re.DOTALL)
_LONGEST = 140
"""Characters of a task that a skill names, so that it is found for tasks that read alike."""

_WHEN = {
    "start": "at the start of a task",
    "refused": "when a call has just been refused",
    "malformed": "when a reply has just been rejected as malformed",
    "passing": "when a call has just failed for a passing reason, such as a timeout",
    "failed": "when a call has just failed with an error",
    "unchanged": "when the last call changed nothing",
    "after": "right after {call}",
    "end": "before you end the task with {call}",
    "ever": "while you work on the task",
}
_WHERE = {
    "start": "first",
    "refused": "after a refusal",
    "malformed": "after a malformed reply",
    "passing": "after a passing failure",
    "failed": "after an error",
    "unchanged": "where nothing changed",
    "after": "right after {call}",
    "end": "before {call}",
    "ever": "",
}
_DO = {
    ("same", True): ("repeat the call", "make the very same call again"),
    ("same", False): (
        "do not repeat the call",
        "do not make the very same call again: change something about it",
    ),
    ("other_arguments", True): ("change the arguments", "call the same tool with other arguments"),
    ("other_arguments", False): (
        "do not just vary the arguments",
        "do not call the same tool with other arguments only",
    ),
    ("other_tool", True): ("switch to another tool", "turn to another tool"),
    ("other_tool", False): ("stay with the tool", "stay with the tool that you were using"),
    ("call", True): ("use {call}", "use {call}"),
    ("call", False): ("do not use {call}", "do not use {call}: do something else"),
}
_REASONS = {
    (
        "refused",
        "same",
        False,
    ): "What was refused once is refused again; the reason says what is open instead.",
    ("refused", "other_tool", True): "What was refused stays closed; the reason says what is open instead.",
    (
        "refused",
        "other_arguments",
        True,
    ): "The refusal is about how it was asked; its reason says what would do.",
    ("failed", "same", False): "The same call fails in the same way; read what the error says and mend that.",
    ("failed", "other_arguments", True): "Read what the error says and mend that.",
    (
        "passing",
        "same",
        True,
    ): "Nothing had changed in the world, so trying again costs one step and no more.",
    ("passing", "other_tool", False): "The failure says nothing about the plan: keep to it and try again.",
    ("malformed", "same", False): "The form was wrong; the same words are rejected again.",
    ("unchanged", "same", False): "A call without effect has none the second time.",
    ("end", "call", True): "It shows a mistake while it can still be put right.",
}


@frozen
class Lesson:
    """A habit in which winners and losers differ.

    Args:
        habit: a move in a situation.
        won: how many winners did so, and how many came to the situation.
        lost: the same of losers.
        sure: the probability that the rates differ in this direction.
        do: whether it is winners who do so more often.
        other: what the other side does there more often, where that is clear.
    """

    habit: Habit
    won: tuple[int, int]
    lost: tuple[int, int]
    sure: float
    do: bool
    other: Move | None = None


def title_of(lesson: Lesson) -> str:
    """Return a skill's title, such as ``Do not repeat the call after a refusal``."""
    situation, move = lesson.habit.situation, lesson.habit.move
    short, _ = _DO[move.kind, lesson.do]
    short = short.replace("{call}", "{call} again") if _continues(lesson) else short
    return _capitalised(f"{_filled(short, move)} {_filled(_WHERE[situation.kind], situation)}".strip())


def description_of(lesson: Lesson, instruction: str) -> str:
    """Return when to use it; names the kind of task, without its numbers, so that it is found for others like it."""
    situation = lesson.habit.situation
    when = _capitalised(_filled(_WHEN[situation.kind], situation))
    kind = kind_of_task(instruction)
    return f"{when}. Learnt on a task like: {kind}" if kind else f"{when}."


def content_of(lesson: Lesson, *, whole: bool) -> str:
    """Return what to do, why where that is known, and the counts that speak for it.

    Args:
        lesson: what was learnt.
        whole: whether every rollout came to the situation.
    """
    situation, move = lesson.habit.situation, lesson.habit.move
    when = _capitalised(_filled(_WHEN[situation.kind], situation))
    reason = _REASONS.get((situation.kind, move.kind, lesson.do), "")
    among = "" if whole else " that came to this"
    (won, winners), (lost, losers) = lesson.won, lesson.lost
    did = "did so" if lesson.do else "did it"
    evidence = f"Evidence: {won} of {winners} winning rollouts{among} {did}, {lost} of {losers} losing ones."
    return " ".join(part for part in (f"{when}, {_advice(lesson)}.", reason, evidence) if part)


def _advice(lesson: Lesson) -> str:
    """Return what to do, and what rather than that; or what not to do, and what else."""
    move, other = lesson.habit.move, lesson.other
    _, long = _DO[move.kind, lesson.do]
    long = _filled(long.replace("{call}", "{call} again") if _continues(lesson) else long, move)
    if other is None:
        return long
    mirrored = _filled(_DO[other.kind, True][1], other)
    return f"{long} rather than {mirrored}" if lesson.do else f"{long.partition(': ')[0]}: {mirrored}"


def kind_of_task(instruction: str) -> str:
    """Return an instruction's first sentence with ``N`` for its numbers, clipped at a word."""
    text = " ".join(instruction.split())
    sentence = _SENTENCE.match(text)
    masked = _NUMBERS.sub("N", _NUMBER.sub("N", sentence[0] if sentence else text))
    if len(masked) <= _LONGEST:
        return masked
    return f"{masked[:_LONGEST].rsplit(' ', 1)[0]} ..."


def _continues(lesson: Lesson) -> bool:
    """Say whether the move is another call of what was called before."""
    return lesson.habit.situation == Situation("after", lesson.habit.move.call)


def _filled(words: str, named: Situation | Move) -> str:
    detail = named.detail if isinstance(named, Move) else ""
    call = f"`{named.call}`" + (f" with {detail}" if detail else "")
    return words.replace("{call}", call)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
