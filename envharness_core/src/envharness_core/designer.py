"""Designers: read how a policy plays, and write the layers that change how hard its tasks are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Literal

from attrs import Factory, field, frozen

from envharness_core.component import ConfigT
from envharness_core.data import TaskSummary
from envharness_core.episode import Episode, Limits
from envharness_core.jsondata import JsonObject
from envharness_core.objective import Decision, Direction, Judgement
from envharness_core.session import Attachable
from envharness_core.spec import ComponentSpec, layers_digest
from envharness_core.tools import Tool
from envharness_core.trajectory import Trajectory


@frozen
class Candidate:
    """Layers that are proposed together and judged as a whole, innermost first.

    Args:
        layers: what to put on the current stack.
        rationale: why, in words.
        notes: the designer's own, as plain data; no part of the candidate's identity.
    """

    layers: tuple[ComponentSpec, ...]
    rationale: str = ""
    notes: JsonObject = field(factory=dict, eq=False)

    @property
    def key(self) -> str:
        """The content hash of the layers."""
        return layers_digest(self.layers)


@frozen
class Diagnosis:
    """What a designer makes of a task.

    Args:
        flaw: the weakness, in a sentence.
        evidence: what in the rollouts shows it.
        boundary: where the policy still succeeds.
        headroom: how much harder or easier the task could get.
        reliance: what the policy's successes rest on.
        direction: which way to go.
        notes: the designer's own, as plain data.
    """

    flaw: str
    evidence: str
    direction: Direction
    boundary: str = ""
    headroom: str = ""
    reliance: str = ""
    notes: JsonObject = Factory(dict)


@frozen
class Attempt:
    """A candidate, its rollouts by stream, and what was said of it.

    ``rejected`` says why it was given up without a word of the gate's: refused before any rollout, broken, not
    evaluated, or the budget spent. ``judgement`` is the gate's last word, ``decision`` the strictest of all.
    """

    candidate: Candidate
    episodes: tuple[Episode, ...] = ()
    confirmation: tuple[Episode, ...] = ()
    judgement: Judgement | None = None
    decision: Decision = Decision.REJECT
    rejected: str = ""


@frozen
class TaskHistory:
    """All that was learnt about a task; ``diagnosis`` is None where there was no baseline to make one from."""

    task: TaskSummary
    baseline: tuple[Episode, ...]
    attempts: tuple[Attempt, ...]
    diagnosis: Diagnosis | None = None


@frozen
class Offer:
    """An installed layer that a designer may propose.

    Args:
        type: its full name.
        summary: its one line.
        schema: the JSON schema of its config; None where it can't be described.
    """

    type: str
    summary: str
    schema: JsonObject | None


@frozen
class Evidence:
    """What a designer is shown of a task.

    Args:
        task: the task's summary.
        instruction: the task as the agent is told it.
        tools: what the agent can call.
        env_state_schema: which fields a hook's ``env_state`` has.
        layers: every installed layer.
        objective: what is asked for, in words.
        band: the success rates that are asked for, where the objective has a band.
        limits: what an episode may take.
        baseline: rollouts of the policy on the current stack, in rollout order.
        demonstrations: rollouts of the demonstrator, where the campaign has one.
        trajectory: loads an episode's trajectory.
        earlier: finished tasks, in task order, the same however fast workers were.
        budget: design rollouts that the task may still take.
        reserve: how many of them a confirmation takes.
        seed: where the designer's randomness comes from.
        bridge: the benchmark's, as a second leg may name it.
        below: the layers that earlier rounds have put in place, innermost first; a candidate comes on top of them.
        resumable: whether a layer may take back an end of the benchmark's.
        designer_notes: what the bridge says of its world beyond tools and state; empty where it says nothing.
    """

    task: TaskSummary
    instruction: str
    tools: tuple[Tool, ...]
    env_state_schema: str
    layers: tuple[Offer, ...]
    objective: str
    band: tuple[float, float] | None
    limits: Limits
    baseline: tuple[Episode, ...]
    demonstrations: tuple[Episode, ...]
    trajectory: Callable[[Episode], Trajectory] = field(eq=False, repr=False)
    earlier: tuple[TaskHistory, ...]
    budget: int
    reserve: int
    seed: int
    bridge: ComponentSpec
    below: tuple[ComponentSpec, ...] = ()
    resumable: bool = False
    designer_notes: str = ""


class Designer(Attachable, ABC, Generic[ConfigT]):
    """Writes candidates. Keeps no state between calls: what it knows is in the evidence and the history.

    A ``ProviderError`` out of any call stops the run, which can go on later; whatever else is raised costs the task, a
    ``RefusedError`` too.

    The smallest one::

        class AlwaysFlaky(Designer):
            def diagnose(self, evidence):
                return Diagnosis("never sees a fault", "all rollouts", "harden")

            def propose(self, evidence, diagnosis, history):
                rate = 0.1 * (len(history) + 1)
                return Candidate((ComponentSpec("faults", {"rate": rate}),)) if rate < 0.6 else None
    """

    waits: bool = False
    """Whether its calls wait for something, such as a model; they are then made in threads, several at a time."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def diagnose(self, evidence: Evidence) -> Diagnosis:
        """Say what limits the policy on this task, from its successes as well as its failures."""

    @abstractmethod
    def propose(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]
    ) -> Candidate | None:
        """Write the next candidate, or return None to give the task up."""

    def show(self, evidence: Evidence, stage: Literal["diagnose", "propose"]) -> str:
        """Return what it would be told at a stage, for a person to read; asks nobody."""
        return "this designer reads numbers and trajectories; there is no prompt"

    def check(self, build: Callable[[Sequence[ComponentSpec]], None]) -> None:
        """Refuse, before a run begins, a config whose layers can't be built.

        Args:
            build: builds layers on the run's bridge and throws them away.

        Raises:
            ConfigError: names the field and what is allowed.
        """

    def review(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt], attempt: Attempt
    ) -> Decision:
        """Say what to do with an attempt that the gate would accept, confirm or roll out further.

        Only a stricter word than the gate's counts; by default there is none.
        """
        return Decision.ACCEPT
