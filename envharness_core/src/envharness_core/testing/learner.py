"""A simulated learner: plays Toy24 with bad habits, which fall where a skill that it is given addresses them.

    policy = {use = "testing/learner", skill = 0.9, slips = 0.05, gives_up_on_failure = 0.7}

On the bare benchmark a habit shows now and then; a layer that brings about its occasion shows it in most rollouts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType

from attrs import field, frozen, validators

from envharness_core.data import Action, Observation
from envharness_core.policy import Policy, Reply
from envharness_core.seeds import derive
from envharness_core.tools import Tool
from envharness_core.toy24.puzzles import OPERATORS
from envharness_core.toy24.solver import Solver, SolverConfig

_RATE = [validators.ge(0.0), validators.le(1.0)]
_NO = r"(?:do not|don't|never|rather than|instead of|without)"
_STOP = r"(?:(?:calling|call|using|use) )?`?stop\b`?(?:\(\))?"
_AGAIN = r"(?:repeat(?:ing)?|(?:make|making|call|calling) the (?:very )?same call|retry(?:ing)?)"
_TROUBLE = r"(?:fail|error|refus|malformed|reject|time-?out)"
_PASSING = r"(?:passing|transient|time-?out|timed out)"


@frozen
class BadHabit:
    """A way of playing badly, and the words by which a skill addresses it.

    All patterns are looked for in a skill's whole text, folded, but for what says what it was learnt from.

    Args:
        where: what a skill that is about the habit's occasion speaks of.
        remedy: what a skill says that speaks against the habit.
        opposite: what a skill says that speaks for it, once what matched ``remedy`` is taken out.
        elsewhere: what a skill speaks of that is about another occasion.
    """

    where: str
    remedy: str
    opposite: str
    elsewhere: str = r"(?!)"

    def judged(self, skill: str) -> int:
        """Return 1 where a skill speaks against the habit, -1 where it speaks for it, 0 where it does neither."""
        text = _LEARNT_ON.sub("", " ".join(skill.split()).lower())
        if not re.search(self.where, text) or re.search(self.elsewhere, text):
            return 0
        rest, found = re.subn(self.remedy, "", text)
        return bool(found) - bool(re.search(self.opposite, rest))


_LEARNT_ON = re.compile(r"learnt on a task like:.*?(?=what to do:|$)|evidence:.*$")

HABITS: Mapping[str, BadHabit] = MappingProxyType(
    {
        "submits_unverified": BadHabit(
            where=r"combin|24|target|number|before you end|before `?stop|stop\w* early|submit",
            remedy=rf"{_NO} (?:early )?{_STOP}|use `?undo`?[^.]*? before `?stop`?|check [^.]*? before",
            opposite=rf"(?:use|call) {_STOP}|submit (?:early|at once)",
            elsewhere=_TROUBLE,
        ),
        "repeats_failed": BadHabit(
            where=_TROUBLE,
            remedy=rf"{_NO} (?:just )?{_AGAIN}|change the arguments|with other arguments|another tool|change something",
            opposite=_AGAIN,
            elsewhere=_PASSING,
        ),
        "gives_up_on_failure": BadHabit(
            where=_TROUBLE,
            remedy=rf"{_NO} (?:give up|giving up|{_STOP})|go on|keep going|try(?:ing)? again",
            opposite=rf"(?:use|call) {_STOP}|give up|is hopeless",
        ),
        "never_undoes": BadHabit(
            where=r"\bundo|take(?:n)? back|back out",
            remedy=r"(?<!not )(?<!never )(?:use `?undo`?|take (?:it |the move |a move )?back|back out)",
            opposite=r"(?:do not|never) (?:use `?undo`?|take)",
        ),
    }
)
"""The habits by the names that ``LearnerConfig`` gives their rates."""


@frozen
class LearnerConfig:
    """How well the learner plays, and how often each habit has its way where it has occasion to.

    Args:
        skill: as ``toy24.solver`` has it.
        patience: as ``toy24.solver`` has it.
        slips: how often it miscounts, and names a number that isn't there.
        submits_unverified: how often it stops with what it has, where it would better back out.
        repeats_failed: how often it makes a call again that was refused or has failed.
        gives_up_on_failure: how often it stops after a call that was refused or has failed.
        never_undoes: how often it goes on with whatever move, where it would better back out.
        heed: what is left, of a habit's rate where a skill speaks against it, and of its absence where one speaks for
            it.
    """

    skill: float = field(default=0.9, validator=_RATE)
    patience: int = field(default=18, validator=validators.ge(1))
    slips: float = field(default=0.0, validator=_RATE)
    submits_unverified: float = field(default=0.0, validator=_RATE)
    repeats_failed: float = field(default=0.0, validator=_RATE)
    gives_up_on_failure: float = field(default=0.0, validator=_RATE)
    never_undoes: float = field(default=0.0, validator=_RATE)
    heed: float = field(default=0.1, validator=_RATE)

    def rates(self, skills: Sequence[str]) -> dict[str, float]:
        """Return each habit's rate with some skills; where they speak both for and against it, its own."""
        return {name: self._rate(habit, getattr(self, name), skills) for name, habit in HABITS.items()}

    def _rate(self, habit: BadHabit, rate: float, skills: Sequence[str]) -> float:
        judged = {habit.judged(skill) for skill in skills} - {0}
        if judged == {1}:
            return rate * self.heed
        return 1 - (1 - rate) * self.heed if judged == {-1} else rate


