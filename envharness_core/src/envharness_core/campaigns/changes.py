"""Changes: what may differ when a run goes on with another config, and what may not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from envharness_core.config import RunConfig
from envharness_core.data import TaskSummary
from envharness_core.differences import differences
from envharness_core.errors import ConfigError, unknown
from envharness_core.jsondata import JsonObject
from envharness_core.store import Store

HARMLESS = ("campaign.rerolls", "report.rollouts", "report.sensitivity", "tasks.limit")
"""Keys that may change when somebody says so: what was played stays what it is, and more or less of it is asked for."""


def require_same(identity: JsonObject, folder: Path, store: Store, accept: Sequence[str] = ()) -> bool:
    """Refuse to go on with a run of another config; say whether changes that were accepted are to be written down.

    Args:
        identity: of what is to be run.
        folder: the run folder.
        store: its store.
        accept: keys of the config that may differ, all of them ``HARMLESS``.

    Raises:
        ConfigError: it differs in something else, or a key may not be accepted.
    """
    for key in accept:
        if key not in HARMLESS:
            raise unknown("harmless key", key, HARMLESS, where="--accept-changes")
    changes = list(differences(store.meta("identity"), identity))
    refused = [change for change in changes if change.partition(":")[0] not in accept]
    if refused:
        listed = "\n".join(f"  {change}" for change in refused)
        could = [key for key in HARMLESS if any(change.startswith(f"{key}:") for change in refused)]
        hint = "".join(f" --accept-changes {key}" for key in could)
        advice = f" (or go on with{hint})" if len(could) == len(refused) else ""
        raise ConfigError(
            f"{folder}: holds a run of another config; use another folder{advice}, or go back to:\n{listed}"
        )
    return bool(changes)


def require_same_world(
    folder: Path, upstream: str, tasks: Sequence[TaskSummary], accept: Sequence[str] = ()
) -> None:
    """Refuse to go on with a run in a world that isn't the one in which it began, such as other data of a benchmark.

    Args:
        folder: the run folder; one that holds no run yet is in order.
        upstream: the benchmark and its version, here and now.
        tasks: the tasks that the config means here and now.
        accept: keys of the config that may differ; with ``tasks.limit`` there may be other tasks.

    Raises:
        ConfigError: benchmark, version or tasks differ; says how.
    """
    if not Store.exists(folder):
        return
    with Store.open(folder, read_only=True) as store:
        stored = cast("Any", store.meta("world"))
    if stored is None or stored.get("parts"):
        return
    advice = "use another folder, or give back the data and the version that it began with"
    if stored["upstream"] != upstream:
        raise ConfigError(f"{folder}: was played on {stored['upstream']}, and here is {upstream}; {advice}")
    before, now = [task["id"] for task in stored["tasks"]], [task.id for task in tasks]
    if before != now and "tasks.limit" not in accept:
        other = next((pair for pair in zip_longest(before, now) if pair[0] != pair[1]), ("", ""))
        raise ConfigError(
            f"{folder}: its {len(before)} tasks aren't the {len(now)} that are here now (first: {other[0]} there, "
            f"{other[1]} here); {advice}"
        )


def write_down(config: RunConfig, store: Store) -> None:
    """Make a config the run's own; it isn't complete any more."""
    store.set_meta("identity", config.identity())
    store.set_meta("config", config.as_json())
    store.set_meta("summary", None)
