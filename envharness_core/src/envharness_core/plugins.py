"""Finding and loading plugins: guarded, lazily, each by its name.

The one module that touches the plugin manager. A broken plugin is listed with its cause and breaks nothing else;
naming it is fatal.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import pluggy
from attrs import evolve

from envharness_core import hookspecs
from envharness_core.component import Component, Kind
from envharness_core.converter import structure
from envharness_core.errors import (
    PLUGIN_FAULTS,
    ConfigError,
    NameConflict,
    PluginError,
    nearest,
    unknown,
)
from envharness_core.found import Found, Listed, Source
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import KINDS
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.session import Attachable, Charge, Session
from envharness_core.spec import ComponentSpec

GROUP = "envharness"
CORE = "core"
_NAME = re.compile(r"[a-z][a-z0-9_]*")

T = TypeVar("T")


class Plugins:
    """The plugins of this process: one object, passed down.

    Args:
        modules: further plugins as ``{name: importable module}``, for tests, notebooks and projects without packaging.
            They are data: worker processes load them too.
        sandbox: how rules that are given as source code run: a config, its plain data, or its mode; the user's choice,
            never a designer's.
        settings: what the operator chose for plugins, as ``{plugin: settings}``; each is checked by its plugin.
    """

    def __init__(
        self,
        modules: Mapping[str, str] | None = None,
        *,
        sandbox: SandboxConfig | JsonObject | str | None = None,
        settings: Mapping[str, JsonObject] | None = None,
    ) -> None:
        self.modules = dict(modules or {})
        self.settings = dict(settings or {})
        self._session = Session()
        self.sandbox = structure({} if sandbox is None else sandbox, SandboxConfig, "sandbox")
        for name in self.modules:
            if not _NAME.fullmatch(name):
                raise ConfigError(f"plugins: {name!r} is no plugin's name; use lower_snake")
        self._manager = pluggy.PluginManager("envharness")
        self._manager.add_hookspecs(hookspecs)
        self._loaded: dict[str, dict[str, tuple[Found[Any], ...]]] = {}
        self._loading = threading.RLock()

    def names(self) -> list[str]:
        """Return the names of all plugins, sorted, loading none."""
        return sorted(self._sources)

    def origins(self) -> JsonObject:
        """Return each plugin's distribution and version, or the module that it is, loading none."""
        return {
            name: " and ".join(f"{source.distribution} {source.version}".strip() for source in sources)
            for name, sources in sorted(self._sources.items())
        }

    def source(self, name: str) -> Source:
        """Return where a plugin comes from, loading nothing.

        Raises:
            ConfigError: there is no such plugin.
            NameConflict: two distributions claim the name.
        """
        sources = self._sources.get(name)
        if sources is None:
            raise unknown("plugin", name, self._sources)
        if len(sources) > 1:
            claims = " and ".join(f"{source.distribution} {source.version}".strip() for source in sources)
            raise NameConflict(f"plugin {name!r} is claimed by {claims}: remove one of them")
        return sources[0]

    def find(self, kind: Kind[T], use: str, where: str = "") -> Found[T]:
        """Return the component that ``use`` names.

        Args:
            kind: the kind to look among.
            use: ``plugin/component``, or one word where plugin and component share it or the core owns it.
            where: what the user calls the place that names it, for errors.

        Raises:
            ConfigError: there is no such component; gives the nearest name and what is installed.
            PluginError: its plugin is broken.
        """
        for plugin, name in self._candidates(use):
            if plugin in self._sources:
                for found in self._load(plugin)[kind.hook]:
                    if found.component.name == name:
                        return cast("Found[T]", found)
        raise unknown(kind.name, use, self._known(kind), where=where)

    def create(self, kind: Kind[T], spec: ComponentSpec, where: str) -> T:
        """Make the component that a spec names, with its config, and tell it where it works.

        Raises:
            ConfigError: unknown component or key, or a value that isn't allowed; also in its plugin's settings.
            PluginError: the plugin or the component's code is broken.
        """
        found = self.find(kind, spec.use, where)
        made = found.make(found.configure(spec.config, where))
        if isinstance(made, Attachable):
            made.attach(self.session(found.source.name))
        return cast("T", made)

    def working_in(
        self,
        folder: Path | None,
        settings: Mapping[str, JsonObject],
        charge: Charge | None = None,
        *,
        replaying: bool = False,
    ) -> Plugins:
        """Return the same plugins, whose components are told that they work in a run folder.

        Args:
            folder: the run folder; None outside of a run.
            settings: those of the run, over this object's.
            charge: where what is used is accounted.
            replaying: whether nobody may be asked what isn't recorded.

        Raises:
            ConfigError: there are settings for a plugin that isn't there.
        """
        for name in settings:
            if name not in self._sources:
                raise unknown("plugin", name, self._sources, where="settings")
        other = copy(self)
        other.settings = {**self.settings, **settings}
        other._session = Session(folder, replaying=replaying)
        if charge is not None:
            other._session = evolve(other._session, charge=charge)
        return other

    @property
    def folder(self) -> Path | None:
        """The run folder that components are told of."""
        return self._session.folder

    def session(self, plugin: str) -> Session:
        """Return what components of a plugin are told of where they work."""
        return evolve(self._session, settings=self.settings.get(plugin, {}))

    def components(self, kind: Kind[T]) -> list[Found[T]]:
        """Return all components of a kind that can be loaded, by full name."""
        rows = [row for row in self.listing() if not row.error]
        found = [found for row in rows for found in row.components if found.kind is kind]
        return sorted(found, key=lambda item: item.full_name)

    def load(self, name: str) -> None:
        """Load a plugin.

        Raises:
            ConfigError: there is no such plugin.
            PluginError: it is broken.
        """
        self._load(name)

    def listing(self) -> list[Listed]:
        """Load every plugin in its own guard and return what each offers, or why it is broken."""
        rows = []
        for name in self.names():
            try:
                hooks = self._load(name)
            except PluginError as error:
                rows += [Listed(source, error=str(error)) for source in self._sources[name]]
            else:
                components = tuple(found for kind in KINDS for found in hooks[kind.hook])
                rows.append(Listed(self.source(name), components))
        return rows

    @cached_property
    def _sources(self) -> dict[str, list[Source]]:
        sources: dict[str, list[Source]] = {}
        for point in entry_points(group=GROUP):
            source = _source(point)
            known = sources.setdefault(source.name, [])
            if all(other.distribution != source.distribution for other in known):
                known.append(source)
        for name, module in self.modules.items():
            sources.setdefault(name, []).append(Source(name, module, f"module {module}", ""))
        return sources

    def _candidates(self, use: str) -> Iterator[tuple[str, str]]:
        plugin, slash, name = use.partition("/")
        if slash:
            yield plugin, name
        yield CORE, use
        if not slash:
            yield use, use

    def _known(self, kind: Kind[T]) -> list[str]:
        return [short_name(found.full_name) for found in self.components(kind)]

    def _load(self, name: str) -> dict[str, tuple[Found[Any], ...]]:
        with self._loading:  # episodes are played in threads too
            if name not in self._loaded:
                self._loaded[name] = self._load_new(self.source(name))
            return self._loaded[name]

    def _load_new(self, source: Source) -> dict[str, tuple[Found[Any], ...]]:
        try:
            module = importlib.import_module(source.module)
        except PLUGIN_FAULTS as error:
            raise PluginError(
                f"{source} can't be imported: {type(error).__name__}: {error}; {_remedy(source)}"
            ) from error
        _refuse_unmarked(source, module)
        try:
            self._manager.register(module, name=source.name)
            self._manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            if self._manager.is_registered(module):
                self._manager.unregister(module)
            raise PluginError(f"{source}: {_hook_problem(module, error)}") from error
        found = {kind.hook: tuple(self._registered(source, module, kind)) for kind in KINDS}
        if not any(found.values()):
            raise PluginError(f"{source} registers nothing: a plugin's hooks have @hookimpl in front of them")
        return found

    def _registered(self, source: Source, module: ModuleType, kind: Kind[Any]) -> Iterator[Found[Any]]:
        seen = set()
        for implementation in getattr(self._manager.hook, kind.hook).get_hookimpls():
            if implementation.plugin is not module:
                continue
            for component in _yielded(source, kind, implementation.function):
                if component.name in seen:
                    raise NameConflict(f"{source}: registers {kind.name} {component.name!r} twice")
                seen.add(component.name)
                yield Found(source, component, kind)


