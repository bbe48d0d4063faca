"""Faults: steps that fail now and then, recoverably."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen, validators

from envharness_core.data import Action, ResetResponse, StepResponse
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layer import Layer


@frozen
class FaultsConfig:
    """How often steps fail.

    Args:
        rate: the chance that a step fails, in [0, 1].
        streak: how many may fail in a row, at least 1, so that trying again always helps in the end.
        text: what the agent reads.
    """

    rate: float = field(default=0.2, validator=[validators.ge(0), validators.le(1)])
    streak: int = field(default=2, validator=validators.ge(1))
    text: str = "The call failed for a transient reason. Nothing has changed; try again."


class Faults(Layer[FaultsConfig]):
    """Lets steps fail by chance: the world is untouched, and trying again helps."""

    _row = 0

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        self._row = 0
        return super().reset(seed, options)

    def step(self, action: Action) -> StepResponse:
        if self.random.random() < self.config.rate and self._row < self.config.streak:
            self._row += 1
            return self.transient_error(self.config.text)
        self._row = 0
        return self.inner.step(action)

    def notify_replay_complete(self) -> None:
        super().notify_replay_complete()
        self._row = 0

    def own_state(self) -> JsonObject:
        return {"row": self._row}

    def restore(self, state: JsonObject) -> None:
        self._row = int(state["row"])  # type: ignore[arg-type]
