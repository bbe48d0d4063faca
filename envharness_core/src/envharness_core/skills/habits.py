"""Habits: what a rollout did in which situation, without what only its own task knows.

Arguments count only where a tool's schema lists a few values for them or they are true or false, and never in the call
that ended the episode, which may hold the answer; of a command line only the command.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from envharness_core.data import Action
from envharness_core.tools import Tool
from envharness_core.trajectory import Step, Trajectory

Trouble: TypeAlias = Literal["refused", "malformed", "passing", "failed", "unchanged"]
"""What went wrong with a call; ``passing`` is a failure that trying again may mend."""

_FAILS = re.compile(
    r"^\W*(?:error|fail(?:ed|ure)|invalid|unknown|unable|cannot|can't|could ?n[o']t|exception|traceback|"
    r"nothing happens|there is nothing)\b|"
    r"\b(?:no such|not found|not allowed|permission denied|out of range|can(?:'t| ?not) be|is unavailable)\b",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"\b(?:try(?:ing)? again|timed out|time-?out|temporar|transient|busy|retry|rate limit)", re.IGNORECASE
)
_COMMAND = re.compile(r"[a-z][a-z_-]{0,19}(?=\s|$)")
_COMMAND_LINES = frozenset(("action", "cmd", "command"))
_WAY = re.compile(r"[a-z][a-z_-]{2,23}", re.IGNORECASE)
_FEW = 12
"""Values that a schema may list for an argument to be a way of acting rather than an answer."""


@frozen
class Situation:
    """Where a habit shows: ``start``, a trouble, ``after`` a call, before the ``end`` by a call, or ``ever``."""

    kind: Literal["start", "refused", "malformed", "passing", "failed", "unchanged", "after", "end", "ever"]
    call: str = ""


@frozen
class Move:
    """What is done there: the ``same`` call again, one with ``other_arguments``, an ``other_tool``, or a ``call``."""

    kind: Literal["same", "other_arguments", "other_tool", "call"]
    call: str = ""
    detail: str = ""
    """An argument of the call's, as ``mode="append"``."""


@frozen
class Habit:
    """A move in a situation."""

    situation: Situation
    move: Move


@frozen
class Habits:
    """What one rollout did.

    Args:
        met: how often each situation arose.
        did: how often each habit showed.
        ending: the tools that end an episode whenever they are called.
    """

    met: Mapping[Situation, int] = field(factory=Counter)
    did: Mapping[Habit, int] = field(factory=Counter)
    ending: frozenset[str] = frozenset()

    def shows(self, habit: Habit) -> bool:
        """Say whether it is what the rollout did there, most of the time; of ``ever``, at any time.

        A long rollout does more of everything, so counts alone would tell its length. A call that ends the episode
        can't be made twice, so once is enough.
        """
        done = self.did.get(habit, 0)
        if habit.situation.kind == "ever" or habit.move.call in self.ending:
            return done > 0
        return 2 * done > self.met.get(habit.situation, 0)


