"""The agent, as a black box: what it is told, what it sees, what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias

from attrs import Factory, frozen

from envharness_core.component import ConfigT
from envharness_core.data import Action, Observation
from envharness_core.jsondata import JsonObject
from envharness_core.session import Attachable
from envharness_core.tools import Tool

Ask: TypeAlias = Callable[[str], Sequence[Action] | None]
"""What a privileged policy asks the bridge by: a way's name in, actions that solve the task from here out."""


@frozen
class Reply:
    """A policy's answer to an observation.

    Args:
        actions: what to do next, in order; none is a malformed call.
        text: the raw reply, kept in the trajectory.
        usage: tokens and costs, such as ``{"input_tokens": 812}``; ``calls``, ``input_tokens``, ``output_tokens`` and
            ``cost_usd`` (US dollars) are what a run's budget counts.
        problem: where there are no actions, why, as the agent is told; empty for the usual words.
    """

    actions: tuple[Action, ...]
    text: str = ""
    usage: JsonObject = Factory(dict)
    problem: str = ""


class Policy(Attachable, ABC, Generic[ConfigT]):
    """An agent under test. One instance plays one episode at a time, any number in a row.

    The smallest one::

        class GivesUp(Policy):
            def start(self, instruction, tools, seed, skills=()):
                self.tools = [tool.name for tool in tools]

            def act(self, observation):
                return Reply((Action("stop"),), "I give up.")
    """

    repeats: bool = False
    """Whether it answers the same in every rollout of a task, whatever its seed, as a model at temperature 0 does."""

    privileged: bool = False
    """Whether it is told the bridge's own solutions: an oracle, for tests, scaffolds and gold checks."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        """Forget the last episode and read the new one's task.

        Args:
            instruction: the task as the agent is told it.
            tools: what it can call.
            seed: where all of its randomness comes from.
            skills: advice distilled earlier, as text.
        """

    @abstractmethod
    def act(self, observation: Observation) -> Reply:
        """Answer an observation.

        Raises:
            ProviderError: a service that it needs failed; the episode then says nothing about the policy.
            AccessError: the service refuses whoever asks; the run stops.
            ContextError: the agent's context is full; the episode ends as ``agent_limit`` and is graded.
        """

    def consult(self, ask: Ask, ways: tuple[str, ...]) -> None:
        """Take what a privileged policy may ask; called before ``start``, and only where ``privileged``.

        Also called before a run begins, with nobody to ask: each answer is then None.

        Args:
            ask: gives actions that solve the task from the world as it stands, by one of the ways (an empty one is the
                bridge's first), or None where that way knows none now. It stays valid in the episode; the time that it
                takes is the policy's.
            ways: those that the bridge knows.

        Raises:
            ConfigError: the policy needs a way that isn't there.
        """

    def check(self, tools: Sequence[Tool]) -> None:
        """Refuse, before a run begins, tools that the policy's config doesn't fit.

        Raises:
            ConfigError: names the field and what is allowed.
        """


def check_policy(policy: Policy, tools: Sequence[Tool], ways: tuple[str, ...]) -> None:
    """Have a policy refuse, before anything is played, tools and ways that its config doesn't fit.

    Raises:
        ConfigError: names the field and what is allowed.
    """
    policy.check(tools)
    if policy.privileged:
        policy.consult(lambda _: None, ways)
