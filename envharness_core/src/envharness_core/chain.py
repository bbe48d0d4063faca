"""A chain: one recorder under layers, the part of a stack that a checkpoint lists flat."""

from __future__ import annotations

from typing import cast

from attrs import define, field

from envharness_core.data import Verdict
from envharness_core.env import Env
from envharness_core.errors import CheckpointError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layer import Wrapper
from envharness_core.layers.link import Link
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec


@define
class Chain:
    """A bridge's recorder and the layers on it, innermost first, each beside the spec that it was built from.

    The chain is built by core code, so what it says about verdicts no layer can change.
    """

    bridge: ComponentSpec
    recorder: Recorder
    layers: list[tuple[ComponentSpec, Wrapper]] = field(factory=list)
    legs: list[Chain] = field(factory=list)

    @property
    def top(self) -> Env:
        """The outermost layer, or the recorder where there is none."""
        return self.layers[-1][1] if self.layers else self.recorder

    @property
    def graded(self) -> Env:
        """What the verdict is asked of: the outermost link, or the recorder where there is none."""
        links = [layer for _, layer in self.layers if isinstance(layer, Link)]
        return links[-1] if links else self.recorder

    @property
    def on(self) -> Recorder:
        """The recorder of the leg that is on: the last one whose bridge was reset."""
        begun = (recorder for recorder in reversed(self.recorders()) if len(recorder.log))
        return next(begun, self.recorder)

    def recorders(self) -> list[Recorder]:
        """Return the recorders of all legs, in order."""
        return [self.recorder, *(recorder for leg in self.legs for recorder in leg.recorders())]

    def admit(self, seed: int, task: str) -> None:
        """Allow the reset with which the chain's bridge begins."""
        self.recorder.admit(seed, task)

    def require_begun(self) -> None:
        """Refuse a leg whose reset didn't come through to its bridge."""
        self.recorder.require_begun()

    def forget(self) -> None:
        """Clear what the recorders wrote down of an earlier episode."""
        for recorder in self.recorders():
            recorder.log.clear()

    def check(self) -> None:
        """Have every layer, of all legs, say what is wrong with it.

        Raises:
            EnvHarnessError: one can't work.
        """
        for _, layer in self.layers:
            layer.check()
        for leg in self.legs:
            leg.check()

    def rest(self) -> None:
        """Have every layer and every bridge, of all legs, let go of what only an episode needs."""
        for _, layer in self.layers:
            layer.rest()
        for leg in self.legs:
            leg.rest()
        self.recorder.rest()

    def verdict(self) -> Verdict:
        """Ask the bridges themselves, past every layer.

        Raises:
            VerifierError: a bridge can't say.
        """
        return self.graded.evaluate()

    def save(self) -> JsonObject:
        """Return the chain's part of a checkpoint."""
        layers: list[Json] = [_entry(spec, layer) for spec, layer in self.layers]
        return {"env": _entry(self.bridge, self.recorder), "layers": layers}

    def load(self, state: JsonObject) -> None:
        """Take the chain's part of a checkpoint.

        Raises:
            CheckpointError: it describes another chain.
        """
        entries = [state.get("env"), *cast("list[Json]", state.get("layers") or [])]
        parts: list[tuple[ComponentSpec, Env]] = [(self.bridge, self.recorder), *self.layers]
        if len(entries) != len(parts):
            raise CheckpointError(f"layers: expected {len(parts) - 1}, got {len(entries) - 1}")
        for index, (entry, (spec, env)) in enumerate(zip(entries, parts, strict=True)):
            where = "env" if index == 0 else f"layers[{index - 1}]"
            if not isinstance(entry, dict) or entry.get("type") != spec.use:
                raise CheckpointError(f"{where}: expected the type {spec.use!r}")
            if not isinstance(entry.get("state"), dict):
                raise CheckpointError(f"{where}.state: expected an object")
            env.load_state(cast("JsonObject", entry["state"]))


def _entry(spec: ComponentSpec, env: Env) -> JsonObject:
    return {"type": spec.use, "config": spec.config, "state": env.save_state()}
