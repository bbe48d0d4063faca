"""Verify: replay what reached the bridges of stored episodes on bare bridges, and compare the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Literal, TypeAlias, cast

from attrs import define, field, frozen

from envharness_core.converter import structure
from envharness_core.data import Observation, Verdict
from envharness_core.episode import Episode
from envharness_core.errors import BridgeError, CheckpointError, ConfigError, EnvHarnessError
from envharness_core.events import Event
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import BRIDGE
from envharness_core.outcome import GRADED, MAY_BE_GRADED
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.rows import Row
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
    """What a verification found.

    ``missing`` counts episodes that a complete run had when it ended and that its store lacks.
    """

    episodes: int = 0
    agreed: int = 0
    disagreed: int = 0
    not_comparable: int = 0
    ungraded: int = 0
    missing: int = 0
    disagreements: list[Disagreement] = field(factory=list)
    reason: str = ""
    """Why the first of those that aren't comparable isn't."""

    def count(self, row: Row, agreement: Agreement, detail: str) -> None:
        """Take in what a replay says of an episode."""
        self.episodes += 1
        setattr(self, agreement, getattr(self, agreement) + 1)
        if agreement == "not_comparable" and not self.reason:
            self.reason = detail
        if agreement == "disagreed":
            self.disagreements.append(Disagreement(row.key, row.task, detail))

    def add(self, other: Verification) -> None:
        """Take in what was found of further episodes."""
        self.episodes += other.episodes
        self.agreed += other.agreed
        self.disagreed += other.disagreed
        self.not_comparable += other.not_comparable
        self.ungraded += other.ungraded
        self.disagreements += other.disagreements
        self.reason = self.reason or other.reason

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
            "reason": self.reason or None,
            "ungraded": self.ungraded,
            "missing": self.missing,
            "disagreements": listed,
        }


class Replayer:
    """Replays events on bare bridges, one kept open for each bridge spec."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._bare: dict[str, Recorder] = {}
        self._design: JsonObject = {}
        self._stacks: list[StackSpec] = []

    def compare(
        self, episode: Episode, design: JsonObject, legs: Sequence[Sequence[Event]], env_seed: int
    ) -> tuple[Agreement, str]:
        """Replay an episode's events and compare what the bridges say with the stored verdict."""
        problem = _contradiction(episode, legs)
        if problem:
            return "disagreed", problem
        if episode.verdict is None:
            return "ungraded", ""
        stacks = self._legs(design)
        tasks = [episode.task, *[stack.task for stack in stacks[1:]]]
        problem = _another_episode(tasks, legs, env_seed)
        if problem:
            return "disagreed", problem
        try:
            bare = [self._recorder(stack.bridge) for stack in stacks]
            another = _another_world(design, bare[0])
            if another:
                return "not_comparable", another
            if not all(recorder.capabilities.deterministic for recorder in bare):
                return "not_comparable", ""
            played = [_replayed(*pair) for pair in zip(bare, legs, strict=True)]
        except (BridgeError, ConfigError) as error:
            return "not_comparable", f"the replay failed: {error}"
        except EnvHarnessError as error:
            return "disagreed", f"the replay failed: {error}"
        verdicts = [verdict for verdict, _ in played]
        success = all(verdict is not None and verdict.success for verdict in verdicts)
        score = min(0.0 if verdict is None else verdict.score for verdict in verdicts)
        stored = episode.verdict
        if (success, score) == (stored.success, stored.score):
            if all(same for _, same in played):
                return "agreed", ""
            return (
                "not_comparable",
                "the bridge shows something else now: its data or its version has changed",
            )
        return "disagreed", f"stored {stored.success} {stored.score}, replayed {success} {score}"

    def close(self) -> None:
        """Close the bridges."""
        for recorder in self._bare.values():
            recorder.close()
        self._bare.clear()

    def _legs(self, design: JsonObject) -> list[StackSpec]:
        """Return a design's legs; rows come design by design, so the last one is kept."""
        if design is not self._design:
            self._design, self._stacks = design, _legs(_stack(design))
        return self._stacks

    def _recorder(self, spec: ComponentSpec) -> Recorder:
        key = str(spec)
        if key not in self._bare:
            self._bare[key] = Recorder(self._plugins.create(BRIDGE, spec, "bridge"))
        return self._bare[key]


def verify_run(
    store: Store, plugins: Plugins, heard: Callable[[Verification], None] = lambda _: None
) -> Verification:
    """Verify every episode of a run; ``heard`` is called after each.

    Raises:
        CheckpointError: its trajectories were pruned.
    """
    check_complete(store)
    found = Verification()
    with closing(Replayer(plugins)) as replayer:
        for row in store.recorded():
            found.count(row, *compared(replayer, row))
            heard(found)
    found.missing = missing(store, found)
    return found


