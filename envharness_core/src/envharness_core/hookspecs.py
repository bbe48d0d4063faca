"""The hooks: each asks a plugin for its components of one kind, once, when the plugin is loaded.

A plugin is a module that the entry-point group ``envharness`` names; the entry point's name is the plugin's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

from envharness_core.component import Component

if TYPE_CHECKING:
    from envharness_core.designer import Designer
    from envharness_core.env import Bridge, Env
    from envharness_core.executor import Executor
    from envharness_core.objective import Objective
    from envharness_core.policy import Policy
    from envharness_core.skills.embedder import Embedder
    from envharness_core.skills.extractor import Extractor

hookspec = pluggy.HookspecMarker("envharness")
hookimpl = pluggy.HookimplMarker("envharness")


@hookspec
def envharness_bridges() -> Iterable[Component[Bridge]]:  # type: ignore[empty-body]
    """Yield bridges: ``factory(config) -> Bridge``.

    ::

        @hookimpl
        def envharness_bridges():
            yield Component(name="guess", factory="my_plugin.guess:Guess")
    """


@hookspec
def envharness_layers() -> Iterable[Component[Env]]:  # type: ignore[empty-body]
    """Yield layers: ``factory(inner, config) -> Layer``.

    ::

        @hookimpl
        def envharness_layers():
            yield Component(name="flaky_tools", factory=FlakyTools, config=Config)
    """


@hookspec
def envharness_objectives() -> Iterable[Component[Objective]]:  # type: ignore[empty-body]
    """Yield objectives: ``factory(config) -> Objective``.

    ::

        @hookimpl
        def envharness_objectives():
            yield Component(name="at_most_half", factory="my_plugin.goals:AtMostHalf")
    """


@hookspec
def envharness_designers() -> Iterable[Component[Designer]]:  # type: ignore[empty-body]
    """Yield designers: ``factory(config) -> Designer``.

    ::

        @hookimpl
        def envharness_designers():
            yield Component(name="always_flaky", factory="my_plugin.designs:AlwaysFlaky")
    """


@hookspec
def envharness_policies() -> Iterable[Component[Policy]]:  # type: ignore[empty-body]
    """Yield policies: ``factory(config) -> Policy``.

    ::

        @hookimpl
        def envharness_policies():
            yield Component(name="lazy", factory="my_plugin.agents:Lazy")
    """


@hookspec
def envharness_executors() -> Iterable[Component[Executor]]:  # type: ignore[empty-body]
    """Yield executors: ``factory(config) -> Executor``.

    ::

        @hookimpl
        def envharness_executors():
            yield Component(name="cluster", factory="my_plugin.cluster:Cluster")
    """


@hookspec
def envharness_extractors() -> Iterable[Component[Extractor]]:  # type: ignore[empty-body]
    """Yield extractors: ``factory(config) -> Extractor``.

    ::

        @hookimpl
        def envharness_extractors():
            yield Component(name="do_as_before", factory="my_plugin.lessons:DoAsBefore")
    """


@hookspec
def envharness_embedders() -> Iterable[Component[Embedder]]:  # type: ignore[empty-body]
    """Yield embedders: ``factory(config) -> Embedder``.

    ::

        @hookimpl
        def envharness_embedders():
            yield Component(name="counts_letters", factory="my_plugin.vectors:CountsLetters")
    """