class Learner(Policy[LearnerConfig]):
    """Plays as the solver does but for its habits; each has a stream of chance of its own.

    An episode that is played with and without a skill therefore differs only in what the skill changes.
    """

    def __init__(self, config: LearnerConfig | None = None) -> None:
        super().__init__(config or LearnerConfig())
        self._solver = Solver(SolverConfig(self.config.skill, self.config.patience))
        self.start("", (), 0)

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        """Forget the last episode, and read the skills."""
        self._solver.start(instruction, tools, seed, skills)
        self._rates = {"slips": self.config.slips, **self.config.rates(skills)}
        self._chance = {name: Random(derive("learner", seed, name)) for name in self._rates}
        self._before: tuple[Action, int] | None = None

    def act(self, observation: Observation) -> Reply:
        """Answer as the solver would, or as a habit has it."""
        planned = self._solver.act(observation).actions[0]
        left = _left(observation)
        action, why = self._led(planned, left)
        self._before = action, left
        return Reply((action,), f"{why}{' '.join([action.name, *map(str, action.kwargs.values())])}")

    def _led(self, planned: Action, left: int) -> tuple[Action, str]:
        """Return what a habit makes of a plan, and how it puts that."""
        before = self._before
        if planned.name == "stop":
            return planned, ""
        if before is not None and before[1] == left:
            if self._gives_in("gives_up_on_failure"):
                return Action("stop"), "It failed, so I give up. "
            if self._gives_in("repeats_failed"):
                return before[0], "Once more. "
        if planned.name == "undo" and left > 1:
            if self._gives_in("submits_unverified"):
                return Action("stop"), "That will do. "
            if self._gives_in("never_undoes"):
                return self._onwards(left), "Onwards. "
        if planned.name == "combine" and self._gives_in("slips"):
            return Action("combine", {**planned.kwargs, "j": left}), ""
        return planned, ""

    def _onwards(self, left: int) -> Action:
        i, j = self._chance["never_undoes"].sample(range(left), 2)
        return Action("combine", {"i": i, "j": j, "op": self._chance["never_undoes"].choice(OPERATORS)})

    def _gives_in(self, name: str) -> bool:
        return self._chance[name].random() < self._rates[name]


def _left(observation: Observation) -> int:
    """Return how many numbers are on the table, as far as is shown."""
    numbers = observation.data.get("numbers")
    return len(numbers) if isinstance(numbers, list) else 0
