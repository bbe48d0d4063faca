"""Export: a run's episodes as JSON lines, with a schema of their own that changes only with its version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from attrs import frozen

from envharness_core.data import Action, Observation, Verdict
from envharness_core.episode import Episode
from envharness_core.jsondata import Json, JsonObject, digest
from envharness_core.redaction import may_hold_secret, redact
from envharness_core.rows import Row
from envharness_core.seeds import Seeds
from envharness_core.store import Store
from envharness_core.trajectory import Step, Trajectory, read_trajectory

LINES_VERSION = 1

_encode = msgspec.json.Encoder().encode


@frozen
class Executed:
    """An action as it reached a bridge.

    Args:
        leg: which bridge of the stack, 0 unless the stack has a link.
        action: what it did; another than the proposed one where a layer changed it.
    """

    leg: int
    action: Action


@frozen
class StartLine:
    """How an episode began.

    Args:
        instruction: the task as the agent was told it.
        shown: the first observation, after all layers.
        info: what came with it.
        executed: what a Setup replayed before the policy's first action.
    """

    instruction: str
    shown: Observation
    info: JsonObject
    executed: list[Executed]


@frozen
class StepLine:
    """One action of the policy and what came of it.

    Args:
        proposed: the policy's action; null where its reply held none.
        executed: what reached the bridges: nothing where it was blocked or malformed, several at a hand-over.
        text: the policy's raw reply, with its first action only.
        usage: tokens and costs of that reply.
        raw: what the bridge showed, before any layer; null where the action never reached it.
        shown: what the policy saw, after all layers.
        reward: the benchmark's.
        dense_reward: the bridge's optional dense signal, or null.
        terminated: whether the benchmark ended the episode.
        truncated: whether a limit or a layer did.
        info: blocked, malformed, hand-over and the benchmark's own facts.
        policy_seconds: the time of the reply.
        env_seconds: the time of the step.
        dropped: further actions of the same reply that weren't played, because the episode had stopped.
    """

    proposed: Action | None
    executed: list[Executed]
    text: str
    usage: JsonObject
    raw: Observation | None
    shown: Observation
    reward: float
    dense_reward: float | None
    terminated: bool
    truncated: bool
    info: JsonObject
    policy_seconds: float
    env_seconds: float
    dropped: int


@frozen
class EpisodeLine:
    """One episode of a run.

    Args:
        schema_version: of this format.
        key: the episode's identity, 32 hexadecimal characters: a hash of design, stream, index and seeds.
        task: the benchmark's task.
        stream: what it was played for: ``baseline``, ``attempt N``, ``confirm N``, ``report after``, ...
        index: its place in that stream.
        design_key: the content hash of the design; episodes with the same one were played under the same settings.
        design: bridge, upstream, task, layers (innermost first), policy, limits and skills.
        seeds: the world's, the layers' and the policy's.
        outcome: how it ended.
        verdict: the benchmark's own; null where nothing may be said about the policy.
        error: what happened where there is no verdict, or null.
        seconds: the policy's and the world's time together.
        usage: tokens and costs in all.
        start: how it began; null where the reset failed, or the trajectory was pruned.
        steps: step by step; null where the trajectory was pruned.
    """

    schema_version: int
    key: str
    task: str
    stream: str
    index: int
    design_key: str
    design: JsonObject
    seeds: Seeds
    outcome: str
    verdict: Verdict | None
    error: str | None
    seconds: float
    usage: JsonObject
    start: StartLine | None
    steps: list[StepLine] | None


@frozen
class Damaged:
    """An episode that can't be exported, and why."""

    key: str
    problem: str


def export_lines(store: Store) -> Iterator[bytes | Damaged]:
    """Yield a line of JSON for each episode, by task, stream and index; one episode at a time is in memory.

    Secrets are redacted. An episode that can't be read comes as ``Damaged``, and the others follow.
    """
    for row in store.recorded(store.places("task")):
        try:
            line = _line(row)
        except ValueError as error:
            yield Damaged(row.key, str(error))
        else:
            yield _redacted(_encode(line)) + b"\n"


def lines_schema() -> JsonObject:
    """Return the JSON schema of a line."""
    schema = msgspec.json.schema(EpisodeLine)
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
    described: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An episode of EnvHarness",
        **schema,
    }
    return described


def schema_file() -> Path:
    """Return where the schema is installed as a file."""
    return Path(__file__).with_name("schemas") / f"episode-{LINES_VERSION}.json"


def _line(row: Row) -> EpisodeLine:
    """Read a row as a line.

    Raises:
        ValueError: it is damaged.
    """
    if row.problem or row.episode is None or row.design is None or row.seeds is None:
        raise ValueError(row.problem)
    episode: Episode = row.episode
    trajectory = read_trajectory(row.blob) if row.blob else None
    return EpisodeLine(
        schema_version=LINES_VERSION,
        key=row.key,
        task=row.task,
        stream=episode.stream,
        index=episode.index,
        design_key=digest(row.design),
        design=row.design,
        seeds=row.seeds,
        outcome=str(episode.outcome),
        verdict=episode.verdict,
        error=episode.error or None,
        seconds=episode.seconds,
        usage=episode.usage,
        start=None if trajectory is None else _start(trajectory),
        steps=None if trajectory is None else [_step(trajectory, step) for step in trajectory.steps],
    )


def _start(trajectory: Trajectory) -> StartLine | None:
    start, steps = trajectory.start, trajectory.steps
    if start is None:
        return None
    ends = [stop for stop, _ in steps[0].spans] if steps else [len(leg) for leg in trajectory.events]
    spans = tuple((0, end) for end in ends)
    return StartLine(start.instruction, start.observation, start.info, _executed(trajectory, spans))


def _step(trajectory: Trajectory, step: Step) -> StepLine:
    response = step.response
    return StepLine(
        proposed=step.action,
        executed=_executed(trajectory, step.spans),
        text=step.text,
        usage=step.usage,
        raw=trajectory.raw_observation(step),
        shown=response.observation,
        reward=response.reward,
        dense_reward=step.dense,
        terminated=response.terminated,
        truncated=response.truncated,
        info=response.info,
        policy_seconds=step.policy_seconds,
        env_seconds=step.env_seconds,
        dropped=step.dropped,
    )


def _executed(trajectory: Trajectory, spans: tuple[tuple[int, int], ...]) -> list[Executed]:
    return [
        Executed(leg, event.action)
        for leg, (events, span) in enumerate(zip(trajectory.events, spans, strict=True))
        for event in events[slice(*span)]
        if event.kind == "step"
    ]


def _redacted(line: bytes) -> bytes:
    if not may_hold_secret(line.decode()):
        return line
    plain: Any = msgspec.json.decode(line)
    return _encode(redact(cast("Json", plain)))
