"""The core's own plugin: what the core ships, registered by the same hooks as anybody's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from envharness_core import Component, hookimpl

if TYPE_CHECKING:
    from envharness_core import Bridge, Designer, Env, Executor, Extractor, Objective, Policy

_PACKAGE = "envharness_core"


def _component(name: str, where: str, config: str | None, summary: str) -> Component:  # type: ignore[type-arg]
    module, _, factory = where.partition(":")
    target = f"{_PACKAGE}.{module}"
    configured = None if config is None else f"{target}:{config}"
    return Component(name, f"{target}:{factory}", configured, summary)


@hookimpl
def envharness_bridges() -> Iterable[Component[Bridge]]:
    """Yield the embedded benchmark."""
    yield _component(
        "toy24", "toy24.bridge:Toy24", "Toy24Config", "the game of 24: all 1,362 solvable puzzles"
    )


@hookimpl
def envharness_layers() -> Iterable[Component[Env]]:
    """Yield the three layers of the design, and the parametrised ones that ``catalog`` uses."""
    yield _component("setup", "layers.setup:Setup", "SetupConfig", "starts after some actions")
    yield _component(
        "rules", "layers.source:SourceRules", "SourceConfig", "hooks as source code, in the rules sandbox"
    )
    yield _component("link", "layers.link:Link", "LinkConfig", "goes on with another environment")
    yield _component("faults", "layers.faults:Faults", "FaultsConfig", "fails now and then, recoverably")
    yield _component("budget", "layers.budget:Budget", "BudgetConfig", "ends after so many steps")
    yield _component("closed", "layers.closed:Closed", "ClosedConfig", "closes a way of acting")
    yield _component(
        "short_memory",
        "layers.short_memory:ShortMemory",
        "ShortMemoryConfig",
        "shows only the end of a history",
    )


@hookimpl
def envharness_objectives() -> Iterable[Component[Objective]]:
    """Yield the objectives."""
    yield _component(
        "success_band",
        "objectives.success_band:SuccessBand",
        "SuccessBandConfig",
        "a success rate between two bounds",
    )
    yield _component(
        "step_band",
        "objectives.step_band:StepBand",
        "StepBandConfig",
        "successes that take a number of steps between two bounds",
    )
    yield _component(
        "weakness",
        "objectives.weakness:Weakness",
        "WeaknessConfig",
        "a success rate below the unchanged task's, by a weakness in words",
    )
    yield _component(
        "autonomous",
        "objectives.autonomous:Autonomous",
        "AutonomousConfig",
        "a task that more can be learnt from than before",
    )
    yield _component(
        "red_team",
        "objectives.red_team:RedTeam",
        "RedTeamConfig",
        "as low a success rate as possible on a task that can be solved",
    )


@hookimpl
def envharness_designers() -> Iterable[Component[Designer]]:
    """Yield the designers that need no model."""
    yield _component("noop", "designers.noop:Noop", None, "proposes nothing")
    yield _component("scripted", "designers.scripted:Scripted", "ScriptedConfig", "proposes a given list")
    yield _component(
        "catalog",
        "designers.catalog:Catalog",
        "CatalogConfig",
        "picks parametrised layers and searches their magnitude",
    )


@hookimpl
def envharness_policies() -> Iterable[Component[Policy]]:
    """Yield the policies that need no model."""
    yield _component(
        "expert", "policies.expert:Expert", "ExpertConfig", "plays the bridge's own solution: an oracle"
    )
    yield _component("person", "policies.person:Person", None, "asks whoever sits at the terminal")
    yield _component("random", "policies.random:RandomPolicy", "RandomConfig", "calls tools by chance")
    yield _component(
        "scripted", "policies.scripted:ScriptedPolicy", "ScriptConfig", "does a given list of actions"
    )
    yield _component(
        "solver", "toy24.solver:Solver", "SolverConfig", "plays Toy24 as an imperfect person does"
    )


@hookimpl
def envharness_executors() -> Iterable[Component[Executor]]:
    """Yield the executors for one machine."""
    yield _component("inline", "executors.inline:Inline", None, "plays in this process")
    yield _component("local", "executors.local:Local", "LocalConfig", "plays in worker processes")
    yield _component("threads", "executors.threads:Threads", "ThreadsConfig", "plays in threads that wait")


@hookimpl
def envharness_extractors() -> Iterable[Component[Extractor]]:
    """Yield the extractor that needs no model."""
    yield _component(
        "contrast",
        "skills.contrast:Contrast",
        "ContrastConfig",
        "what winners did that losers didn't",
    )
