"""Verify: replay what reached the bridges of stored episodes on bare bridges, and compare the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from attrs import define, field, frozen

from envharness_core.converter import structure
from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.errors import EnvHarnessError
from envharness_core.events import Event
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import BRIDGE
from envharness_core.outcome import GRADED
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec, StackSpec
from envharness_core.store import Store
from envharness_core.trajectory import read_trajectory

Agreement: TypeAlias = Literal["agreed", "disagreed", "not_comparable", "ungraded"]
"""What a replay says of an episode; ``not_comparable`` where a bridge declares that it isn't deterministic."""


@frozen
class Disagreement:
    """An episode whose verdict its own events don't bear out."""

    key: str
    task: str
    detail: str


@define
class Verification:
    """What a verification found."""

    episodes: int = 0
    agreed: int = 0
    disagreed: int = 0
    not_comparable: int = 0
    ungraded: int = 0
    disagreements: list[Disagreement] = field(factory=list)

    def as_json(self) -> JsonObject:
        """Return the counts and the disagreements as plain data."""
        listed: list[Json] = [
            {"key": item.key, "task": item.task, "detail": item.detail} for item in self.disagreements
        ]
        return {
            "episodes": self.episodes,
            "agreed": self.agreed,
            "disagreed": self.disagreed,
            "not_comparable": self.not_comparable,
            "ungraded": self.ungraded,
            "disagreements": listed,
        }


class Replayer:
    """Replays events on bare bridges, one kept open for each bridge spec."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._bare: dict[str, Recorder] = {}

    def compare(
        self, episode: Episode, design: JsonObject, legs: Sequence[Sequence[Event]], env_seed: int
    ) -> tuple[Agreement, str]:
        """Replay an episode's events and compare what the bridges say with the stored verdict."""
        if episode.verdict is None:
            if episode.outcome in GRADED:
                return "disagreed", f"it ended as {episode.outcome} and has no verdict"
            return "ungraded", ""
        problem = _another_episode(episode, legs, env_seed)
        if problem:
            return "disagreed", problem
        try:
            bare = [self._recorder(spec) for spec in _bridges(design)]
            if not all(recorder.capabilities.deterministic for recorder in bare):
                return "not_comparable", ""
            verdicts = [_replayed(*pair) for pair in zip(bare, legs, strict=True)]
        except EnvHarnessError as error:
            return "disagreed", f"the replay failed: {error}"
        success = all(verdict is not None and verdict.success for verdict in verdicts)
        score = min(0.0 if verdict is None else verdict.score for verdict in verdicts)
        stored = episode.verdict
        if (success, score) == (stored.success, stored.score):
            return "agreed", ""
        return "disagreed", f"stored {stored.success} {stored.score}, replayed {success} {score}"

    def close(self) -> None:
        """Close the bridges."""
        for recorder in self._bare.values():
            recorder.close()
        self._bare.clear()

    def _recorder(self, spec: ComponentSpec) -> Recorder:
        key = str(spec)
        if key not in self._bare:
            self._bare[key] = Recorder(self._plugins.create(BRIDGE, spec, "bridge"))
        return self._bare[key]


def verify_run(
    store: Store, plugins: Plugins, heard: Callable[[Verification], None] = lambda _: None
) -> Verification:
    """Verify every episode of a run; ``heard`` is called after each."""
    found = Verification()
    replayer = Replayer(plugins)
    try:
        for episode, design, seed, blob in store.recorded():
            agreement, detail = _compared(replayer, episode, design, seed, blob)
            found.episodes += 1
            setattr(found, agreement, getattr(found, agreement) + 1)
            if agreement == "disagreed":
                found.disagreements.append(Disagreement(episode.key, episode.task, detail))
            heard(found)
    finally:
        replayer.close()
    return found


def _compared(
    replayer: Replayer, episode: Episode, design: JsonObject, env_seed: int, blob: bytes
) -> tuple[Agreement, str]:
    try:
        trajectory = read_trajectory(blob)
    except ValueError as error:
        return ("ungraded", "") if episode.verdict is None else ("disagreed", str(error))
    if len(trajectory.steps) != episode.steps:
        return "disagreed", f"its row says {episode.steps} steps, its trajectory has {len(trajectory.steps)}"
    return replayer.compare(episode, design, trajectory.events, env_seed)


def _another_episode(episode: Episode, legs: Sequence[Sequence[Event]], env_seed: int) -> str:
    """Say why the events can't be this episode's, or return an empty text: each leg begins once, as it should."""
    begun = [(place, event) for leg in legs for place, event in enumerate(leg) if event.kind == "reset"]
    if any(place > 0 for place, _ in begun) or not begun:
        return "its events don't begin with the one reset that an episode has"
    body: Any = begun[0][1].body
    told = (body["options"].get("task"), body["seed"])
    if told != (episode.task, env_seed):
        return f"its events are of task {told[0]!r} with seed {told[1]}"
    return ""


def _replayed(recorder: Recorder, events: Sequence[Event]) -> Verdict | None:
    """Do again what reached a bridge; return its last verdict, or None for a leg that never started."""
    verdict = None
    for event in events:
        body = cast("Any", event.body)
        match event.kind:
            case "reset":
                recorder.reset(body["seed"], body["options"])
            case "step":
                recorder.step(event.action)
            case "notify":
                recorder.notify_replay_complete()
            case "resume":
                recorder.resume()
            case "evaluate":
                verdict = recorder.evaluate()
    return verdict


def _bridges(design: JsonObject) -> list[ComponentSpec]:
    """Return the bridges of a design's legs, in the order of their recorders."""
    stack = StackSpec(
        structure(design["bridge"], ComponentSpec, "bridge"),
        layers=structure(design["layers"], tuple[ComponentSpec, ...], "layers"),
    )
    return list(_legs(stack))


def _legs(stack: StackSpec) -> list[ComponentSpec]:
    bridges = [stack.bridge]
    for layer in stack.layers:
        if layer.use in ("link", "core/link"):
            bridges += _legs(structure(layer.config["next"], StackSpec, "link.next"))
    return bridges
