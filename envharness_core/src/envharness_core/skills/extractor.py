"""Extractors: read the rollouts of a task, and say what they teach."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic

from attrs import frozen

from envharness_core.component import ConfigT
from envharness_core.data import TaskSummary
from envharness_core.jsondata import Json
from envharness_core.session import Attachable
from envharness_core.skills.skill import Provenance, Skill
from envharness_core.spec import ComponentSpec, layers_digest
from envharness_core.tools import Tool
from envharness_core.trajectory import Rollout


@frozen
class Experience:
    """What an extractor is given: the graded rollouts of one task on one stack, in rollout order.

    Args:
        task: the task's summary.
        instruction: the task as the agent is told it.
        condition: what kind of environment it was, such as ``original`` or ``reshaped``.
        layers: the stack, innermost first; none is the bare bridge.
        rollouts: the graded rollouts.
        tools: what the agent can call.
    """

    task: TaskSummary
    instruction: str
    condition: str
    layers: tuple[ComponentSpec, ...]
    rollouts: tuple[Rollout, ...]
    tools: tuple[Tool, ...] = ()

    @property
    def winners(self) -> tuple[Rollout, ...]:
        """The rollouts that succeeded."""
        return tuple(rolled for rolled in self.rollouts if rolled.episode.success)

    @property
    def losers(self) -> tuple[Rollout, ...]:
        """The rollouts that failed."""
        return tuple(rolled for rolled in self.rollouts if not rolled.episode.success)

    def provenance(self, extractor: str, rollouts: Sequence[Rollout] = ()) -> Provenance:
        """Return where a skill of this experience was learnt.

        Args:
            extractor: who distilled it.
            rollouts: those that speak for it; all of them where none are named.
        """
        linked = dict.fromkeys(_linked([dict(layer.config) for layer in self.layers]))
        return Provenance(
            task=self.task.id,
            condition=self.condition,
            stack=layers_digest(self.layers) if self.layers else "",
            trajectories=tuple(rolled.episode.key for rolled in rollouts or self.rollouts),
            extractor=extractor,
            linked=tuple(task for task in linked if task != self.task.id),
        )


class Extractor(Attachable, ABC, Generic[ConfigT]):
    """Distils skills. Keeps no state between calls: what it knows is in the experience.

    The smallest one::

        class DoAsBefore(Extractor):
            def extract(self, experience, seed):
                won = experience.winners[:1]
                if not won:
                    return []
                actions = "; ".join(str(step.action) for step in won[0].trajectory.steps)
                origin = experience.provenance("do_as_before", won)
                return [Skill("What worked once", experience.task.summary, actions, origin)]
    """

    waits: bool = False
    """Whether ``extract`` waits for a model, so that several calls are worth making at once, from threads."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def extract(self, experience: Experience, seed: int) -> Sequence[Skill]:
        """Return what the rollouts teach, the best first; nothing where they teach nothing.

        Args:
            experience: the rollouts of a task.
            seed: where all of its randomness comes from.

        Raises:
            ProviderError: a model that it needs couldn't be had.
        """


def _linked(value: Json) -> Iterator[str]:
    """Yield the tasks that are named anywhere in layers' configs, as a second leg's is."""
    if isinstance(value, dict):
        task = value.get("task")
        if isinstance(task, str) and task:
            yield task
        for item in value.values():
            yield from _linked(item)
    elif isinstance(value, list):
        for item in value:
            yield from _linked(item)
