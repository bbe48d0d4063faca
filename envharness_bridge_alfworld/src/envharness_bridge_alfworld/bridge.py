"""ALFWorld's bridge: one tool that takes a command, upstream's engine in a process of its own, its flag as verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from itertools import islice
from typing import Annotated, cast

from msgspec import Meta

from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.doctor import examine
from envharness_bridge_alfworld.engine.messages import Shown
from envharness_bridge_alfworld.engines import Engine, Engines, shared
from envharness_bridge_alfworld.games import SPLITS, GameFile, Games, find_games
from envharness_bridge_alfworld.wording import DESIGNER_NOTES, HOW_TO_ACT, STATE
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
from envharness_core.env import Bridge
from envharness_core.errors import BridgeError, CheckpointError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.tools import Tool

Command = Annotated[str, Meta(description="the command, word for word as it is listed")]

_NOTHING_YET = Shown("", [], won=False, inventory=[])


class ALFWorld(Bridge[ALFWorldConfig]):
    """A household in text: find, treat and place things; one of six kinds of tasks in each game.

    The engine runs in a process of its own, taken at a reset and given back when the episode rests. A state is the task
    and the commands since its start; loading one does them again, which is exact.
    """

    splits = SPLITS
    solutions = ("walkthrough", "planner")
    env_state_schema = STATE
    designer_notes = DESIGNER_NOTES

    _task: str
    _game: GameFile
    _shown: Shown
    _commands: list[str]
    """What has reached the game since its start."""
    _steps: int
    _repeats: int
    _replayed: int
    """How many of the commands were a replay."""
    _late: bool
    _replays: int
    """How many replays have still to end before the agent acts."""
    _failed: bool

    def __init__(self, config: ALFWorldConfig | None = None, engines: Engines | None = None) -> None:
        super().__init__(config or ALFWorldConfig())
        self.engines = engines or shared()
        """Where its engines come from and go back to."""
        self._engine: Engine | None = None
        self._begin("", GameFile(b"", "", "", ()))

    @property
    def engine(self) -> Engine | None:
        """The engine of the episode in progress."""
        return self._engine

    @cached_property
    def games(self) -> Games:
        """Where the tasks come from.

        Raises:
            ConfigError: the folder that was named holds no games.
        """
        config = self.config
        return find_games(config.data, config.types, config.generated, config.generated_seed)

    @cached_property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """Which upstream plays, and which games."""
        upstream = f"{version('alfworld')} textworld {version('textworld')} {self.games.version}"
        return Capabilities("alfworld", upstream, snapshot="live", resumable=False)

    def tools(self) -> Sequence[Tool]:
        """Return the one tool."""
        return _tools()

    @classmethod
    def doctor(cls, config: ALFWorldConfig) -> Sequence[Finding]:
        """Say whether packages, games, an engine and the folder of compiled games are there."""
        return [*examine(config)]

    def list_tasks(self, split: str, limit: int | None = None) -> list[TaskSummary]:
        """Return the tasks of a split in an order that stays, at most ``limit``.

        The metadata is ``{"type": str, "scene": int}``.
        """
        self.check_split(split)
        return [task.summary() for task in islice(self.games.tasks(split), limit)]

    def check_task(self, task: str) -> None:
        """Refuse what is no task."""
        self.games.require(task)

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Start a game; the seed changes nothing."""
        task = self.games.require(self.task_of(options))
        self._start(task.id, self.games.read(task))
        replays = options.get("replays")
        self._replays = replays if isinstance(replays, int) else 0
        return ResetResponse(self.observe(), self._instruction())

    def step(self, action: Action) -> StepResponse:
        """Do one command; the engine's win ends the episode, a limit truncates it."""
        before, command = self._shown, cast("str", action.kwargs["command"])
        engine = self._playing()
        try:
            self._shown = engine.do(command, self.config.seconds)
        except BridgeError:
            self._failed = True
            raise
        self._commands.append(command)
        self._steps += 1
        same = (command, before.text, before.admissible)
        again = same == (self._last_command(2), self._shown.text, self._shown.admissible)
        self._repeats = self._repeats + 1 if again else 0
        self._late = not self._shown.won and self._is_late()
        return StepResponse(
            self.observe(),
            reward=float(self._shown.won),
            terminated=self._shown.won,
            truncated=self._late,
            info={"understood": self._shown.understood},
        )

    def observe(self) -> Observation:
        """Return the engine's last words, and the admissible commands as data and, if ``listed``, in the text."""
        text, commands = self._shown.text, self._shown.admissible
        if self.config.style == "listed":
            text = f"{text.rstrip()}\n\nAdmissible commands: {', '.join(commands)}"
        return Observation(text, {"admissible": [*commands]})

    def evaluate(self) -> Verdict:
        """Succeed iff the engine says that the game is won.

        Raises:
            BridgeError: it failed in the middle of the episode, so that nobody knows.
        """
        if self._failed:
            raise BridgeError("ALFWorld's engine failed in this episode: there is nothing to grade")
        won = self._shown.won
        metrics: JsonObject = {
            "commands": len(self._commands),
            "type": self._task.partition("/")[2].partition("-")[0],
        }
        return Verdict(success=won, score=float(won), metrics=metrics)

    def get_env_state(self) -> EnvState:
        """Return the fields of ``env_state_schema``."""
        shown = self._shown
        return EnvState(
            {
                "goal": self._game.goal,
                "text": shown.text,
                "admissible": [*shown.admissible],
                "inventory": [*shown.inventory],
                "command": self._last_command(1),
                "understood": shown.understood,
                "steps": self._steps,
                "won": shown.won,
                "done": shown.won or self._late,
            }
        )

    def save_state(self) -> JsonObject:
        """Return the task, the commands since its start, and how many of them were a replay."""
        return {
            "task": self._task,
            "commands": [*self._commands],
            "replayed": self._replayed,
            "replays": self._replays,
        }

    def load_state(self, state: JsonObject) -> None:
        """Do again what was saved.

        Raises:
            CheckpointError: it isn't a state of ALFWorld, or its task is gone.
        """
        task, commands, replayed, replays = _checked(state)
        if not task:
            self._begin("", GameFile(b"", "", "", ()))
            return
        found = self.games.find(task)
        if found is None:
            raise CheckpointError(f"alfworld: there is no task {task!r} here")
        self._start(found.id, self.games.read(found))
        self._replays = replays + bool(replayed)
        for number, command in enumerate(commands):
            if number == replayed and replayed:
                self.notify_replay_complete()
            self.step(Action("do", {"command": command}))
        if replayed == len(commands) and replayed:
            self.notify_replay_complete()

    def notify_replay_complete(self) -> None:
        """Give the step limit and the repetitions back."""
        self._replays = max(0, self._replays - 1)
        self._replayed = len(self._commands)
        self._steps = self._repeats = 0
        self._late = False

    def solution(self, way: str) -> Sequence[Action] | None:
        """Return what is left of the stored walkthrough, where nothing else was done, or the planner's way."""
        if self._shown.won:
            return []
        if way == "planner":
            commands = self._playing().plan(self.config.seconds)
        else:
            done, stored = len(self._commands), list(self._game.walkthrough)
            commands = stored[done:] if stored[:done] == self._commands else None
        return None if not commands else [Action("do", {"command": command}) for command in commands]

    def rest(self) -> None:
        """Give the engine back, for whoever plays next."""
        if self._engine is not None:
            self.engines.give(self._engine)
            self._engine = None

    def close(self) -> None:
        """Give the engine back."""
        self.rest()

    def _begin(self, task: str, game: GameFile) -> None:
        self._task, self._game = task, game
        self._shown = _NOTHING_YET
        self._commands = []
        self._steps = self._repeats = self._replayed = 0
        self._late = self._failed = False
        self._replays = 0

    def _start(self, task: str, game: GameFile) -> None:
        self._begin(task, game)
        if self._engine is not None and not self._engine.reusable:
            self._engine.close()
            self._engine = None
        seconds = self.config.seconds
        if self._engine is None:
            self._engine = self.engines.take(self.config.setting, game.key, seconds)
        try:
            self._shown = self._engine.begin(game.key, game.text, seconds)
        except BridgeError as error:
            self._failed = True
            raise BridgeError(f"{task}: {error}") from error

    def _playing(self) -> Engine:
        if self._engine is None:
            raise BridgeError("ALFWorld's engine was given back or failed: reset first")
        return self._engine

    def _last_command(self, back: int) -> str | None:
        return self._commands[-back] if len(self._commands) >= back else None

    def _is_late(self) -> bool:
        if self._replays:
            return False
        steps, repeats = self.config.max_steps, self.config.max_repeats
        return (steps is not None and self._steps >= steps) or (
            repeats is not None and self._repeats >= repeats
        )

    def _instruction(self) -> str:
        """Return the task, how to act, and what the first text says of the room, which a setup would hide."""
        goal = self._game.goal
        told = f"Your task is to: {goal}" if goal else "Your task stands in the first text."
        room = self._shown.text.partition("\n\n")[2].partition("Your task is to:")[0].strip()
        return "\n".join(part for part in (told, HOW_TO_ACT, room) if part)


@cache
def _tools() -> tuple[Tool, ...]:
    return (Tool.of(do),)


def do(command: Command) -> None:
    """Do a command in the household."""


def _checked(state: JsonObject) -> tuple[str, list[str], int, int]:
    """Read a saved state's fields.

    Raises:
        CheckpointError: names the field that is missing or nonsense.
    """
    task, commands, replayed = state.get("task"), state.get("commands"), state.get("replayed")
    if not isinstance(task, str):
        raise CheckpointError(f"alfworld: task: expected a string, got {task!r}")
    if not isinstance(commands, list):
        raise CheckpointError(f"alfworld: commands: expected a list, got {commands!r}")
    texts = [command for command in commands if isinstance(command, str)]
    if len(texts) != len(commands):
        raise CheckpointError("alfworld: commands: expected strings only")
    if type(replayed) is not int or not 0 <= replayed <= len(texts):
        raise CheckpointError(f"alfworld: replayed: expected a count of commands, got {replayed!r}")
    replays = state.get("replays", 0)
    if type(replays) is not int or replays < 0:
        raise CheckpointError(f"alfworld: replays: expected a count, got {replays!r}")
    return task, texts, replayed, replays
