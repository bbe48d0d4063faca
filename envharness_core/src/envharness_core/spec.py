"""Specs: components named as data, so that any process with the plugins installed can build them."""

from __future__ import annotations

from typing import cast

from attrs import Factory, frozen

from envharness_core.jsondata import Json, JsonObject, digest


@frozen
class ComponentSpec:
    """A component and its config, in JSON ``{"use": "plugin/component", ...config}``."""

    use: str
    config: JsonObject = Factory(dict)

    def as_json(self) -> JsonObject:
        """Return the spec in its JSON form."""
        return {"use": self.use, **self.config}


@frozen
class StackSpec:
    """A bridge, a task of it, and layers, innermost first."""

    bridge: ComponentSpec
    task: str = ""
    layers: tuple[ComponentSpec, ...] = ()

    def as_json(self) -> JsonObject:
        """Return the spec in its JSON form."""
        layers: list[Json] = [layer.as_json() for layer in self.layers]
        return {"bridge": self.bridge.as_json(), "task": self.task, "layers": layers}


def layers_digest(layers: tuple[ComponentSpec, ...]) -> str:
    """Return the content hash of a list of layer specs."""
    return digest(cast("list[Json]", [layer.as_json() for layer in layers]))
