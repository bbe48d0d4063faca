"""Layers: environments that wrap an environment and state only their difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Generic, cast

from envharness_core.component import ConfigT
from envharness_core.data import (
    Action,
    Capabilities,
    EnvState,
    Observation,
    ResetResponse,
    StepResponse,
    Verdict,
)
from envharness_core.env import Env
from envharness_core.errors import CheckpointError, DataError, LayerError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.seeds import derive
from envharness_core.tools import Tool


class Wrapper(Env, Generic[ConfigT]):
    """An inner environment, passed through. Plugins subclass ``Layer``; ``Link`` is the one other wrapper."""

    def __init__(self, inner: Env, config: ConfigT) -> None:
        self.inner = inner
        self.config = config
        self.identity: tuple[Json, ...] = (type(self).__qualname__,)
        """What the layer's random stream is named by: type, config and occurrence; set by the stack."""
        self._layer_seed = 0
        self._random: Random | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def random(self) -> Random:
        """The layer's own seeded stream; starts anew at each reset and is saved in checkpoints."""
        if self._random is None:
            self._random = Random(derive(self._layer_seed, *self.identity))
        return self._random

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def tools(self) -> Sequence[Tool]:
        return self.inner.tools()

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        self._layer_seed = cast("int", options.get("layer_seed", seed))
        self._random = None
        return self.inner.reset(seed, options)

    def step(self, action: Action) -> StepResponse:
        return self.inner.step(action)

    def observe(self) -> Observation:
        return self.inner.observe()

    def evaluate(self) -> Verdict:
        return self.inner.evaluate()

    def get_env_state(self) -> EnvState:
        return self.inner.get_env_state()

    def resume(self) -> None:
        self.inner.resume()

    def notify_replay_complete(self) -> None:
        self.inner.notify_replay_complete()

    def step_reward(self, info: JsonObject) -> float | None:
        return self.inner.step_reward(info)

    def close(self) -> None:
        self.inner.close()

    def save_state(self) -> JsonObject:
        """Return this layer's part of a checkpoint: its seed, its stream and its own state."""
        random = None if self._random is None else copy_object({"state": self._random.getstate()})
        return {
            "layer_seed": self._layer_seed,
            "random": random,
            "own": copy_object(self.own_state(), "own_state"),
        }

    def load_state(self, state: JsonObject) -> None:
        """Take this layer's part of a checkpoint; the inner environment has taken its own."""
        try:
            self._layer_seed = cast("int", state["layer_seed"])
            self._random = _random(state["random"])
            own = copy_object(state["own"], "own")
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{type(self).__name__}: not a layer's state ({error!r})") from error
        self.restore(own)

    def check(self) -> None:
        """Raise an ``EnvHarnessError`` where this layer can't work, found out at some cost.

        Called once before a stack is first used; loading a checkpoint doesn't call it.
        """

    def rest(self) -> None:
        """Let go of what only an episode needs: this one is over, and a reset comes before the next step."""

    def own_state(self) -> JsonObject:
        """Return what this layer keeps within an episode besides its random stream."""
        return {}

    def restore(self, state: JsonObject) -> None:
        """Take back what ``own_state`` returned."""


class Layer(Wrapper[ConfigT]):
    """A plug-in layer: takes the inner environment and a config, passes everything through.

    A subclass states only its difference. Its randomness is ``self.random``; what else it keeps within an episode it
    clears in ``reset`` (after calling ``super().reset``), and saves with ``own_state`` and ``restore``. The verdict is
    out of its reach. The smallest useful one::

        class FlakyTools(Layer):
            def step(self, action):
                if self.random.random() < self.config.rate:
                    return self.transient_error("tool timed out, try again")
                return self.inner.step(action)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.evaluate is not Layer.evaluate:
            raise LayerError(
                f"{cls.__module__}.{cls.__qualname__} overrides evaluate: a verdict is the bridge's own; "
                "shape the episode with step, observe and reset instead"
            )

    def transient_error(self, text: str) -> StepResponse:
        """Answer a step with an error, the world untouched: the current observation with ``text`` in front."""
        return StepResponse(self.observe().preceded_by(text), info={"transient_error": text})


def _random(saved: Json) -> Random | None:
    if saved is None:
        return None
    version, internal, gauss = cast("Any", saved)["state"]
    random = Random()
    random.setstate((version, tuple(internal), gauss))
    return random
