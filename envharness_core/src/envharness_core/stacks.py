"""Stacks: a bridge under layers, built from a spec and guarded outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, final

from attrs import evolve

from envharness_core.chain import Chain
from envharness_core.converter import structure
from envharness_core.data import Action, Verdict
from envharness_core.env import Bridge
from envharness_core.errors import ConfigError, PluginError
from envharness_core.events import Event
from envharness_core.guard import Guard
from envharness_core.jsondata import Json, JsonObject, digest
from envharness_core.kinds import BRIDGE, LAYER
from envharness_core.layer import Wrapper
from envharness_core.layers.link import Link, LinkConfig
from envharness_core.layers.source import SourceConfig, SourceRules
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.sandbox.host import shared
from envharness_core.spec import ComponentSpec, StackSpec


@final
class Stack(Guard):
    """A guarded stack, together with the recorders of its bridges, which core code asks for verdicts and events."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(chain.top, chain.recorders())
        self._chain = chain
        bridges = [recorder.bridge for recorder in self._recorders]
        self._dense = any(type(bridge).step_reward is not Bridge.step_reward for bridge in bridges)

    def __repr__(self) -> str:
        names = [spec.use for spec, _ in self._chain.layers]
        return f"Stack({', '.join([self._chain.bridge.use, *names])})"

    @property
    def bridge(self) -> Bridge:
        """The innermost bridge of the first leg."""
        return self._chain.recorder.bridge

    @property
    def chain(self) -> Chain:
        """The stack's parts, for core code."""
        return self._chain

    @property
    def layers(self) -> tuple[ComponentSpec, ...]:
        """The layers' specs, innermost first, with full names."""
        return tuple(spec for spec, _ in self._chain.layers)

    def check(self) -> None:
        """Have every layer say what is wrong with it, before the first use; compiles rules given as source code.

        Raises:
            EnvHarnessError: one can't work.
        """
        self._chain.check()

    def rest(self) -> None:
        """Let go of what only an episode needs, such as the process of sandboxed rules.

        The verdict has been taken: the next call is a reset or close.

        Raises:
            EnvHarnessError: a bridge or a layer couldn't, and should be made anew.
        """
        self._chain.rest()

    @property
    def solutions(self) -> tuple[str, ...]:
        """The ways in which the bridge of the leg that is on can solve its tasks."""
        return self._chain.on.bridge.solutions

    def solution(self, way: str = "") -> tuple[Action, ...] | None:
        """Return actions that solve the task of the leg that is on, from here; None where the way knows none now.

        For gold checks, scaffolds and tests: no layer, hook or designer can reach it, and of policies only one that is
        ``privileged``.

        Args:
            way: one of ``solutions``; the first by default.

        Raises:
            ConfigError: the bridge knows no such way.
            BridgeError: the bridge failed, or what it said fits none of its tools.
        """
        self._refuse_new("solution")
        return self._chain.on.solution(way)

    def evaluate(self) -> Verdict:
        """Return the verdict of the bridges themselves; no layer is asked."""
        self._refuse_new("evaluate")
        return self._chain.verdict()

    def marks(self) -> tuple[int, ...]:
        """Return how many events each leg's bridge has had since the last reset."""
        return tuple(len(recorder.log) for recorder in self._recorders)

    def info_since(self, marks: tuple[int, ...]) -> JsonObject | None:
        """Return the info of the last step that reached a bridge since then, as that bridge gave it.

        None where none did, or where no bridge gives a dense reward.
        """
        if not self._dense:
            return None
        for recorder, mark in zip(reversed(self._recorders), reversed(marks), strict=True):
            steps = [event for event in recorder.log.events(mark) if event.kind == "step"]
            if steps:
                return cast("JsonObject", cast("Any", steps[-1].body["response"])["info"])
        return None

    def events(self) -> list[list[Event]]:
        """Return what actually reached each leg's bridge since the last reset."""
        return [recorder.log.events() for recorder in self._recorders]