class Reader:
    """Reads trajectories of one task.

    Args:
        trajectories: all of them: which calls end an episode is learnt from all.
        tools: what the agent could call.
    """

    def __init__(self, trajectories: Sequence[Trajectory], tools: Sequence[Tool]) -> None:
        self._schemas = {tool.name: _properties(tool) for tool in tools}
        self._ending = _ending_calls(trajectories)

    def habits(self, trajectory: Trajectory) -> Habits:
        """Return what a rollout did."""
        met: Counter[Situation] = Counter()
        did: Counter[Habit] = Counter()
        for number in range(len(trajectory.steps)):
            moves = list(self._moves(trajectory, number))
            for situation in self._situations(trajectory, number):
                met[situation] += 1
                for move in moves:
                    if _tells(situation, move):
                        did[Habit(situation, move)] += 1
        return Habits(met, did, self._ending)

    def name(self, action: Action) -> str:
        """Return how a call is named: its tool, or the command where the tool takes a command line."""
        properties = self._schemas.get(action.name, {})
        if len(properties) == 1:
            ((key, schema),) = properties.items()
            line = action.kwargs.get(key) if isinstance(action.kwargs, dict) else None
            alone = len(self._schemas) == 1 or key in _COMMAND_LINES
            if alone and _is_text(schema) and isinstance(line, str):
                command = _COMMAND.match(line.lstrip())
                return f"{action.name} {command[0]}" if command else action.name
        return action.name

    def _situations(self, trajectory: Trajectory, number: int) -> Iterator[Situation]:
        steps = trajectory.steps
        yield Situation("ever")
        if number == 0:
            yield Situation("start")
        else:
            trouble, before = trouble_of(trajectory, number - 1), steps[number - 1].action
            if trouble is not None:
                yield Situation(trouble)
            elif before is not None:
                yield Situation("after", self.name(before))
        if number == len(steps) - 2:
            last = steps[-1]
            if last.action is not None and last.response.terminated and last.action.name in self._ending:
                yield Situation("end", last.action.name)

    def _moves(self, trajectory: Trajectory, number: int) -> Iterator[Move]:
        steps = trajectory.steps
        action, before = steps[number].action, steps[number - 1].action if number else None
        if action is None:
            return
        name = self.name(action)
        yield Move("call", name)
        if not steps[number].response.terminated:
            for key, value in self._told(action):
                yield Move("call", name, f"{key}={value}")
        if before is not None:
            if action == before:
                yield Move("same")
            else:
                yield Move("other_arguments" if name == self.name(before) else "other_tool")

    def _told(self, action: Action) -> Iterator[tuple[str, str]]:
        """Yield the arguments that say how something is done."""
        for key, schema in self._schemas.get(action.name, {}).items():
            value = action.kwargs.get(key) if isinstance(action.kwargs, dict) else None
            if isinstance(value, bool) and schema.get("type") == "boolean":
                yield key, str(value).lower()
            elif isinstance(value, str) and value in _ways(schema):
                yield key, f'"{value}"'


def trouble_of(trajectory: Trajectory, number: int) -> Trouble | None:
    """Say what was wrong with a step, by what the agent was told of it; None where nothing was."""
    response = trajectory.steps[number].response
    line = response.observation.text.lstrip().split("\n", 1)[0]
    for key, trouble in _TOLD.items():
        if response.info.get(key):
            return trouble
    if response.info.get("error") or _FAILS.search(line):
        return "passing" if _PASSES.search(line) else "failed"
    if response.ended:
        return None
    shown = trajectory.steps[number - 1].response if number else trajectory.start
    same = shown is not None and shown.observation == response.observation
    return "unchanged" if same and line else None


_AGAIN = frozenset(("refused", "malformed", "passing", "failed", "unchanged"))
"""Situations in which it matters whether the call before is made again."""
_TOLD: Mapping[str, Trouble] = {
    "malformed": "malformed",
    "blocked": "refused",
    "transient_error": "passing",
}


def _tells(situation: Situation, move: Move) -> bool:
    """Say whether a move can be a habit in a situation."""
    return situation.kind in _AGAIN or move.kind == "call"


def _ending_calls(trajectories: Sequence[Trajectory]) -> frozenset[str]:
    """Return the tools that end an episode whenever they are called."""
    ended: dict[str, bool] = {}
    for trajectory in trajectories:
        for number, step in enumerate(trajectory.steps):
            if step.action is not None and _arrived(trajectory, number, step):
                ended[step.action.name] = ended.get(step.action.name, True) and step.response.terminated
    return frozenset(name for name, always in ended.items() if always)


def _arrived(trajectory: Trajectory, number: int, step: Step) -> bool:
    return step.response.terminated or trouble_of(trajectory, number) in (None, "unchanged")


def _properties(tool: Tool) -> dict[str, Any]:
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {key: schema for key, schema in properties.items() if isinstance(schema, dict)}


def _ways(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema lists, where they are words for a few ways of acting.

    Letters and signs, such as ``B`` or ``*``, are answers or parts of them.
    """
    listed = schema.get("enum")
    if not isinstance(listed, list) or len(listed) > _FEW:
        return []
    return [value for value in listed if isinstance(value, str) and _WAY.fullmatch(value)]


def _is_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and "enum" not in schema
