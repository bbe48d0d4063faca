"""Scripted: does what its config lists."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen, validators

from envharness_core.data import Action, Observation
from envharness_core.errors import ConfigError
from envharness_core.policy import Policy, Reply
from envharness_core.tools import Tool, Toolbox


@frozen
class ScriptConfig:
    """The actions to do.

    Args:
        actions: in order, at least one.
        repeat: whether to start over after the last one; else an episode that goes on is a policy error.
    """

    actions: tuple[Action, ...] = field(validator=validators.min_len(1))
    repeat: bool = False


class ScriptedPolicy(Policy[ScriptConfig]):
    """Does the same actions in every episode, whatever it sees: for tests, replays and measurements."""

    def check(self, tools: Sequence[Tool]) -> None:
        toolbox = Toolbox(tuple(tools))
        for index, action in enumerate(self.config.actions):
            problem = toolbox.problem_with(action)
            if problem is not None:
                raise ConfigError(f"policy.actions[{index}]: {problem}")

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        self._done = 0

    def act(self, observation: Observation) -> Reply:
        actions = self.config.actions
        if self._done >= len(actions) and not self.config.repeat:
            raise ConfigError(
                f"policy.actions: the script's {len(actions)} actions are done and the episode goes on; "
                "add actions, or set repeat"
            )
        action = actions[self._done % len(actions)]
        self._done += 1
        return Reply((action,), str(action))