def build_stack(plugins: Plugins, bridge: ComponentSpec, layers: Sequence[ComponentSpec] = ()) -> Stack:
    """Build a stack from specs, layers innermost first.

    Raises:
        ConfigError: an unknown component or key, or a value that isn't allowed.
        PluginError: a plugin is broken, or what it made is no bridge or layer.
        BridgeError: the bridge can't be made here.
    """
    chain = _build_chain(plugins, StackSpec(bridge, layers=tuple(layers)), "")
    return _guarded(chain)


def wrap(plugins: Plugins, base: Bridge | Stack, layers: Sequence[ComponentSpec]) -> Stack:
    """Put layers on a bridge instance or on a stack, which is used up: its guard goes, its layers stay.

    Raises:
        ConfigError, PluginError: as ``build_stack``.
    """
    if isinstance(base, Stack):
        chain = evolve(base.chain, layers=[*base.chain.layers], legs=[*base.chain.legs])
    else:
        chain = Chain(ComponentSpec(type(base).__name__), Recorder(base))
    for spec in layers:
        _add_layer(plugins, chain, spec, f"layers[{len(chain.layers)}]")
    return Stack(chain)


def _guarded(chain: Chain) -> Stack:
    try:
        return Stack(chain)
    except Exception:
        chain.top.close()
        raise


def _build_chain(plugins: Plugins, spec: StackSpec, where: str) -> Chain:
    found = plugins.find(BRIDGE, spec.bridge.use, f"{where}bridge")
    bridge = found.make(found.configure(spec.bridge.config, f"{where}bridge"))
    if not isinstance(bridge, Bridge):
        raise PluginError(f"{found.full_name}: the factory made {type(bridge).__name__}, not a Bridge")
    try:
        chain = Chain(evolve(spec.bridge, use=found.full_name), Recorder(bridge))
    except Exception:
        bridge.close()
        raise
    try:
        for index, layer in enumerate(spec.layers):
            _add_layer(plugins, chain, layer, f"{where}layers[{index}]")
    except Exception:
        chain.top.close()
        raise
    return chain


def _add_layer(plugins: Plugins, chain: Chain, spec: ComponentSpec, where: str) -> None:
    found = plugins.find(LAYER, spec.use, where)
    config = found.configure(spec.config, where)
    layer: object
    if isinstance(config, LinkConfig):
        layer = _linked(plugins, chain, config, where)
    elif isinstance(config, SourceConfig):
        layer = SourceRules(chain.top, config, shared(plugins.sandbox))
        layer.place = f"layers[{len(chain.layers)}]"
    else:
        layer = found.make(chain.top, config)
    if not isinstance(layer, Wrapper):
        raise PluginError(f"{found.full_name}: the factory made {type(layer).__name__}, not a Layer")
    full = evolve(spec, use=found.full_name)
    key = digest(full.as_json())
    occurrence = sum(digest(other.as_json()) == key for other, _ in chain.layers)
    layer.identity = (found.full_name, key, occurrence)
    chain.layers.append((full, layer))


def _linked(plugins: Plugins, chain: Chain, config: LinkConfig, where: str) -> Link:
    leg = _build_chain(plugins, config.next, f"{where}.next.")
    try:
        _check_task(leg, config.next.task, f"{where}.next.task")
        link = Link(chain.top, config, chain.graded, leg)
    except Exception:
        leg.top.close()
        raise
    chain.legs.append(leg)
    return link


def _check_task(leg: Chain, task: str, where: str) -> None:
    try:
        leg.recorder.bridge.check_task(task)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def layer_specs(layers: Sequence[ComponentSpec | JsonObject | str]) -> tuple[ComponentSpec, ...]:
    """Read a list of layers as users write them: specs, tables with ``use``, or names.

    Raises:
        ConfigError: one of them is neither.
    """
    if isinstance(layers, str):
        raise ConfigError(f"layers: expected a list, got {layers!r}")
    plain: list[Json] = [
        layer.as_json() if isinstance(layer, ComponentSpec) else cast("Json", layer) for layer in layers
    ]
    return structure(plain, tuple[ComponentSpec, ...], "layers")
