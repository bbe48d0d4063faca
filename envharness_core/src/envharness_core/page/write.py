"""Writes the report of a run as one web page."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from envharness_core.campaigns.summary import rate_band, summarise
from envharness_core.config import RunConfig
from envharness_core.errors import ConfigError, EnvHarnessError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import LAYER
from envharness_core.page.choice import RULE, choose, in_turn
from envharness_core.page.histogram import Panel, draw
from envharness_core.page.packing import Pack
from envharness_core.page.story import Told, gate_words, percent
from envharness_core.page.streams import PURPOSES, TITLES
from envharness_core.page.tally import Tally
from envharness_core.plugins import Plugins
from envharness_core.store import Store
from envharness_core.whole_file import whole_file

MEGABYTES = 20.0
"""What the rollouts in a page may take by default, in MB."""

_SCRIPTS = ("data.js", "overview.js", "viewer.js", "route.js")


def write_page(store: Store, config: RunConfig, path: Path, megabytes: float = MEGABYTES) -> JsonObject:
    """Write a run's report to a file and return what it holds.

    Args:
        store: the run's.
        config: the run's.
        path: the file; one that stands there is replaced.
        megabytes: what the rollouts in it may take together, in MB.

    Raises:
        ConfigError: an optional package is missing, or the file can't be written.
    """
    _require_packages()
    page, held = _page(store, config, int(megabytes * 1_000_000))
    try:
        _write(path, page)
    except OSError as error:
        raise ConfigError(f"{path}: can't be written: {error}") from error
    return {"html": str(path), "bytes": len(page), **held}


def _require_packages() -> None:
    try:
        import jinja2
        import matplotlib as mpl
    except ImportError as error:
        raise ConfigError(
            f"the HTML report needs {error.name}, which isn't installed: pip install 'envharness-core[report]'"
        ) from error
    del jinja2, mpl


def _page(store: Store, config: RunConfig, size: int) -> tuple[bytes, JsonObject]:
    tally, summary = Tally.of(store.episodes()), summarise(store, config)
    tasks = _tasks(store, tally, _band(config, summary))
    chosen = {told.task: choose(tally.first.get(told.task, {}), told.attempts) for told in tasks}
    pack = Pack(size)
    pack.fill(in_turn(chosen), lambda item: store.trajectory(item.episode))
    gate = gate_words(config.objective.as_json())
    places = [pack.put({**told.as_json(), **_rollouts(told, pack, tally), "gate": gate}) for told in tasks]
    context: dict[str, Any] = {
        "name": store.folder.resolve().name,
        "summary": summary,
        "facts": _facts(store, config),
        "band": _band(config, summary),
        "tasks": tasks,
        "tally": tally,
        "pack": pack,
        "places": json.dumps(places),
        "chunks": json.dumps(pack.chunks),
        "rule": RULE,
        "titles": TITLES,
        "purposes": PURPOSES,
        "outcomes": sorted(tally.total.outcomes, key=lambda name: -tally.total.outcomes[name]),
        "used_layers": _used_layers(tasks, config),
        **_histogram(tasks, _band(config, summary)),
    }
    held: JsonObject = {
        "episodes": pack.held,
        "of": tally.total.played,
        "left_out": pack.left_out,
        "damaged": cast("list[Json]", pack.damaged),
    }
    return _rendered(context), held


def _band(config: RunConfig, summary: Any) -> tuple[float, float] | None:
    """Return the success rates that are wanted, or None where the objective is about something else."""
    measured = any(share is not None for share in summary["in_band"].values())
    return rate_band(config) if measured else None


def _tasks(store: Store, tally: Tally, band: tuple[float, float] | None) -> list[Told]:
    """Return all tasks, those that aren't finished last."""
    before, after = store.rates("report before"), store.rates("report after")
    results: dict[str, Any] = {str(result["task"]): result for result in store.results()}
    names = [*results, *(task for task in tally.streams if task not in results)]
    return [
        Told(
            task,
            results[task]["status"] if task in results else "unfinished",
            before.get(task),
            after.get(task),
            band,
            results.get(task),
            tally.streams.get(task, {}),
        )
        for task in names
    ]


def _rollouts(told: Told, pack: Pack, tally: Tally) -> JsonObject:
    played = sum(count.played for count in tally.streams.get(told.task, {}).values())
    return {"episodes": cast("list[Json]", pack.episodes.get(told.task, [])), "played": played}


def _facts(store: Store, config: RunConfig) -> list[tuple[str, str]]:
    """Return what the run was, each fact with its value."""
    versions = cast("JsonObject", store.meta("versions") or {})
    named = [
        ("benchmark", config.bridge),
        ("policy", config.policy),
        ("objective", config.objective),
        ("designer", config.designer),
    ]
    facts = [(name, json.dumps(spec.as_json(), ensure_ascii=False)) for name, spec in named]
    seconds = store.meta("seconds")
    return [
        *facts,
        ("seed", str(config.seed)),
        ("seconds", "unknown" if seconds is None else f"{seconds:,}"),
        ("versions", ", ".join(f"{name} {value}" for name, value in versions.items())),
    ]


def _used_layers(tasks: list[Told], config: RunConfig) -> list[tuple[str, str]]:
    """Return the layers that were tried, each with its one line where its plugin is installed here."""
    used = {layer["use"] for told in tasks for attempt in told.attempts for layer in attempt["layers"]}
    plugins = Plugins(config.plugins, sandbox=config.sandbox)
    return [(use, _summary(plugins, use)) for use in sorted(used)]


def _summary(plugins: Plugins, use: str) -> str:
    try:
        return plugins.find(LAYER, use).summary
    except (EnvHarnessError, ImportError):
        return "its plugin isn't installed here"


def _histogram(tasks: list[Told], band: tuple[float, float] | None) -> dict[str, Any]:
    def rate(counted: tuple[int, int] | None) -> list[float]:
        return [counted[0] / counted[1]] if counted and counted[1] else []

    before = [value for told in tasks for value in rate(told.before)]
    accepted = [
        value
        for told in tasks
        for value in rate(told.after or (told.before if told.status == "kept" else None))
    ]
    others = [
        value for told in tasks if told.status not in ("accepted", "kept") for value in rate(told.before)
    ]
    panels = [
        Panel("Before: unchanged tasks", before),
        Panel("After: on the accepted layers", accepted, others),
    ]
    return {"panels": panels, "svg": draw(panels, band) if before else ""}


def _rendered(context: dict[str, Any]) -> bytes:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    assets = files("envharness_core.page") / "assets"
    script = "\n".join((assets / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    style = (assets / "report.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("envharness_core.page", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=_percent, amount=_amount)
    trusted = {"script": Markup(script), "style": Markup(style), "svg": Markup(context["svg"])}  # noqa: S704
    digest = b64encode(sha256(script.encode()).digest()).decode()
    page = environment.get_template("report.html.j2").render({**context, **trusted, "digest": digest})
    return page.encode(errors="replace")


def _percent(value: float | None) -> str:
    return "not measured" if value is None else percent(value)


def _amount(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"


def _write(path: Path, page: bytes) -> None:
    """Write a file as a whole, or not at all."""
    with whole_file(path) as file:
        file.write(page)
