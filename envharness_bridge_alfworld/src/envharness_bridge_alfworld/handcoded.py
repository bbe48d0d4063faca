"""An agent that plays ALFWorld without a model, as an imperfect person does: searches, slips, tries again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from attrs import field, frozen, validators

from envharness_bridge_alfworld.glance import Deed, Glance, kind_of, split_off_commands
from envharness_bridge_alfworld.goals import Goal, parse_goal
from envharness_bridge_alfworld.memory import Memory
from envharness_bridge_alfworld.plan import Plan
from envharness_core.data import Action, Observation
from envharness_core.errors import ConfigError
from envharness_core.policy import Policy, Reply
from envharness_core.tools import Tool

_SLIPS, _OVERLOOKS, _FORGETS, _MIXES_UP = 0.65, 0.95, 0.5, 0.5
"""How often it errs at skill 0: does just anything, misses what it sees, forgets a place, takes one for another."""
_TRIES = 2
"""How often it does a command before it does without."""
_PAUSE = 6
"""For how many turns it does without, longer each time."""
_CHECKS = {"go to": "look", "open": "examine {}", "take": "inventory", "move": "inventory"}
"""What tells whether a command has worked, where the commands aren't listed."""


@frozen
class HandcodedConfig:
    """How well the agent plays.

    Args:
        skill: from 0 to 1; 1 errs only where the world deceives it, 0 errs at most turns. Never a success probability.
    """

    skill: float = field(default=1.0, validator=[validators.ge(0.0), validators.le(1.0)])


class Handcoded(Policy[HandcodedConfig]):
    """Reads the task, searches the likely places first, and carries, treats and puts what it finds.

    It knows only what it is shown: the text, and the commands that can be done, where they are listed. By these it
    checks whether a command worked, tries again where it didn't, and does without what keeps failing, for a while. It
    never gives up: the episode's limits end it. Below skill 1 it errs as people do.
    """

    def __init__(self, config: HandcodedConfig | None = None) -> None:
        super().__init__(config or HandcodedConfig())
        self.start("", (), 0)

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        """Forget the last episode."""
        self._random = random.Random(seed)
        self._begin(parse_goal(instruction))

    def check(self, tools: Sequence[Tool]) -> None:
        """Refuse a benchmark that has no ``do(command)``."""
        if not any(
            tool.name == "do" and "command" in cast("Any", tool.schema).get("properties", {})
            for tool in tools
        ):
            raise ConfigError(
                "policy: alfworld/handcoded plays ALFWorld alone: this benchmark has no do(command)"
            )

    def _begin(self, goal: Goal | None) -> None:
        self._goal = goal
        self._memory = Memory(self._notices)
        self._plan = Plan(goal, self._memory, self._random) if goal else None
        self._listed: tuple[str, ...] = ()
        self._last: str | None = None
        self._turn = 0
        self._tries: Counter[str] = Counter()
        self._pauses: Counter[str] = Counter()
        self._until: dict[str, int] = {}
        self._checks: list[str] = []

    def act(self, observation: Observation) -> Reply:
        """Answer with one command."""
        text, listed = split_off_commands(observation)
        told = parse_goal(text) if "task is to:" in text else None
        if told is not None and told != self._goal:
            self._begin(told)
        said = self._memory.take_in(text, listed)
        if self._last is not None:
            self._learn(self._last, said)
        self._listed = listed
        self._turn += 1
        self._last = self._choose()
        return Reply((Action("do", {"command": self._last}),), self._last)

    def _errs(self, rate: float) -> bool:
        rate *= 1.0 - self.config.skill
        return rate > 0.0 and self._random.random() < rate

    def _notices(self, thing: str) -> bool:
        wanted = self._goal is not None and kind_of(thing) in (self._goal.object, self._goal.place)
        return not (wanted and self._errs(_OVERLOOKS))

    def _choose(self) -> str:
        if self._errs(_SLIPS):
            return self._anything()
        if self._memory.searched and self._errs(_FORGETS):
            self._memory.forget(self._random.choice(sorted(self._memory.searched)))
        command = self._sensible()
        return self._mixed_up(command) if self._errs(_MIXES_UP) else command

    def _sensible(self) -> str:
        if self._checks:
            return self._checks.pop()
        if not self._listed and not self._memory.places and self._turn == 1:
            return "look"
        for command in self._plan.ideas(self._listed) if self._plan else ():
            if self._until.get(command, 0) < self._turn:
                return command
        return self._anything()

    def _anything(self) -> str:
        if self._listed:
            return self._random.choice(self._listed)
        memory = self._memory
        known = [f"go to {place}" for place in memory.places if place not in memory.at]
        known += [f"examine {place}" for place in sorted(memory.at)]
        return self._random.choice(["look", "inventory", *known])

    def _mixed_up(self, command: str) -> str:
        verb = Deed.of(command).verb
        known = self._listed or [f"go to {place}" for place in self._memory.places]
        others = [other for other in known if other != command and Deed.of(other).verb == verb]
        return self._random.choice(others) if others else command

    def _learn(self, command: str, said: Glance) -> None:
        """Find out whether the last command worked, and do without it where it doesn't."""
        deed = Deed.of(command)
        worked = self._worked(deed, said)
        if worked or (worked is None and self._tries[command]):
            del self._tries[command]
            self._remember(deed)
            return
        self._tries[command] += 1
        nowhere = deed.verb == "go to" and deed.what not in self._memory.places
        doubtful = command not in self._listed if self._listed else nowhere
        if self._tries[command] >= (1 if doubtful else _TRIES):
            self._do_without(command)
            if command not in self._listed and not nowhere and deed.verb in _CHECKS:
                self._checks.append(_CHECKS[deed.verb].format(deed.what))

    def _worked(self, deed: Deed, said: Glance) -> bool | None:
        """Say whether a command did what it is for; None where nothing tells."""
        memory = self._memory
        if deed.verb == "go to":
            return deed.what in memory.at
        if deed.verb == "open":
            return deed.what not in memory.shut
        if deed.verb in ("take", "move"):
            return (memory.held == deed.what) == (deed.verb == "take")
        if deed.verb == "use" and self._goal is not None and self._goal.lamp and memory.held:
            return kind_of(memory.held) != self._goal.object
        if said.refused:
            return False
        if deed.verb in ("clean", "heat", "cool"):
            return said.treated == (deed.verb, deed.what) or None
        return True

    def _remember(self, deed: Deed) -> None:
        memory, goal = self._memory, self._goal
        if deed.verb == "examine":
            memory.finish(deed.what)
        elif deed.verb in ("clean", "heat", "cool"):
            memory.treated[deed.what] = deed.verb
        elif deed.verb == "move":
            memory.put(deed.what, deed.where)
            if goal is not None and goal.count == 1 and kind_of(deed.where) == goal.place:
                memory.treated.pop(deed.what, None)

    def _do_without(self, command: str) -> None:
        del self._tries[command]
        self._pauses[command] += 1
        self._until[command] = self._turn + _PAUSE * self._pauses[command]
