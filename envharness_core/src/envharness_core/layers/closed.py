"""Closed: a way of acting that isn't open."""

from __future__ import annotations

from typing import cast

from attrs import Factory, field, frozen, validators

from envharness_core.data import Action, Blocked, EnvState
from envharness_core.env import Env
from envharness_core.errors import unknown
from envharness_core.jsondata import JsonObject
from envharness_core.layers.rules import Rules

_USED = "used"


@frozen
class ClosedConfig:
    """Which actions are closed.

    Args:
        tool: the tool's name.
        where: arguments and the values that they must all have for the action to be closed; none closes the tool.
        uses: how often it may be done in an episode before it is closed.
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
        if action.name != config.tool:
            return action
        if any(action.kwargs.get(key) != value for key, value in config.where.items()):
            return action
        used = int(env_state.extras.get(_USED, 0))  # type: ignore[arg-type]
        if used < config.uses:
            env_state.extras[_USED] = used + 1
            return action
        return Blocked(config.reason or f"{_described(config)} is closed; find another way.")


def _described(config: ClosedConfig) -> str:
    arguments = ", ".join(f"{key} {value!r}" for key, value in config.where.items())
    return f"{config.tool} with {arguments}" if arguments else config.tool
