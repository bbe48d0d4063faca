"""Merge: runs of different tasks that are otherwise the same, as one."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from envharness_core.campaigns.facts import read_facts
from envharness_core.campaigns.summary import summarise
from envharness_core.config import make_config
from envharness_core.differences import differences
from envharness_core.errors import ConfigError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.store import Store


def merge_runs(folders: list[Path], into: Path) -> JsonObject:
    """Make one run of complete runs whose tasks are disjoint and which are otherwise equal; return its summary.

    The designs stay as they were made: each run's tasks learnt from that run alone, and a replay keeps to that.

    Args:
        folders: at least two run folders, which stay as they are.
        into: the new run folder; it appears whole or not at all.

    Raises:
        ConfigError: the runs can't be one; a line for each difference.
        CheckpointError: one isn't a run folder, or is damaged.
    """
    if len(folders) < 2:
        raise ConfigError("merge: name at least two run folders")
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ConfigError(f"{into}: exists; name a new folder")
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.open(folder, read_only=True)) for folder in folders]
        for store in stores:
            _check_alone(store)
        for store in stores[1:]:
            _check_pair(stores[0], store)
        draft = into.with_name(f".{into.name}.merging")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            summary = _merged(stores, draft)
            draft.replace(into)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return summary


def _merged(stores: list[Store], folder: Path) -> JsonObject:
    with Store.create(folder, _meta(stores)) as merged:
        position = 0
        for store in stores:
            merged.absorb(store, position)
            position += len(store.results())
        summary = summarise(merged, make_config(copy_object(merged.meta("config"))))
        merged.set_meta("summary", summary)
    return summary


def _meta(stores: list[Store]) -> JsonObject:
    facts = [read_facts(store) for store in stores]
    ids: list[Json] = [task.id for fact in facts for task in fact.tasks]
    first = stores[0]
    config, identity = (copy_object(first.meta(name)) for name in ("config", "identity"))
    for plain in (config, identity):
        selection = cast("JsonObject", plain["tasks"])
        plain["tasks"] = {**selection, "limit": None, "ids": ids}
    worlds = [copy_object(store.meta("world")) for store in stores]
    return {
        "config": config,
        "identity": identity,
        "versions": first.meta("versions"),
        "seconds": round(sum(cast("float", store.meta("seconds")) for store in stores), 1),
        "world": {
            **worlds[0],
            "tasks": [task for world in worlds for task in cast("list[Json]", world["tasks"])],
            "parts": [list(part) for fact in facts for part in fact.parts],
        },
        "merged": [str(store.folder) for store in stores],
    }


def _check_alone(store: Store) -> None:
    store.require_campaign()
    if store.meta("summary") is None:
        raise ConfigError(f"{store.folder}: not complete; go on with it first")
    if make_config(copy_object(store.meta("config"))).skills.coevolve:
        raise ConfigError(f"{store.folder}: its policy learnt from task to task; it can't be merged")
    if store.meta("pruned"):
        raise ConfigError(f"{store.folder}: its trajectories were pruned; it can't be merged")


def _check_pair(first: Store, other: Store) -> None:
    shared = sorted(
        {task.id for task in read_facts(first).tasks} & {task.id for task in read_facts(other).tasks}
    )
    if shared:
        raise ConfigError(f"{other.folder}: has tasks that another has too: {', '.join(shared[:5])}")
    changes = list(differences(_likeness(first), _likeness(other), now=f"in {other.folder}"))
    if changes:
        listed = "\n".join(f"  {change}" for change in changes)
        raise ConfigError(f"{other.folder}: not the same run as {first.folder} but for its tasks:\n{listed}")


def _likeness(store: Store) -> JsonObject:
    """Return what runs must have in common."""
    identity, world = (copy_object(store.meta(name)) for name in ("identity", "world"))
    selection: Any = identity.pop("tasks")
    return {
        **identity,
        "tasks.split": selection["split"],
        "upstream": world["upstream"],
        "versions": store.meta("versions"),
    }
