"""Closed: a way of acting that isn't open."""

from __future__ import annotations

from typing import cast

from attrs import Factory, field, frozen, validators

from envharness_core.data import Action, Blocked, EnvState, StepResponse
from envharness_core.env import Env
from envharness_core.errors import unknown
from envharness_core.jsondata import JsonObject
from envharness_core.layers.rules import Rules

_USED = "used"
_UNDONE = {"blocked", "error", "malformed", "transient_error"}
"""What ``info`` says of an action that didn't take place; ``error`` is the bridges' word."""


@frozen
class ClosedConfig:
    """Which actions are closed.

    Args:
        tool: the tool's name.
        where: arguments and the values that they must all have for the action to be closed; none closes the tool.
        uses: how often it may be done in an episode before it is closed; what a layer inside blocks or lets fail isn't
            counted.
        reason: what the agent reads; empty says what is closed.
    """

    tool: str = field(validator=validators.min_len(1))
    where: JsonObject = Factory(dict)
    uses: int = field(default=0, validator=validators.ge(0))
    reason: str = ""


class Closed(Rules[ClosedConfig]):
    """Blocks the actions of one tool that have given arguments, so that another way must be found."""

    def __init__(self, inner: Env, config: ClosedConfig) -> None:
        super().__init__(inner, config)
        tools = {tool.name: tool for tool in inner.tools()}
        if config.tool not in tools:
            raise unknown("tool", config.tool, tools, where="closed.tool")
        known = cast("JsonObject", tools[config.tool].schema.get("properties", {}))
        for name in config.where:
            if name not in known:
                raise unknown("argument", name, known, where=f"closed.where of {config.tool}")

    def filter_action(self, action: Action, env_state: EnvState) -> Action | Blocked:
        config = self.config
        if not self._matches(action):
            return action
        if int(env_state.extras.get(_USED, 0)) < config.uses:  # type: ignore[arg-type]
            return action
        return Blocked(config.reason or f"{_described(config)} is closed; find another way.")

    def step(self, action: Action) -> StepResponse:
        response = super().step(action)
        if self.config.uses and self._matches(action) and not _UNDONE & response.info.keys():
            self.extras[_USED] = int(self.extras.get(_USED, 0)) + 1  # type: ignore[arg-type]
        return response

    def _matches(self, action: Action) -> bool:
        config = self.config
        return action.name == config.tool and all(
            action.kwargs.get(key) == value for key, value in config.where.items()
        )


def _described(config: ClosedConfig) -> str:
    arguments = ", ".join(f"{key} {value!r}" for key, value in config.where.items())
    return f"{config.tool} with {arguments}" if arguments else config.tool
