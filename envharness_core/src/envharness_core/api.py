"""The Python face: build a stack, roll it out, run a campaign, write its report, evaluate skills."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from envharness_core.campaigns.holding import Listener
from envharness_core.campaigns.run import run_campaign
from envharness_core.config import RunConfig, make_config, read_config
from envharness_core.converter import structure
from envharness_core.env import Bridge
from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.errors import (
    PLUGIN_FAULTS,
    CheckpointError,
    ConfigError,
    EnvHarnessError,
    OrderError,
    SetupError,
    foreign,
)
from envharness_core.evaluation.compare import compare_evaluations
from envharness_core.evaluation.run import run_evaluation
from envharness_core.executor import Executor
from envharness_core.executors.inline import Inline
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EXECUTOR, POLICY
from envharness_core.page.write import MEGABYTES, write_page
from envharness_core.plugins import Plugins
from envharness_core.policy import check_policy
from envharness_core.reshaped import is_reshaped, read_reshaped
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack, layer_specs, wrap
from envharness_core.store import Store
from envharness_core.trajectory import Rollout, read_trajectory

SpecLike = ComponentSpec | JsonObject | str
"""A component as a user names it: a spec, a table with ``use``, or a name."""
BridgeLike = SpecLike | Path
"""A bridge as a user names it: a component, or the file of a reshaped benchmark, whose name ends in ``.json``."""


def stack(
    base: Bridge | Stack | BridgeLike,
    layers: Sequence[SpecLike] = (),
    *,
    task: str | None = None,
    plugins: Plugins | None = None,
) -> Stack:
    """Put layers, innermost first, on a bridge, which is named or an instance, or on another stack.

        >>> with stack("toy24", [{"use": "faults", "rate": 0.2}]) as env:
        ...     first = env.reset(seed=0, options={"task": "3-3-8-8"})

    Args:
        base: what to put them on; the file of a reshaped benchmark stands for its bridge under the task's layers.
        layers: what to put on it.
        task: which task of a reshaped benchmark; a reset then takes the benchmark's own name for it.
        plugins: where names are looked up; None for what is installed.

    Raises:
        ConfigError: an unknown component or key, or a value that isn't allowed.
        PluginError: a plugin is broken.
    """
    plugins = plugins or Plugins()
    if not is_reshaped(base) and task is not None:
        raise ConfigError(
            "task: only a reshaped benchmark's stack is chosen by a task; name others at the reset"
        )
    if isinstance(base, Bridge | Stack):
        built = wrap(plugins, base, layer_specs(layers))
    elif is_reshaped(base):
        made = read_reshaped(Path(cast("str", base)), plugins)
        if task is None:
            raise ConfigError(f"{base}: each of its tasks has a stack of its own; name one with task=...")
        built = build_stack(plugins, made.bridge, (*made.task(task).layers, *layer_specs(layers)))
    else:
        built = build_stack(plugins, _spec(cast("SpecLike", base), "bridge"), layer_specs(layers))
    try:
        built.check()
    except EnvHarnessError:
        built.close()
        raise
    return built


def rollout(
    bridge: BridgeLike,
    task: str,
    policy: SpecLike,
    layers: Sequence[SpecLike] = (),
    *,
    count: int = 1,
    seed: int = 0,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    skills: Sequence[str] = (),
    executor: SpecLike | None = None,
    plugins: Plugins | None = None,
) -> list[Rollout]:
    """Play a task ``count`` times and return the episodes in rollout order; failures are outcomes, not exceptions.

        >>> first, second = rollout("toy24", "3-3-8-8", {"use": "solver", "skill": 0.9}, count=2)

    With the file of a reshaped benchmark as the bridge, the task's accepted layers come innermost. ``skills`` are texts
    that the policy is given.

    Raises:
        ConfigError: an unknown component, key or task, or a value that isn't allowed.
        PluginError: a plugin is broken.
    """
    plugins = plugins or Plugins()
    specs = rollout_specs(
        bridge, task, policy, layers, count=count, seed=seed, limits=limits, skills=skills, plugins=plugins
    )
    runner: Executor = (
        Inline() if executor is None else plugins.create(EXECUTOR, _spec(executor, "executor"), "executor")
    )
    try:
        records = list(runner.run(iter(specs), plugins))
    finally:
        runner.close()
    records.sort(key=lambda record: record.episode.index)
    return [Rollout(record.episode, read_trajectory(record.blob)) for record in records]


def campaign(
    config: RunConfig | JsonObject | Path | str,
    run_dir: Path | str,
    *,
    overrides: Sequence[str] = (),
    plugins: Plugins | None = None,
    listener: Listener = lambda _: None,
) -> JsonObject:
    """Run a campaign in a folder, or go on with it, and return its summary.

    Args:
        config: a config, plain data of one, or a TOML file's path.
        run_dir: the run folder; made if need be.
        overrides: ``a.b=value`` each, for a file's config.
        plugins: instead of those that the config names.
        listener: called with the progress after each episode.

    Raises:
        ConfigError: the config is wrong, or the folder holds something else.
        PluginError: a plugin is broken.
    """
    return run_campaign(_config(config, overrides), Path(run_dir), plugins, listener)


def _config(config: RunConfig | JsonObject | Path | str, overrides: Sequence[str]) -> RunConfig:
    """Return a config, however it is given."""
    if isinstance(config, Path | str):
        return read_config(Path(config), overrides)
    if overrides:
        raise ConfigError("overrides: only a file's config is overridden")
    return make_config(config) if isinstance(config, dict) else config


def evaluate(
    config: RunConfig | JsonObject | Path | str,
    run_dir: Path | str,
    *,
    source: Path | str | None = None,
    unseal: bool = False,
    overrides: Sequence[str] = (),
    plugins: Plugins | None = None,
    listener: Listener = lambda _: None,
) -> JsonObject:
    """Score a policy on held-out tasks of the untouched benchmark, with and without skills; return the summary.

    Args:
        config: a config, plain data of one, or a TOML file's path; ``evaluation`` says how.
        run_dir: the evaluation's own folder; the same folder goes on with it.
        source: the folder of the campaign whose accepted stacks the condition ``reshaped`` learns on.
        unseal: whether a split that ``evaluation.seal`` keeps sealed may be scored now.
        overrides: ``a.b=value`` each, for a file's config.
        plugins: instead of those that the config names.
        listener: called with the progress after each episode.

    Raises:
        ConfigError: the config is wrong, the folder holds something else, or the split is sealed.
        PluginError: a plugin is broken.
        RunError: too much failed, or the budget is spent; what had ended is kept.
    """
    made = _config(config, overrides)
    folder = None if source is None else Path(source)
    return run_evaluation(made, Path(run_dir), folder, plugins, listener, unseal=unseal)


def compare(*run_dirs: Path | str) -> JsonObject:
    """Return what evaluations found, and the paired differences between them: see ``evaluation.compare``.

    Raises:
        ConfigError: they can't be compared.
        CheckpointError: one isn't a complete evaluation, or is damaged.
    """
    return compare_evaluations([Path(folder) for folder in run_dirs])


def report_html(folder: Path | str, path: Path | str, *, megabytes: float = MEGABYTES) -> JsonObject:
    """Write what a run found as one web page that works offline, and return what the page holds.

    A run that isn't complete yet is told as far as it is.

    Args:
        folder: the run folder; it is only read.
        path: the file; one that stands there is replaced.
        megabytes: what the rollouts in the page may take together, in MB; the most telling ones come first.

    Returns:
        ``html`` (the file), ``bytes``, ``episodes`` (in the page) ``of`` how many, ``left_out`` for want of room, and
        ``damaged``, one line for each record that can't be read.

    Raises:
        CheckpointError: it is no run folder, or what is in it can't be made sense of.
        ConfigError: the optional packages aren't installed (``envharness-core[report]``), or the file can't be written.
    """
    folder = Path(folder)
    with Store.open(folder, read_only=True) as store:
        store.require_campaign()
        try:
            config = make_config(cast("JsonObject", store.meta("config")))
            return write_page(store, config, Path(path), megabytes)
        except (sqlite3.Error, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise CheckpointError(
                f"{folder}: the store is damaged: {type(error).__name__}: {error}"
            ) from error


def rollout_specs(
    bridge: BridgeLike,
    task: str,
    policy: SpecLike,
    layers: Sequence[SpecLike],
    *,
    count: int,
    seed: int,
    limits: Limits,
    plugins: Plugins,
    skills: Sequence[str] = (),
) -> list[EpisodeSpec]:
    """Return the episodes that ``rollout`` plays, after checking everything that is the caller's.

    Raises:
        ConfigError: an unknown component, key or task, or a value that isn't allowed.
        PluginError: a plugin is broken.
    """
    spec, task, inner = _base(bridge, task, plugins)
    stacked = (*inner, *layer_specs(layers))
    if count < 1:
        raise ConfigError(f"count: expected 1 or more, got {count}")
    with foreign("the stack"), build_stack(plugins, spec, stacked) as built:
        built.check()
        _rehearse(built, seed, task)
        capabilities, tools, ways = built.capabilities, built.tools(), built.solutions
    upstream = f"{capabilities.upstream} {capabilities.version}"
    design = Design(spec, upstream, task, stacked, _spec(policy, "policy"), limits, tuple(skills))
    with foreign("the policy"), closing(plugins.create(POLICY, design.policy, "policy")) as made:
        check_policy(made, tools, ways)
    return [
        EpisodeSpec(
            design,
            "rollout",
            index,
            Seeds.of(seed, task, "rollout", index, seed_in_task=capabilities.seed_in_task),
        )
        for index in range(count)
    ]


def _base(
    bridge: BridgeLike, task: str, plugins: Plugins
) -> tuple[ComponentSpec, str, tuple[ComponentSpec, ...]]:
    """Return the bridge, the benchmark's own task and the layers that a user's bridge and task stand for."""
    if not is_reshaped(bridge):
        return _spec(cast("SpecLike", bridge), "bridge"), task, ()
    made = read_reshaped(Path(cast("str", bridge)), plugins)
    found = made.task(task)
    return made.bridge, found.task, found.layers


def _rehearse(built: Stack, seed: int, task: str) -> None:
    """Refuse what is the caller's mistake, an unknown task or a wrong action; the rest is an episode's outcome."""
    try:
        built.reset(seed, {"task": task})
    except (ConfigError, SetupError, OrderError):
        raise
    except PLUGIN_FAULTS:
        pass


def _spec(value: SpecLike, where: str) -> ComponentSpec:
    return structure(value, ComponentSpec, where)
