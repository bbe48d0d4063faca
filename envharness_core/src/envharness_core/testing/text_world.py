"""A tiny text world: a few rooms, a hidden key, a treasure under lock; one tool that takes a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import cast

from attrs import field, frozen, validators

from envharness_core.data import (
    Action,
    Capabilities,
    EnvState,
    Observation,
    ResetResponse,
    StepResponse,
    TaskSummary,
    Verdict,
)
from envharness_core.env import Bridge
from envharness_core.errors import unknown
from envharness_core.jsondata import Json, JsonObject
from envharness_core.seeds import derive
from envharness_core.tools import Tool

ROOMS: dict[str, tuple[str, ...]] = {
    "hall": ("drawer",),
    "kitchen": ("cupboard", "oven"),
    "cellar": ("barrel",),
}
"""The rooms, each reachable from each, and the containers in them."""

TREASURES: dict[str, tuple[str, str]] = {
    "ring": ("train", "hall"),
    "map": ("train", "kitchen"),
    "coin": ("train", "cellar"),
    "lamp": ("test", "hall"),
    "book": ("test", "cellar"),
}
"""The tasks: for each treasure its split, and the room in which its chest stands."""


@frozen
class TextWorldConfig:
    """What can be chosen about a text world.

    Args:
        limit: after how many steps an episode is truncated, at least 1.
    """

    limit: int = field(default=20, validator=validators.ge(1))


class TextWorld(Bridge[TextWorldConfig]):
    """Take a treasure out of its locked chest; which container hides the key is the seed's choice.

    What it doesn't understand, or what can't be done, is answered with "Nothing happens.". A saved state is valid at
    an episode's start only, and an ended episode can't be resumed.
    """

    capabilities = Capabilities(
        upstream="text_world", version="1", snapshot="episode", resumable=False, seed_in_task=False
    )
    splits = ("train", "test")
    env_state_schema = (
        "room: str, where the agent is\n"
        "holding: list[str], what it carries, sorted\n"
        "opened: list[str], which containers and chests it has opened, sorted"
    )
    solutions = ("walkthrough",)

    def __init__(self, config: TextWorldConfig | None = None) -> None:
        super().__init__(config or TextWorldConfig())
        self._begin(0, "")

    def tools(self) -> Sequence[Tool]:
        """Return the one tool."""
        return _tools()

    def do(self, text: str) -> None:
        """Do what the text says, such as "go kitchen", "open drawer" or "take key"."""

    def list_tasks(self, split: str, limit: int | None = None) -> list[TaskSummary]:
        """Return the treasures of a split."""
        self.check_split(split)
        names = [name for name, (own, _) in TREASURES.items() if own == split]
        return [TaskSummary(name, split, _instruction(name)) for name in names][:limit]

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Hide the key."""
        task = self.task_of(options)
        if task not in TREASURES:
            raise unknown("task", task, TREASURES, where="text_world")
        self._begin(seed, task)
        return ResetResponse(self.observe(), _instruction(task))

    def step(self, action: Action) -> StepResponse:
        """Do one command; the treasure in hand ends the episode, the step limit truncates it."""
        self._steps += 1
        self._said = self._done(cast("str", action.kwargs["text"])) or "Nothing happens."
        won = self._task in self._holding
        late = not won and self._steps >= self.config.limit
        return StepResponse(self.observe(), reward=float(won), terminated=won, truncated=late)

    def observe(self) -> Observation:
        """Return the last answer and what can be done."""
        admissible: list[Json] = [*self._admissible()]
        return Observation(f"{self._said}\nYou are in the {self._room}.", {"admissible": admissible})

    def evaluate(self) -> Verdict:
        """Succeed iff the treasure is in hand."""
        won = bool(self._task) and self._task in self._holding
        return Verdict(success=won, score=float(won), metrics={"steps": self._steps})

    def get_env_state(self) -> EnvState:
        """Return the fields of ``env_state_schema``; where the key is stays hidden."""
        holding, opened = sorted(self._holding), sorted(self._opened)
        return EnvState({"room": self._room, "holding": [*holding], "opened": [*opened]})

    def save_state(self) -> JsonObject:
        """Return the start: seed and task."""
        return {"seed": self._seed, "task": self._task}

    def load_state(self, state: JsonObject) -> None:
        """Start as what was saved did."""
        self._begin(cast("int", state["seed"]), cast("str", state["task"]))

    def notify_replay_complete(self) -> None:
        """Give the step limit back."""
        self._steps = 0

    def solution(self, way: str) -> Sequence[Action] | None:
        """Fetch the key from where it is hidden, then the treasure; None where the step limit is too near."""
        if self._task in self._holding:
            return ()
        found: list[str] = []
        room = self._room
        if "key" not in self._holding:
            home = next(name for name, containers in ROOMS.items() if self._hidden in containers)
            found, room = self._fetched(room, home, self._hidden, "key"), home
        found += self._fetched(room, TREASURES[self._task][1], "chest", self._task)
        fits = self._steps + len(found) <= self.config.limit
        return [Action("do", {"text": text}) for text in found] if fits else None

    def _fetched(self, here: str, room: str, container: str, thing: str) -> list[str]:
        return [
            *([] if here == room else [f"go {room}"]),
            *([] if container in self._opened else [f"open {container}"]),
            f"take {thing}",
        ]

    def _begin(self, seed: int, task: str) -> None:
        self._seed, self._task = seed, task
        containers = [container for room in ROOMS.values() for container in room]
        self._hidden = Random(derive("key", seed)).choice(containers)
        self._room, self._said = "hall", "You wake up."
        self._holding: set[str] = set()
        self._opened: set[str] = set()
        self._steps = 0

    def _here(self) -> dict[str, list[str]]:
        """Return what can be opened in this room, and what is in each that is open."""
        here = {name: ["key"] if name == self._hidden else [] for name in ROOMS[self._room]}
        if self._task and TREASURES[self._task][1] == self._room:
            here["chest"] = [self._task]
        return here

    def _within_reach(self) -> list[str]:
        here = self._here().items()
        found = [thing for name, things in here if name in self._opened for thing in things]
        return [thing for thing in found if thing not in self._holding]

    def _admissible(self) -> list[str]:
        moves = [f"go {room}" for room in ROOMS if room != self._room]
        closed = [f"open {name}" for name in self._here() if name not in self._opened]
        return ["look", *moves, *closed, *[f"take {thing}" for thing in self._within_reach()]]

    def _done(self, text: str) -> str | None:
        if text not in self._admissible():
            return None
        verb, _, noun = text.partition(" ")
        match verb:
            case "go":
                self._room = noun
                return f"You go to the {noun}."
            case "open" if noun == "chest" and "key" not in self._holding:
                return "The chest is locked."
            case "open":
                self._opened.add(noun)
                return f"You open the {noun}: {', '.join(self._here()[noun]) or 'nothing'}."
            case "take":
                self._holding.add(noun)
                return f"You take the {noun}."
        return "You look around."


@cache
def _tools() -> tuple[Tool, ...]:
    return (Tool.of(TextWorld.do),)


def _instruction(task: str) -> str:
    return f"Take the {task}: it is in the chest in the {TREASURES[task][1]}, and the key is somewhere."
