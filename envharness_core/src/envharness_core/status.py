"""Status: how far a run is, read beside it without disturbing it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from attrs import asdict, frozen

from envharness_core.heartbeat import Beat, last_beat
from envharness_core.jsondata import JsonObject
from envharness_core.store import Store

State: TypeAlias = Literal["running", "stale", "stopped", "complete"]
"""Whether a session is at work; ``stale``: one was, and was killed or hangs; ``stopped``: the last one ended early."""


@frozen
class Status:
    """How far a run is.

    Args:
        state: what its session does.
        kind: ``campaign`` or ``evaluation``.
        session: process, host, and seconds since its last sign of life; None where there is none.
        tasks: how many it has; None where its store doesn't say.
        designed: how many of them are finished but for the report.
        accepted, kept, abandoned: how these ended; ``kept`` are in order unchanged and not among the ``accepted``.
        episodes: how many are stored, by stream and outcome.
        excluded: how many of them carry no verdict.
        rate: episodes a second in this session; None where none runs.
        left: seconds until the run is complete, about; None where nothing can be said yet.
    """

    state: State
    kind: str
    session: JsonObject | None
    tasks: int | None
    designed: int
    accepted: int
    kept: int
    abandoned: int
    episodes: dict[str, dict[str, int]]
    excluded: int
    rate: float | None
    left: float | None

    def as_json(self) -> JsonObject:
        """Return the status as plain data."""
        return asdict(self)


def run_status(folder: Path) -> Status:
    """Read how far the run in a folder is; nothing is written and nobody has to wait for it.

    Raises:
        CheckpointError: it isn't a run folder, or is from a newer version.
    """
    beat = last_beat(folder)  # first: a session that ends meanwhile leaves a complete store, not a dead heart
    with Store.open(folder, read_only=True) as store:
        return read_status(store, beat)


def read_status(store: Store, beat: Beat | None) -> Status:
    """Read how far a run is from its store and from the last heartbeat before it was opened."""
    counts = store.counts()
    ended = Counter(str(result["status"]) for result in store.results())
    complete = store.meta("summary") is not None
    rate, left = _pace(beat)
    episodes: dict[str, dict[str, int]] = {}
    for stream, outcome, count in counts:
        outcomes = episodes.setdefault(stream.partition(" ")[0], {})
        outcomes[outcome] = outcomes.get(outcome, 0) + count
    return Status(
        state=_state(beat, complete=complete),
        kind=str(store.meta("kind") or "campaign"),
        session=None if beat is None else {"pid": beat.pid, "host": beat.host, "age": round(beat.age, 1)},
        tasks=_tasks(store),
        designed=ended.total(),
        accepted=ended["accepted"],
        kept=ended["kept"],
        abandoned=ended["abandoned"],
        episodes=episodes,
        excluded=store.ungraded(),
        rate=rate,
        left=left,
    )


def _state(beat: Beat | None, *, complete: bool) -> State:
    if beat is not None and beat.alive:
        return "running"
    if complete:
        return "complete"
    return "stopped" if beat is None else "stale"


def _pace(beat: Beat | None) -> tuple[float | None, float | None]:
    """Return episodes a second and the seconds left, as far as the session that is at work knows."""
    if beat is None or not beat.alive or not beat.progress:
        return None, None
    progress = cast("dict[str, Any]", beat.progress)
    rate = progress["episodes"] / progress["seconds"] if progress["seconds"] > 0 else 0.0
    if not progress["designed"] or rate <= 0:
        return round(rate, 3), None
    return round(rate, 3), round((progress["expected"] - progress["episodes"]) / rate, 1)


def _tasks(store: Store) -> int | None:
    world = cast("Any", store.meta("world"))
    return None if world is None else len(world["tasks"])
