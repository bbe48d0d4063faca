"""What was tried before: the attempts at a task, and what earlier tasks taught."""

from __future__ import annotations

import json
from collections.abc import Sequence

from envharness_core import Attempt, ComponentSpec, Decision, Diagnosis
from envharness_core.designer import TaskHistory
from envharness_core.jsondata import Json
from envharness_llm.designing.counted import rate
from envharness_llm.designing.offering import RULES
from envharness_llm.designing.pages import clipped

_TASKS = 8  # earlier tasks that are told of, the latest ones
_SENTENCE = 300  # characters

_SITUATIONS = {
    "first": "This is the first attempt.",
    "mend": (
        "The latest attempt failed before the gate could judge it: {rejected}. Mend what is named there; the idea "
        "may stay, unless it is the idea that can't work."
    ),
    "refine": (
        "The latest attempt is to be refined. Keep what works and change the magnitude: a rate, a count, a length, or "
        "how much is refused.{towards}"
    ),
    "reject": "The latest attempt was rejected. Start over with another idea; don't vary this one.",
}
_TOWARDS = {
    "harden": " By its numbers it has to become harder.",
    "scaffold": " By its numbers it has to become easier.",
    "leave": "",
}


def attempts(history: Sequence[Attempt]) -> str:
    """Return every attempt in full, with what was said of it."""
    return "\n\n".join(f"## Attempt {number}\n{tried(attempt)}" for number, attempt in enumerate(history, 1))


def tried(attempt: Attempt) -> str:
    """Return an attempt in full: layers, rationale, numbers, and the gate's word."""
    candidate = attempt.candidate
    lines = [layers(candidate.layers), f"Why: {candidate.rationale or 'nothing was said'}"]
    if attempt.episodes:
        lines.append(f"Rollouts: {rate(attempt.episodes)}.")
    if attempt.confirmation:
        lines.append(f"Fresh rollouts to confirm it: {rate(attempt.confirmation)}.")
    return "\n".join([*lines, *_words(attempt)])


def layers(specs: Sequence[ComponentSpec]) -> str:
    """Return layers as they were proposed, source code as it stands."""
    return "\n".join(map(_layer, specs)) or "No layers."


def situation(history: Sequence[Attempt]) -> str:
    """Say what is to be done now, after what was tried."""
    if not history:
        return _SITUATIONS["first"]
    latest = history[-1]
    if latest.rejected:
        return _SITUATIONS["mend"].format(rejected=latest.rejected.rstrip("."))
    if latest.decision is Decision.REJECT:
        return _SITUATIONS["reject"]
    direction = "leave" if latest.judgement is None else latest.judgement.direction
    return _SITUATIONS["refine"].format(towards=_TOWARDS[direction])


def diagnosed(diagnosis: Diagnosis) -> str:
    """Return a diagnosis, one part a line."""
    parts = {
        "Flaw": diagnosis.flaw,
        "Evidence": diagnosis.evidence,
        "Boundary": diagnosis.boundary,
        "Headroom": diagnosis.headroom,
        "Reliance": diagnosis.reliance,
        "Direction": diagnosis.direction,
    }
    return "\n".join(f"- {name}: {text}" for name, text in parts.items() if text)


def taught(earlier: Sequence[TaskHistory]) -> str:
    """Return what the latest of the finished tasks taught, a few lines each."""
    return "\n".join(map(_task, earlier[-_TASKS:]))


def _words(attempt: Attempt) -> list[str]:
    """Return what was said of an attempt, by the gate and by others."""
    lines = []
    judgement = attempt.judgement
    if judgement is not None and attempt.episodes:
        lines.append(f"The gate: {judgement.decision.name.lower()}: {judgement.reason}")
        if attempt.decision > judgement.decision and not attempt.rejected:
            lines.append(f"The designer's review made that {attempt.decision.name.lower()}.")
    if attempt.rejected:
        lines.append(f"Given up: {attempt.rejected}")
    return lines


def _layer(spec: ComponentSpec) -> str:
    source = spec.config.get("source")
    if spec.use == RULES and isinstance(source, str):
        return f"- {spec.use}:\n```python\n{source.strip()}\n```"
    return f"- {_json(spec.as_json())}"


def _task(history: TaskHistory) -> str:
    flaw = "" if history.diagnosis is None else f" Flaw: {_short(history.diagnosis.flaw)}"
    lines = [f"- {history.task.id}: {rate(history.baseline)}.{flaw}"]
    taken = [attempt for attempt in history.attempts if attempt.decision is Decision.ACCEPT]
    for attempt in taken:
        reason = "" if attempt.judgement is None else f" ({_short(attempt.judgement.reason)})"
        lines.append(f"  Accepted: {_kinds(attempt)}{reason}. {_short(attempt.candidate.rationale)}")
    failed = len(history.attempts) - len(taken)
    if failed:
        lines.append(f"  Attempts that failed: {failed}, the latest: {'; '.join(_failures(history))}")
    return "\n".join(lines)


def _failures(history: TaskHistory) -> list[str]:
    failed = [attempt for attempt in history.attempts if attempt.decision is not Decision.ACCEPT]
    return [
        f"{_kinds(attempt)}: {_short(attempt.rejected or (attempt.judgement.reason if attempt.judgement else ''))}"
        for attempt in failed[-3:]
    ]


def _kinds(attempt: Attempt) -> str:
    """Return an attempt's layers in short, source code by name alone."""
    named = [
        layer.use if layer.use == RULES else clipped(_json(layer.as_json()), _SENTENCE)
        for layer in attempt.candidate.layers
    ]
    return " + ".join(named) or "the unchanged task"


def _short(text: str) -> str:
    return clipped(" ".join(text.split()), _SENTENCE)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
