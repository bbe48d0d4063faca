"""An episode as the page's viewer reads it: plain data, step by step."""

from __future__ import annotations

from typing import Any

from envharness_core.data import Observation
from envharness_core.events import Event
from envharness_core.jsondata import Json, JsonObject
from envharness_core.page.choice import Chosen
from envharness_core.page.contrast import contrast
from envharness_core.page.streams import Stream
from envharness_core.trajectory import Step, Trajectory

LONGEST = 20_000
"""Characters of one text that are shown; the rest is announced."""

_SPECIAL = ("blocked", "malformed", "transient_error", "handoff", "error", "step_reward_error")
"""Keys of a step's info that are put into words, in this order."""


def playback(chosen: Chosen, trajectory: Trajectory) -> JsonObject:
    """Return an episode with its steps.

    Each step holds what the policy said and proposed, what reached the world, and ``world`` and ``shown``, the
    observation before and after the layers, as runs ``[text, differs]``. Where a step didn't reach the world,
    ``world`` is what it showed last, and ``reached`` is False.
    """
    episode = chosen.episode
    verdict = episode.verdict
    world, start = _start(trajectory)
    steps: list[Json] = []
    for step in trajectory.steps:
        raw = trajectory.raw_observation(step)
        world = raw or world
        steps.append(_step(trajectory, step, world, reached=raw is not None))
    return {
        "title": Stream.of(episode.stream).title,
        "stream": episode.stream,
        "index": episode.index,
        "why": chosen.why,
        "outcome": str(episode.outcome),
        "success": None if verdict is None else verdict.success,
        "score": None if verdict is None else verdict.score,
        "metrics": {} if verdict is None else verdict.metrics,
        "error": clipped(episode.error),
        "seconds": episode.seconds,
        "usage": episode.usage,
        "start": start,
        "steps": steps,
    }


def clipped(text: str) -> str:
    """Return a text that isn't longer than the page shows, with what is left out announced."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n[{len(text) - LONGEST:,} more characters are in the run folder]"


def _start(trajectory: Trajectory) -> tuple[Observation | None, Json]:
    """Return what the world showed last before the policy began, and how the page tells it."""
    first = trajectory.start
    if first is None:
        return None, None
    ends = [start for start, _ in trajectory.steps[0].spans] if trajectory.steps else None
    legs = trajectory.events
    events = [event for number, leg in enumerate(legs) for event in leg[: ends[number] if ends else len(leg)]]
    shown = [event for event in events if "response" in event.body]
    response: Any = shown[-1].body["response"] if shown else None
    raw = None if response is None else Observation(**response["observation"])
    return raw, {
        "instruction": clipped(first.instruction),
        "executed": _executed(events),
        "info": first.info,
        "reached": raw is not None,
        **_sides(raw, first.observation),
    }


def _step(trajectory: Trajectory, step: Step, world: Observation | None, *, reached: bool) -> Json:
    events = trajectory.events_of(step)
    response = step.response
    info = response.info
    answers: list[Any] = [event.body["response"] for event in events if "response" in event.body]
    return {
        "proposed": None if step.action is None else clipped(str(step.action)),
        "text": clipped(step.text),
        "executed": _executed(events),
        "reached": reached,
        **_sides(world, response.observation),
        "reward": response.reward,
        "dense": step.dense,
        "terminated": response.terminated,
        "truncated": response.truncated,
        "masked": any(answer.get("terminated") for answer in answers) and not response.ended,
        "special": [[key, clipped(_words(info[key]))] for key in _SPECIAL if key in info],
        "info": {key: value for key, value in info.items() if key not in _SPECIAL},
        "usage": step.usage,
        "seconds": [step.policy_seconds, step.env_seconds],
        "dropped": step.dropped,
    }


def _executed(events: list[Event]) -> list[Json]:
    """Say what reached the world: actions as they are, the rest by kind."""
    return [
        {"kind": event.kind, "words": clipped(str(event.action)) if event.kind == "step" else ""}
        for event in events
        if event.kind in ("step", "resume", "notify")
    ]


def _sides(raw: Observation | None, shown: Observation) -> JsonObject:
    """Return both observations, marked where they differ; one alone where they are the same."""
    seen = clipped(shown.text)
    if raw is None:
        return {"world": None, "shown": [[seen, False]], "data": [None, shown.data]}
    text = clipped(raw.text)
    data: list[Json] = [raw.data, shown.data] if raw.data != shown.data else [shown.data]
    if text == seen:
        return {"world": "same", "shown": [[seen, False]], "data": data}
    left, right = contrast(text, seen)
    return {"world": [[*run] for run in left], "shown": [[*run] for run in right], "data": data}


def _words(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(item)}" for key, item in value.items())
    return value if isinstance(value, str) else str(value)
