"""Changes: what may differ when a run goes on with another config, and what may not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envharness_core.config import RunConfig
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


def write_down(config: RunConfig, store: Store) -> None:
    """Make a config the run's own; it isn't complete any more."""
    store.set_meta("identity", config.identity())
    store.set_meta("config", config.as_json())
    store.set_meta("summary", None)
