"""Comparing evaluations, each read from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from attrs import evolve

from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.evaluation.plan import KIND
from envharness_core.evaluation.scores import Attempts, compared
from envharness_core.jsondata import Json, JsonObject
from envharness_core.store import DAMAGE, Store


def compare_evaluations(folders: Sequence[Path]) -> JsonObject:
    """Return what complete evaluations found, and how they differ.

    Of one folder, its summary. Of several, every condition of each, named ``folder: condition``, and the paired
    difference of each condition of the others to the first one's of the same name, on the tasks that they share.

    Raises:
        ConfigError: they are about different benchmarks, or share no condition.
        CheckpointError: one isn't a complete evaluation, or is damaged.
    """
    if not folders:
        raise ConfigError("compare: name at least one evaluation's folder")
    summaries = [_summary(folder) for folder in folders]
    if len(folders) == 1:
        return summaries[0]
    _check_alike(folders, summaries)
    read = [
        _attempts(folder, summary, label)
        for folder, summary, label in zip(folders, summaries, _labels(folders), strict=True)
    ]
    pairs = [
        compared(others[name], read[0][name]) for others in read[1:] for name in others if name in read[0]
    ]
    if not pairs:
        raise ConfigError(
            f"{folders[1]}: shares no condition with {folders[0]}, so there is nothing to compare"
        )
    return {
        "kind": "comparison",
        "upstream": summaries[0]["upstream"],
        "conditions": [cast("Json", item.as_json()) for items in read for item in items.values()],
        "comparisons": cast("Json", pairs),
    }


def _summary(folder: Path) -> JsonObject:
    with Store.open(folder, read_only=True) as store:
        if store.meta("kind") != KIND:
            raise CheckpointError(f"{folder}: a campaign, not an evaluation; see envharness report {folder}")
        summary = store.meta("summary")
    if summary is None:
        raise CheckpointError(f"{folder}: the evaluation isn't complete; go on with it first")
    return cast("JsonObject", summary)


def _check_alike(folders: Sequence[Path], summaries: Sequence[JsonObject]) -> None:
    for folder, summary in zip(folders[1:], summaries[1:], strict=True):
        if summary["upstream"] != summaries[0]["upstream"]:
            raise ConfigError(
                f"{folder}: is about {summary['upstream']}, but {folders[0]} is about {summaries[0]['upstream']}"
            )


def _labels(folders: Sequence[Path]) -> list[str]:
    """Return what to call folders: their names, or their whole paths where names are alike."""
    names = [folder.name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _attempts(folder: Path, summary: JsonObject, label: str) -> dict[str, Attempts]:
    """Read the attempts that count, by condition."""
    rows: Any = summary["conditions"]
    with Store.open(folder, read_only=True) as store:
        try:
            keys: Any = store.meta("attempts")
            found = [
                Attempts(
                    row["condition"],
                    row["tasks"],
                    tuple(
                        {task: _episode(store, key) for task, key in run.items()}
                        for run in keys[row["condition"]]
                    ),
                    row["learnt"],
                )
                for row in rows
            ]
        except DAMAGE as error:
            raise CheckpointError(
                f"{folder}: the store is damaged: {type(error).__name__}: {error}"
            ) from error
    return {item.name: evolve(item, name=f"{label}: {item.name}") for item in found}


def _episode(store: Store, key: str) -> Any:
    episode = store.get(key)
    if episode is None:
        raise CheckpointError(f"{store.folder}: there is no episode {key}")
    return episode
