"""What a run accepted, as a reshaped benchmark."""

from __future__ import annotations

from typing import Any, cast

from envharness_core.converter import structure
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.redaction import redact
from envharness_core.reshaped import Reshaped, ReshapedTask, task_id
from envharness_core.spec import ComponentSpec
from envharness_core.store import Store

_STREAMS = {"before": "report before", "after": "report after"}


def reshape(store: Store) -> Reshaped:
    """Make a reshaped benchmark of the tasks of a run that have an accepted stack, or are in order as they are.

    Raises:
        ConfigError: there is none.
    """
    store.require_campaign()
    config = cast("JsonObject", store.meta("config"))
    rates = {name: store.rates(stream) for name, stream in _STREAMS.items()}
    tasks = tuple(_task(result, rates) for result in store.results() if result["status"] != "abandoned")
    if not tasks:
        raise ConfigError(f"{store.folder}: no stack was accepted, so there is nothing to export")
    return Reshaped(
        bridge=structure(config["bridge"], ComponentSpec, "bridge"),
        upstream=_upstream(store),
        tasks=tasks,
        versions=cast("JsonObject", store.meta("versions") or {}),
        modules=structure(config["plugins"], dict[str, str], "plugins"),
        run=cast(
            "JsonObject", redact({key: config[key] for key in ("policy", "objective", "limits", "seed")})
        ),
    )


def _task(result: JsonObject, rates: dict[str, dict[str, tuple[int, int]]]) -> ReshapedTask:
    task = str(result["task"])
    layers = structure(result["layers"], tuple[ComponentSpec, ...], "layers")
    attempts = cast("list[Any]", result["attempts"])
    accepted: JsonObject = next(
        (attempt for attempt in reversed(attempts) if attempt["decision"] == "accept"), {}
    )
    metrics: JsonObject = {
        "baseline": _counted(result["baseline"]),
        "validation": _counted(accepted.get("validation")),
        "confirmation": _counted(accepted.get("confirmation")),
    }
    for name, measured in rates.items():
        if task in measured:
            wins, n = measured[task]
            metrics[f"report_{name}"] = {"successes": wins, "graded": n}
    return ReshapedTask(task_id(task, layers), task, layers, metrics)


def _counted(rate: Any) -> JsonObject | None:
    return None if rate is None else {"successes": rate["successes"], "graded": rate["graded"]}


def _upstream(store: Store) -> str:
    """Return the benchmark and its version, as the run's episodes have it."""
    row = next(store.recorded(store.places()[:1]), None)
    if row is None or row.design is None:
        raise ConfigError(f"{store.folder}: {row.problem if row else 'there is no episode yet'}")
    return str(row.design["upstream"])
