"""What was found in plugins: components, and where they come from."""

from __future__ import annotations

import importlib
from typing import Any, Generic, TypeVar, cast

import attrs
from attrs import frozen

from envharness_core.component import Component, Kind, NoConfig
from envharness_core.converter import json_schema, structure
from envharness_core.errors import PLUGIN_FAULTS, BridgeError, EnvHarnessError, PluginError
from envharness_core.jsondata import JsonObject

T = TypeVar("T")


@frozen
class Source:
    """Where a plugin comes from: its module, and the distribution that names it."""

    name: str
    module: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.distribution} {self.version})".replace(" )", ")")


@frozen
class Found(Generic[T]):
    """A component together with the plugin that it is from."""

    source: Source
    component: Component[T]
    kind: Kind[T]

    @property
    def full_name(self) -> str:
        """The full name, ``plugin/component``."""
        return f"{self.source.name}/{self.component.name}"

    @property
    def summary(self) -> str:
        """The component's one line; the factory's own where the component has none."""
        if self.component.summary or isinstance(self.component.factory, str):
            return self.component.summary
        return (self.component.factory.__doc__ or "").strip().split("\n")[0]

    def factory(self) -> Any:
        """Return the factory, imported if need be.

        Raises:
            PluginError: it can't be imported; names the plugin, the target and the cause.
        """
        return self._imported(self.component.factory, "factory")

    def make(self, *args: object) -> Any:
        """Call the factory.

        Raises:
            PluginError: it raised; names the component, and what it was called with.
            BridgeError: it is a bridge's, whose runtime may not be there.
        """
        try:
            return self.factory()(*args)
        except EnvHarnessError:
            raise
        except PLUGIN_FAULTS as error:
            shape = "(inner, config)" if len(args) > 1 else "(config)"
            raised = f"its factory, called with {shape}, raised {type(error).__name__}: {error}"
            kind = BridgeError if self.kind.name == "bridge" else PluginError
            raise kind(f"{self.kind.name} {self.full_name}: {raised}") from error

    def config_class(self) -> type[Any]:
        """Return the config's class, imported if need be."""
        if self.component.config is None:
            return NoConfig
        config = self._imported(self.component.config, "config")
        if not attrs.has(config):
            raise PluginError(
                f"{self.source}: the config of {self.kind.name} {self.component.name!r} must be an attrs class, "
                f"got {config!r}"
            )
        return cast("type[Any]", config)

    def schema(self) -> JsonObject | None:
        """Return the JSON schema of the config; None where its class can't be imported or described."""
        try:
            return json_schema(self.config_class())
        except (PluginError, TypeError, KeyError):
            return None

    def configure(self, config: JsonObject, where: str) -> Any:
        """Make the component's config of plain data.

        Raises:
            ConfigError: names each wrong field, what is allowed, and the component.
        """
        return structure(config, self.config_class(), f"{where} ({self.full_name})")

    def _imported(self, target: Any, what: str) -> Any:
        if not isinstance(target, str):
            return target
        module, _, attribute = target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except PLUGIN_FAULTS as error:
            hint = f"; {self.component.install}" if self.component.install else ""
            raise PluginError(
                f"{self.source}: the {what} of {self.kind.name} {self.component.name!r}, {target!r}, "
                f"can't be imported: {type(error).__name__}: {error}{hint}"
            ) from error


@frozen
class Listed:
    """A plugin in a listing: what it offers by kind, or why it is broken."""

    source: Source
    components: tuple[Found[Any], ...] = ()
    error: str = ""

    def as_json(self) -> JsonObject:
        """Return the row as plain data."""
        return {
            "name": self.source.name,
            "distribution": self.source.distribution,
            "version": self.source.version,
            "error": self.error or None,
            "components": [
                {
                    "kind": found.kind.name,
                    "type": found.full_name,
                    "summary": found.summary,
                    "config": found.schema(),
                }
                for found in self.components
            ],
        }
