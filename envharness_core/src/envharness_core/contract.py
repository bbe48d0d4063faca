"""The contract as named checks, without pytest: for ``envharness check``, a campaign's gate, and the testing kit.

>>> from envharness_core import ComponentSpec, Plugins
>>> results = check_layer(Plugins(), ComponentSpec("faults", {"rate": 0.5}))
>>> [result.name for result in results if not result.passed]
[]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from envharness_core.checks.bench import WORLDS, LayerBench
from envharness_core.checks.bridge import BRIDGE_CHECKS
from envharness_core.checks.bridge_bench import BridgeBench
from envharness_core.checks.drive import World
from envharness_core.checks.layer import LAYER_CHECKS
from envharness_core.checks.results import CheckResult, run_check
from envharness_core.env import Bridge
from envharness_core.errors import ConfigError
from envharness_core.kinds import BRIDGE
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec

__all__ = [
    "BRIDGE_CHECKS",
    "LAYER_CHECKS",
    "BridgeBench",
    "CheckResult",
    "LayerBench",
    "World",
    "bridge_bench",
    "check_bridge",
    "check_layer",
    "layer_bench",
    "run_check",
]

TESTING = "envharness_core.testing.plugin"
"""The module that registers the doubles, under the name ``testing``."""


def check_bridge(
    plugins: Plugins,
    bridge: ComponentSpec,
    *,
    tasks: Sequence[str] = (),
    texts: Sequence[str] = (),
    heard: Callable[[CheckResult], None] = lambda _: None,
) -> list[CheckResult]:
    """Check a bridge against the contract, in the order of its life.

    Args:
        plugins: where the bridge is found.
        bridge: its name and config.
        tasks: which tasks to play; none takes the first two that it lists.
        texts: what text arguments may be, beside the lists of strings in the observation's data.
        heard: called with each result as soon as it is there.

    Raises:
        ConfigError: there is no such bridge, or its config isn't allowed.
        PluginError: its plugin is broken.
    """
    results = []
    with bridge_bench(plugins, bridge, tasks=tasks, texts=texts) as bench:
        for check in BRIDGE_CHECKS:
            results.append(_told(heard, run_check(check, bench)))
            bench.close()  # a bridge may hold a process of its own
    return results


def check_layer(
    plugins: Plugins,
    layer: ComponentSpec,
    *,
    worlds: Sequence[World] = (),
    heard: Callable[[CheckResult], None] = lambda _: None,
) -> list[CheckResult]:
    """Check a layer against the contract, over worlds that are made for it.

    Args:
        plugins: where the layer is found.
        layer: its name and config.
        worlds: bridges and tasks to try it over; none takes Toy24 and the doubles, where the layer fits them.
        heard: called with each result as soon as it is there.
    """
    results: list[CheckResult] = []
    with layer_bench(plugins, layer, worlds=worlds) as bench:
        for check in LAYER_CHECKS:
            results.append(_told(heard, run_check(check, bench)))
            if not results[0].passed:  # it fits no world: nothing else can be checked
                break
    return results


@contextmanager
def bridge_bench(
    plugins: Plugins, bridge: ComponentSpec, *, tasks: Sequence[str] = (), texts: Sequence[str] = ()
) -> Iterator[BridgeBench]:
    """Make the bench that the checks of a bridge run on, and close what was opened on it."""

    def make() -> Bridge:
        return plugins.create(BRIDGE, bridge, "bridge")

    bench = BridgeBench(make, tuple(tasks) or _first_tasks(make()), tuple(texts))
    try:
        yield bench
    finally:
        bench.close()


@contextmanager
def layer_bench(
    plugins: Plugins, layer: ComponentSpec, *, worlds: Sequence[World] = ()
) -> Iterator[LayerBench]:
    """Make the bench that the checks of a layer run on, and close what was opened on it."""
    bench = LayerBench(with_doubles(plugins), layer, tuple(worlds) or WORLDS)
    try:
        yield bench
    finally:
        bench.close()


def with_doubles(plugins: Plugins) -> Plugins:
    """Return plugins among which the doubles are, as ``testing``."""
    if "testing" in plugins.names():
        return plugins
    return Plugins({**plugins.modules, "testing": TESTING}, sandbox=plugins.sandbox)


def _first_tasks(bridge: Bridge) -> tuple[str, ...]:
    with bridge:
        for split in bridge.splits:
            tasks = bridge.list_tasks(split, 2)
            if tasks:
                return tuple(task.id for task in tasks)
    raise ConfigError(f"{type(bridge).__name__}: there are no tasks in {', '.join(bridge.splits)}")


def _told(heard: Callable[[CheckResult], None], result: CheckResult) -> CheckResult:
    heard(result)
    return result
