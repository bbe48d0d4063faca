"""The contract that a bridge, a layer and a whole stack honour."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Generic, Self

from envharness_core.component import ConfigT
from envharness_core.data import (
    Action,
    Capabilities,
    EnvState,
    Finding,
    Observation,
    ResetResponse,
    StepResponse,
    TaskSummary,
    Verdict,
)
from envharness_core.errors import ConfigError, unknown
from envharness_core.jsondata import Json, JsonObject
from envharness_core.tools import Tool


class Env(ABC):
    """An environment for one agent, episode after episode.

    All that goes in and out is frozen data with strict JSON inside. Used as a context manager, it closes itself.
    """

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the bridge at the bottom declares about itself."""

    @abstractmethod
    def tools(self) -> Sequence[Tool]:
        """Return the tools that an agent may call; the same at any time of an episode."""

    @abstractmethod
    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Start an episode; forgets everything of the one before.

        Args:
            seed: randomness only, never the choice of a task.
            options: ``task``, the task's id; ``layer_seed`` (default: ``seed``), where layers derive theirs from;
                ``replays`` (default: 0), how often ``notify_replay_complete`` will follow before the agent acts: until
                then a bridge's own limits shouldn't end the episode.

        Raises:
            ConfigError: there is no such task.
        """

    @abstractmethod
    def step(self, action: Action) -> StepResponse:
        """Do one action."""

    @abstractmethod
    def observe(self) -> Observation:
        """Return the current observation again, without advancing anything."""

    @abstractmethod
    def evaluate(self) -> Verdict:
        """Grade the world as it stands; idempotent, and callable before the end."""

    @abstractmethod
    def get_env_state(self) -> EnvState:
        """Return a copy of what hooks may know of the world: no gold answers, no paths, no hidden facts."""

    @abstractmethod
    def save_state(self) -> JsonObject:
        """Return what ``load_state`` needs, as plain data."""

    @abstractmethod
    def load_state(self, state: JsonObject) -> None:
        """Become what ``save_state`` described; on a new instance as well as on a used one."""

    @abstractmethod
    def resume(self) -> None:
        """Go on after the benchmark ended the episode; only where ``capabilities.resumable``."""

    @abstractmethod
    def notify_replay_complete(self) -> None:
        """A replay is over: rewind budgets and guards to the start, keep the world."""

    @abstractmethod
    def step_reward(self, info: JsonObject) -> float | None:
        """Return an optional dense signal for the step that had this info; None where there is none."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; idempotent, also after errors."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Bridge(Env, Generic[ConfigT]):
    """A benchmark's adapter: the only code that knows its runtime, and the only source of a verdict.

    A stack never calls a bridge directly: a recorder around it checks calls against ``tools()``, so that ``step`` only
    sees well-formed ones, and copies what comes back. The smallest one::

        class Guess(Bridge):
            capabilities = Capabilities(upstream="guess", version="1", snapshot="live")
            env_state_schema = "last: int | null, the last guess"
            splits = ("train",)

            def tools(self):
                return (Tool.of(self.guess),)

            def guess(self, number: int) -> None:
                "Guess the number."

            def list_tasks(self, split, limit=None):
                self.check_split(split)
                return [TaskSummary("seven", "train", "a number below ten")][:limit]

            def reset(self, seed, options):
                self.check_task(self.task_of(options))
                self.last = None
                return ResetResponse(self.observe(), "Guess a number below ten.")

            def step(self, action):
                self.last = action.kwargs["number"]
                return StepResponse(self.observe(), terminated=self.last == 7)

            def observe(self):
                return Observation(f"Your last guess: {self.last}", {"last": self.last})

            def evaluate(self):
                return Verdict(self.last == 7, float(self.last == 7))

            def get_env_state(self):
                return EnvState({"last": self.last})

            def save_state(self):
                return {"last": self.last}

            def load_state(self, state):
                self.last = state["last"]
    """

    capabilities: Capabilities
    splits: tuple[str, ...]
    """The splits that ``list_tasks`` knows."""
    env_state_schema: str
    """Which fields the state has, written for the author of a hook."""
    designer_notes: str = ""
    """What a designer should know of this world beyond tools and state.

    How it speaks, how it refuses, what must not be promised. Every designer reads it: it gives no task's answer away.
    """
    solutions: tuple[str, ...] = ()
    """The ways in which ``solution`` can solve a task, the default first; none where it knows none."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def list_tasks(self, split: str, limit: int | None = None) -> list[TaskSummary]:
        """Return the tasks of a split in a stable order, at most ``limit``.

        Raises:
            ConfigError: there is no such split.
        """

    def resume(self) -> None:
        """Refuse: a bridge whose capabilities say ``resumable`` overrides this."""
        raise NotImplementedError(f"{type(self).__name__} is not resumable")

    def notify_replay_complete(self) -> None:
        """Do nothing; a bridge with budgets or an undo overrides this."""

    def step_reward(self, info: JsonObject) -> float | None:
        """Offer no dense signal."""
        return None

    def solution(self, way: str) -> Sequence[Action] | None:
        """Return actions by which the task is solved from the world as it stands, or None where ``way`` knows none now.

        Asking changes nothing, and the same world gets the same answer; a task that is solved already takes no action.
        For gold checks, scaffolds and tests only: nothing that an agent, a hook or a designer is shown leads here.

        Args:
            way: one of ``solutions``; the recorder lets no other through.
        """
        return None

    def rest(self) -> None:
        """Let go of what only an episode needs: it is over and its verdict taken; the next call is a reset or close.

        It may come twice, and before any episode. By default there is nothing to let go of.
        """

    def close(self) -> None:
        """Release nothing; a bridge that holds something overrides this."""

    @classmethod
    def doctor(cls, config: ConfigT) -> Sequence[Finding]:
        """Say of each thing that the bridge needs beyond its package whether it is there, and how to get it.

        ``envharness doctor`` asks the class, so that it gets an answer where no bridge can be made.
        """
        return ()

    def task_of(self, options: Mapping[str, Json]) -> str:
        """Return the task that reset's options name.

        Raises:
            ConfigError: they name none, or not by a string.
        """
        task = options.get("task")
        if not isinstance(task, str):
            raise ConfigError(f"options.task: expected a task id, got {task!r}")
        return task

    def check_task(self, task: str) -> None:
        """Refuse a task that the bridge doesn't have; a bridge that needn't list its tasks for this overrides it.

        Raises:
            ConfigError: gives the nearest id.
        """
        known = [item.id for split in self.splits for item in self.list_tasks(split)]
        if task not in known:
            raise unknown("task", task, known)

    def check_split(self, split: str) -> None:
        """Refuse a split that the bridge doesn't have.

        Raises:
            ConfigError: names the splits that there are.
        """
        if split not in self.splits:
            raise unknown("split", split, self.splits)
