"""Holding a run folder for a session: its lock, its store, its heart, and who hears how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import cast

from attrs import asdict, evolve, frozen

from envharness_core.account import Account
from envharness_core.campaigns.changes import require_same
from envharness_core.campaigns.watch import CUT_SHORT
from envharness_core.errors import ConfigError
from envharness_core.heartbeat import Heartbeat
from envharness_core.jsondata import JsonObject
from envharness_core.outcome import INFRASTRUCTURE, Outcome
from envharness_core.store import Store, locked

Listener = Callable[["Progress"], None]


@frozen
class Progress:
    """How far a run is; sent after each episode that was played.

    Args:
        tasks: tasks of the run.
        designed: how many of them are finished but for the report.
        accepted: how many of these have a stack or are in order as they are.
        episodes: episodes played in this session.
        excluded: how many of these carry no verdict.
        expected: about how many the session will play; grows more exact as it goes on.
        seconds: since the session began.
    """

    tasks: int
    designed: int
    accepted: int
    episodes: int
    excluded: int
    expected: int
    seconds: float


@frozen
class Sitting:
    """What a session of a run is given, and what it learns of earlier ones.

    Args:
        account: what was used of models.
        listener: called with the progress after each episode.
        stop: once set, nothing more begins.
        retry_failed: whether what the infrastructure failed in earlier sessions is played again.
    """

    account: Account
    listener: Listener
    stop: Event
    retry_failed: bool = False
    again: tuple[Outcome, ...] = ()
    """The outcomes with which stored episodes are played again."""


@contextmanager
def holding(
    folder: Path, facts: Callable[[], JsonObject], sitting: Sitting
) -> Iterator[tuple[Store, Sitting]]:
    """Hold a run folder for a session: its lock, its store, and a heart that beats with what the session hears.

    Args:
        folder: the run folder; made if need be.
        facts: what a new run's store begins with.
        sitting: the session; what is yielded beside the store knows what it has to make up for, and its account what
            earlier ones used.

    Raises:
        ConfigError: it is in use, holds something else, or was pruned.
    """
    Store.prepare(folder)
    with locked(folder), _store(folder, facts) as store, Heartbeat(folder) as heart:
        sitting.account.go_on(store.usage())
        again = INFRASTRUCTURE if sitting.retry_failed or store.meta(CUT_SHORT) else ()
        yield store, evolve(sitting, listener=_heard_by(heart, sitting.listener), again=again)


def answer(identity: JsonObject, folder: Path, accept: Sequence[str] = ()) -> tuple[JsonObject | None, bool]:
    """Return the summary of a complete run, which needs no right to write, and whether accepted changes wait.

    Raises:
        ConfigError: the folder holds another config's run.
    """
    if not Store.exists(folder):
        return None, False
    with Store.open(folder, read_only=True) as store:
        changed = require_same(identity, folder, store, accept)
        return cast("JsonObject | None", store.meta("summary")), changed


def _heard_by(heart: Heartbeat, listener: Listener) -> Listener:
    """Return a listener that lets others hear too."""

    def hear(progress: Progress) -> None:
        heart.note(asdict(progress))
        listener(progress)

    return hear


def _store(folder: Path, facts: Callable[[], JsonObject]) -> Store:
    if not Store.exists(folder):
        return Store.create(folder, facts())
    store = Store.open(folder)
    if store.meta("pruned"):
        store.close()
        raise ConfigError(f"{folder}: its trajectories were pruned, so nothing more can be designed in it")
    return store