def check_complete(store: Store) -> None:
    """Refuse a store whose episodes can't be replayed.

    Raises:
        CheckpointError: its trajectories were pruned.
    """
    if store.meta("pruned"):
        raise CheckpointError(f"{store.folder}: its trajectories were pruned, so nothing can be replayed")


def missing(store: Store, found: Verification) -> int:
    """Return how many episodes of a complete run weren't found."""
    return max(0, _expected(store) - found.episodes)


def compared(replayer: Replayer, row: Row) -> tuple[Agreement, str]:
    """Replay a stored episode and say whether its verdict is borne out, and why not."""
    episode, design, seeds = row.episode, row.design, row.seeds
    if row.problem or episode is None or design is None or seeds is None:
        return "disagreed", row.problem
    try:
        trajectory = read_trajectory(row.blob)
    except ValueError as error:
        return ("ungraded", "") if episode.verdict is None else ("disagreed", str(error))
    if len(trajectory.steps) != episode.steps:
        return "disagreed", f"its row says {episode.steps} steps, its trajectory has {len(trajectory.steps)}"
    return replayer.compare(episode, design, trajectory.events, seeds.env)


def _expected(store: Store) -> int:
    """Return how many episodes a complete run had when it ended; 0 where it hasn't."""
    summary = cast("Any", store.meta("summary"))
    return 0 if summary is None else sum(summary["rollouts"].values())


def _contradiction(episode: Episode, legs: Sequence[Sequence[Event]]) -> str:
    """Say how outcome, verdict and events of an episode contradict each other, or return an empty text."""
    if episode.verdict is None:
        if episode.outcome in GRADED:
            return f"it ended as {episode.outcome} and has no verdict"
        if any(leg and leg[-1].kind == "evaluate" for leg in legs[-1:]):
            return f"its row says {episode.outcome} and no verdict, its events end with one"
    elif episode.outcome not in MAY_BE_GRADED:
        return f"its row says {episode.outcome} and has a verdict"
    return ""


def _another_episode(tasks: Sequence[str], legs: Sequence[Sequence[Event]], env_seed: int) -> str:
    """Say why the events can't be this episode's, or return an empty text: each leg begins once, with its own task."""
    for number, (task, leg) in enumerate(zip(tasks, legs, strict=False)):
        begun = [place for place, event in enumerate(leg) if event.kind == "reset"]
        if begun != [0] and (leg or number == 0):
            return "its events don't begin with the one reset that an episode has"
        if leg:
            body: Any = leg[0].body
            told, seed = body["options"].get("task"), body["seed"]
            if told != task or (number == 0 and seed != env_seed):
                return f"its events are of task {told!r} with seed {seed}"
    return ""


def _another_world(design: JsonObject, recorder: Recorder) -> str:
    """Say that a design was played on another benchmark or version than is here, or return an empty text."""
    here = f"{recorder.capabilities.upstream} {recorder.capabilities.version}"
    return "" if design["upstream"] == here else f"it was played on {design['upstream']}, and here is {here}"


def _replayed(recorder: Recorder, events: Sequence[Event]) -> tuple[Verdict | None, bool]:
    """Do again what reached a bridge.

    Returns its last verdict, or None for a leg that never started, and whether it showed what was recorded.
    """
    verdict, same = None, True
    for event in events:
        body = cast("Any", event.body)
        match event.kind:
            case "reset":
                same = _shows(recorder.reset(body["seed"], body["options"]).observation, body) and same
            case "step":
                same = _shows(recorder.step(event.action).observation, body) and same
            case "notify":
                recorder.notify_replay_complete()
            case "resume":
                recorder.resume()
            case "evaluate":
                verdict = recorder.evaluate()
    return verdict, same


def _shows(observation: Observation, body: Any) -> bool:
    told = body["response"]["observation"]
    return bool(told["text"] == observation.text and told["data"] == observation.data)


def _stack(design: JsonObject) -> StackSpec:
    return StackSpec(
        structure(design["bridge"], ComponentSpec, "bridge"),
        layers=structure(design["layers"], tuple[ComponentSpec, ...], "layers"),
    )


def _legs(stack: StackSpec) -> list[StackSpec]:
    """Return a stack's legs, in the order of their recorders."""
    legs = [stack]
    for layer in stack.layers:
        if layer.use in ("link", "core/link"):
            legs += _legs(structure(layer.config["next"], StackSpec, "link.next"))
    return legs