def short_name(type_name: str) -> str:
    """Return how a user writes a full name: one word where plugin and component share it or the core owns it."""
    plugin, _, name = type_name.partition("/")
    return name if plugin in (CORE, name) else type_name


def _source(point: EntryPoint) -> Source:
    dist = point.dist
    return Source(point.name, point.value, dist.name if dist else "unknown", dist.version if dist else "")


def _yielded(source: Source, kind: Kind[Any], function: Any) -> list[Component[Any]]:
    try:
        components = list(function())
    except PLUGIN_FAULTS as error:
        raise PluginError(f"{source}: {kind.hook} raised {type(error).__name__}: {error}") from error
    for component in components:
        if not isinstance(component, Component):
            raise PluginError(
                f"{source}: {kind.hook} must yield Component(name=..., factory=...), "
                f"got {type(component).__name__}"
            )
        factory = component.factory
        if not (callable(factory) or (isinstance(factory, str) and ":" in factory)):
            raise PluginError(
                f'{source}: the factory of {kind.name} {component.name!r} must be callable or "module:attribute", '
                f"got {factory!r}"
            )
    return components


def _remedy(source: Source) -> str:
    if source.distribution.startswith("module "):
        return "put the module beside the config or into this folder, or on PYTHONPATH"
    return f"reinstall or uninstall {source.distribution}"


def _refuse_unmarked(source: Source, module: ModuleType) -> None:
    """Refuse a hook that nobody would call, because its mark was forgotten."""
    for name in (kind.hook for kind in KINDS):
        function = getattr(module, name, None)
        if function is not None and not hasattr(function, "envharness_impl"):
            raise PluginError(f"{source}: {name} has no @hookimpl in front of it, so nothing is registered")


def _hook_problem(module: ModuleType, error: Exception) -> str:
    """Say which hook is unknown or has the wrong signature, and what is allowed."""
    hooks = [kind.hook for kind in KINDS]
    marked = [name for name in dir(module) if hasattr(getattr(module, name), "envharness_impl")]
    for name in marked:
        if name not in hooks:
            return f"there is no hook {name!r}{nearest(name, hooks)}; hooks: {', '.join(hooks)}"
    first = str(error).strip().split("\n")[-1]
    return f"a hook takes no arguments and yields components, as in 'def {hooks[0]}()': {first}"
