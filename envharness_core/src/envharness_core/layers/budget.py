"""Budget: an episode that ends after so many steps."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen, validators

from envharness_core.data import Action, ResetResponse, StepResponse
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layer import Layer


@frozen
class BudgetConfig:
    """How far an episode reaches.

    Args:
        steps: how many steps the agent has, at least 1; those that fail or are blocked inside count too.
    """

    steps: int = field(validator=validators.ge(1))


class Budget(Layer[BudgetConfig]):
    """Truncates the episode after so many steps; a replay isn't charged."""

    _used = 0

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        self._used = 0
        return super().reset(seed, options)

    def step(self, action: Action) -> StepResponse:
        response = self.inner.step(action)
        self._used += 1
        if self._used < self.config.steps or response.ended:
            return response
        return evolve(response, truncated=True)

    def notify_replay_complete(self) -> None:
        super().notify_replay_complete()
        self._used = 0

    def own_state(self) -> JsonObject:
        return {"used": self._used}

    def restore(self, state: JsonObject) -> None:
        self._used = int(state["used"])  # type: ignore[arg-type]
