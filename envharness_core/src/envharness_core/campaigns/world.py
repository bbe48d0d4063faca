"""The world of a run: what is known of its bridge, and whether its config fits, before anything is played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from attrs import frozen

from envharness_core.config import RunConfig, TaskSelection
from envharness_core.data import Capabilities, TaskSummary
from envharness_core.env import Bridge
from envharness_core.episode import Design
from envharness_core.errors import BridgeError, ConfigError, EnvHarnessError, foreign, unknown
from envharness_core.kinds import BRIDGE, DESIGNER, EMBEDDER, EXTRACTOR, OBJECTIVE, POLICY
from envharness_core.plugins import Plugins
from envharness_core.policy import check_policy
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack


@frozen
class World:
    """What a run knows of its bridge, without having played it."""

    capabilities: Capabilities
    tasks: tuple[TaskSummary, ...]
    bridge: Bridge

    @property
    def upstream(self) -> str:
        """The benchmark and its version."""
        return f"{self.capabilities.upstream} {self.capabilities.version}"


def look_at(config: RunConfig, plugins: Plugins) -> World:
    """Make the bridge that a config names and list its tasks.

    Raises:
        ConfigError: there is no such split or task.
    """
    bridge = plugins.create(BRIDGE, config.bridge, "bridge")
    try:
        with foreign(f"bridge {config.bridge.use}", BridgeError):
            tasks = select_tasks(bridge, config.tasks)
            return World(bridge.capabilities, tasks, bridge)
    except EnvHarnessError:
        bridge.close()
        raise


def check_fit(config: RunConfig, plugins: Plugins, world: World) -> None:
    """Check what only shows when a config's components meet: actions against tools, layers against the bridge.

    Raises:
        ConfigError: names the field and what is allowed.
        PluginError: a plugin is broken.
    """
    tools = world.bridge.tools()
    for spec in (config.policy, config.demonstrator, config.report.weaker, config.report.stronger):
        if spec is not None:
            with foreign(f"policy {spec.use}"), closing(plugins.create(POLICY, spec, "policy")) as policy:
                check_policy(policy, tools, world.bridge.solutions)
                if spec is config.policy and policy.repeats:
                    _refuse_rates(config, plugins, world)
    with foreign(f"designer {config.designer.use}"):
        plugins.create(DESIGNER, config.designer, "designer").check(
            lambda layers: _try_out(plugins, config.bridge, layers)
        )


def check_learning(config: RunConfig, plugins: Plugins) -> None:
    """Check that extractor and embedder can be had.

    Raises:
        ConfigError: names the field and what is allowed.
        PluginError: a plugin is broken.
    """
    plugins.create(EXTRACTOR, config.extractor, "extractor").close()
    if config.embedder is not None:
        plugins.create(EMBEDDER, config.embedder, "embedder").close()


def _refuse_rates(config: RunConfig, plugins: Plugins, world: World) -> None:
    """Refuse to measure the rate of a policy whose rollouts on an unchanged task are all the same one."""
    objective = plugins.create(OBJECTIVE, config.objective, "objective")
    same_world = world.capabilities.seed_in_task and world.capabilities.deterministic
    if same_world and objective.band is not None and config.campaign.rollouts > 1:
        raise ConfigError(
            "policy: it answers the same in every rollout (a model at temperature 0, or an expert), so its success "
            "rate can't be brought into a band of rates: use a policy that varies (a temperature above 0), or set "
            "campaign.rollouts = 1"
        )


def _try_out(plugins: Plugins, bridge: ComponentSpec, layers: Sequence[ComponentSpec]) -> None:
    with build_stack(plugins, bridge, layers) as stack:
        stack.check()


def select_tasks(bridge: Bridge, selection: TaskSelection, where: str = "tasks") -> tuple[TaskSummary, ...]:
    """Return the tasks that a config selects.

    Args:
        bridge: where they are.
        selection: which ones.
        where: what the user calls the selection.

    Raises:
        ConfigError: there is no such split or task, or none is left.
    """
    try:
        bridge.check_split(selection.split)
    except ConfigError as error:
        raise ConfigError(f"{where}.split: {error}") from error
    listed = bridge.list_tasks(selection.split, None if selection.ids else selection.limit)
    twice = [task for task, count in Counter(task.id for task in listed).items() if count > 1]
    if twice:
        raise BridgeError(f"{type(bridge).__name__} lists the task {twice[0]!r} twice")
    if not selection.ids:
        if not listed:
            raise ConfigError(f"{where}: the split {selection.split!r} has no tasks")
        return tuple(listed)
    known = {task.id: task for task in listed}
    for task in selection.ids:
        if task not in known:
            raise unknown("task", task, known, where=f"{where}.ids")
    if len(set(selection.ids)) < len(selection.ids):
        raise ConfigError(f"{where}.ids: a task is listed twice")
    return tuple(known[task] for task in selection.ids)[: selection.limit]


def bare_design(config: RunConfig, world: World, task: str) -> Design:
    """Return the design of the unchanged task."""
    return Design(config.bridge, world.upstream, task, (), config.policy, config.limits)
