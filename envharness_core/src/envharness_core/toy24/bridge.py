"""Toy24's bridge: four numbers, three tools, an exact verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Annotated, Literal

from attrs import frozen
from msgspec import Meta

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
from envharness_core.errors import CheckpointError, unknown
from envharness_core.jsondata import Json, JsonObject
from envharness_core.tools import Tool
from envharness_core.toy24 import puzzles
from envharness_core.toy24.puzzles import TARGET, Hand, Puzzle, apply, combined, deal, parse, show
from envharness_core.toy24.search import winning
from envharness_core.toy24.solver import Option

UNDO = "undo"
"""How the log writes an undo; a move reads ``3 * 8 = 24``."""

Index = Annotated[int, Meta(description="index of a number, from 0, as the observation shows it")]


@frozen
class Toy24Config:
    """Toy24 has nothing to configure."""


class Toy24(Bridge[Toy24Config]):
    """The game of 24: combine four numbers with + - * / until 24 is all that is left.

    The numbers are always in ascending order, so that task and log decide everything else. A bad index, a division by
    zero and an undo at the start are observations that say so, with ``info.error``; the world is untouched.
    """

    capabilities = Capabilities(upstream="toy24", version="1", snapshot="live", resumable=True)
    splits = puzzles.SPLITS
    env_state_schema = (
        'numbers: list[str], ascending, exact, such as "8/3" or "-2"\n'
        'target: str, "24"\n'
        'log: list[str], moves and undos since the start, oldest first, such as "3 * 8 = 24" or "undo"\n'
        "steps: int, actions since the start or the end of a replay, failed ones included\n"
        "can_undo: bool, whether undo() would do something\n"
        "done: bool, whether the episode has ended (stop(), or a single number left)"
    )

    solutions = ("search",)
    designer_notes = (
        "Arithmetic is exact: fractions and negative numbers are legal. Numbers are kept in ascending order, so that "
        "indices change with every move.\n"
        "What can't be done (an index out of range, a number with itself, a division by zero, an undo at the start) is "
        "refused by one sentence in front of the unchanged observation; it costs a step and nothing else.\n"
        "undo() takes back one move at a time, down to the start. A setup makes its own end the start: its moves "
        "stay, and can leave numbers that no longer make 24. Without undo() every bad move stays.\n"
        "The last number, or stop(), ends the episode. Only exactly 24 with nothing else left is a success: promise no "
        "other target, no further number and no use of a number twice."
    )

    _hands: list[Hand]
    """The start and what each move made of it, without what was taken back."""
    _log: list[str]

    def __init__(self, config: Toy24Config | None = None) -> None:
        super().__init__(config or Toy24Config())
        self._begin("", ())

    def tools(self) -> Sequence[Tool]:
        """Return combine, undo and stop."""
        return _tools()

    def list_tasks(self, split: str, limit: int | None = None) -> list[TaskSummary]:
        """Return the puzzles of a split in the order of a stable hash; ``limit`` takes the first ones.

        The metadata is ``{"solutions": int, "needs_fraction": bool}``, as ``puzzles.Puzzle`` defines them.
        """
        self.check_split(split)
        tasks = [_summary(puzzle) for puzzle in puzzles.puzzles().values() if puzzle.split == split]
        return tasks if limit is None else tasks[:limit]

    def check_task(self, task: str) -> None:
        """Refuse what is no puzzle."""
        _puzzle(task)

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        """Deal the task's numbers; the seed changes nothing."""
        puzzle = _puzzle(self.task_of(options))
        self._begin(puzzle.id, deal(puzzle.numbers))
        return ResetResponse(self.observe(), _instruction(puzzle))

    def step(self, action: Action) -> StepResponse:
        """Do one call; the episode ends with stop() or with the last number."""
        self._steps += 1
        if action.name == "stop":
            return self._end()
        problem = self._undo() if action.name == "undo" else self._combine(action.kwargs)
        if problem is not None:
            return StepResponse(self.observe().preceded_by(problem), info={"error": problem})
        if len(self._hands[-1]) == 1 and action.name != "undo":
            return self._end()
        return StepResponse(self.observe())

    def observe(self) -> Observation:
        """Return the numbers with their indices, and the log, one entry a line."""
        numbers = [show(number) for number in self._hands[-1]]
        shown = "  ".join([f"[{index}] {number}" for index, number in enumerate(numbers)])
        lines = ["Target: 24", f"Numbers: {shown}"]
        if self._log:
            lines += ["Log:", *self._log]
        return Observation("\n".join(lines), {"numbers": [*numbers], "target": "24", "log": [*self._log]})

    def evaluate(self) -> Verdict:
        """Succeed iff exactly 24 and nothing else is left; from the task's numbers and the log alone.

        The world is graded as it stands: where an ended episode was resumed, 24 still counts until it is undone.
        """
        if not self._task:
            return Verdict(success=False, score=0.0, metrics={"moves": 0, "undos": 0})
        hands = _replayed(deal(_puzzle(self._task).numbers), self._log)
        success = hands[-1] == (TARGET,)
        undos = self._log.count(UNDO)
        metrics: JsonObject = {"moves": len(self._log) - undos, "undos": undos}
        return Verdict(success=success, score=float(success), metrics=metrics)

    def get_env_state(self) -> EnvState:
        """Return the fields of ``env_state_schema``."""
        return EnvState(
            {
                "numbers": [show(number) for number in self._hands[-1]],
                "target": "24",
                "log": [*self._log],
                "steps": self._steps,
                "can_undo": len(self._hands) > self._floor,
                "done": self._done,
            }
        )

    def save_state(self) -> JsonObject:
        """Return task, log, how much of the log was a replay, steps and end."""
        return {
            "task": self._task,
            "log": [*self._log],
            "replayed": self._replayed,
            "steps": self._steps,
            "done": self._done,
        }

    def load_state(self, state: JsonObject) -> None:
        """Become what was saved.

        Raises:
            CheckpointError: it isn't a state of Toy24, or its log can't have happened.
        """
        task, log, replayed, steps, done = _checked(state)
        if task == "":
            self._begin("", ())
            return
        puzzle = puzzles.puzzle_of(task)
        if puzzle is None:
            raise CheckpointError(f"toy24: {task!r} is no puzzle")
        try:
            start = _replayed(deal(puzzle.numbers), log[:replayed])
            hands = _replayed(start[-1], log[replayed:])
        except ValueError as error:
            raise CheckpointError(f"toy24: the log can't have happened: {error}") from error
        self._begin(task, ())
        self._hands, self._log = [*start[:-1], *hands], [*log]
        self._floor, self._replayed, self._steps, self._done = len(start), replayed, steps, done

    def resume(self) -> None:
        """Clear the end: after stop() the game goes on, after the last number undo() is possible."""
        self._done = False

    def notify_replay_complete(self) -> None:
        """Make the present hand the start: undo() doesn't go past it, and steps count from here."""
        self._floor = len(self._hands)
        self._replayed = len(self._log)
        self._steps = 0

    def solution(self, way: str) -> Sequence[Action] | None:
        """Search exactly: undo back to a hand that makes 24, if need be, and make it."""
        if self._done:
            return () if self._hands[-1] == (TARGET,) else None
        for undone, hand in enumerate(reversed(self._hands[self._floor - 1 :])):
            moves = winning(hand)
            if moves is not None:
                ending = [] if moves else [Action("stop")]
                return [Action("undo")] * undone + [_call(move) for move in moves] + ending
        return None

    def _begin(self, task: str, hand: Hand) -> None:
        self._task = task
        self._hands = [hand]
        self._log = []
        self._floor = 1
        self._replayed = 0
        self._steps = 0
        self._done = False

    def _end(self) -> StepResponse:
        self._done = True
        reward = float(self._hands[-1] == (TARGET,))
        return StepResponse(self.observe(), reward=reward, terminated=True)

    def _undo(self) -> str | None:
        """Take back a move, or say why that can't be done."""
        if len(self._hands) <= self._floor:
            return "There is nothing to undo: this is the start."
        self._hands.pop()
        self._log.append(UNDO)
        return None

    def _combine(self, kwargs: JsonObject) -> str | None:
        """Make a move, or say why it can't be made."""
        i, j, operator = kwargs["i"], kwargs["j"], kwargs["op"]
        if not (isinstance(i, int) and isinstance(j, int) and isinstance(operator, str)):
            raise TypeError(f"combine: malformed arguments {kwargs!r}")  # the recorder lets none through
        made = _made(self._hands[-1], i, j, operator)
        if isinstance(made, str):
            return made
        self._hands.append(made[0])
        self._log.append(made[1])
        return None


def _call(move: Option) -> Action:
    return Action("combine", {"i": move.i, "j": move.j, "op": move.operator})


@cache
def _tools() -> tuple[Tool, ...]:
    return Tool.of(combine), Tool.of(undo), Tool.of(stop)


def combine(i: Index, j: Index, op: Literal["+", "-", "*", "/"]) -> None:
    """Replace the numbers with the indices i and j by the result of: number i, op, number j."""


def undo() -> None:
    """Take back the last move that isn't taken back yet."""


def stop() -> None:
    """End the episode with the numbers as they are."""


def _puzzle(task: str) -> Puzzle:
    puzzle = puzzles.puzzle_of(task)
    if puzzle is None:
        raise unknown("task", task, puzzles.puzzles(), where="toy24")
    return puzzle


def _summary(puzzle: Puzzle) -> TaskSummary:
    metadata: JsonObject = {"solutions": puzzle.solutions, "needs_fraction": puzzle.needs_fraction}
    listed = ", ".join(map(str, puzzle.numbers))
    return TaskSummary(puzzle.id, puzzle.split, f"Make 24 from {listed}.", metadata)


@lru_cache(maxsize=2048)
def _instruction(puzzle: Puzzle) -> str:
    listed = ", ".join(map(str, puzzle.numbers))
    return (
        f"Make 24 from {listed}. Combine two numbers at a time with + - * /, each number exactly once, until 24 is "
        "all that is left. Arithmetic is exact; fractions and negative numbers are fine. "
        "The episode ends with the last number, or with stop()."
    )


def _replayed(start: Hand, log: Sequence[str]) -> list[Hand]:
    """Play a log from a hand: return the hands that are not taken back, oldest first.

    Raises:
        ValueError: an entry is no move on the hand that it met, or takes back the start.
    """
    hands = [start]
    for entry in log:
        if entry != UNDO:
            hands.append(_moved(hands[-1], entry))
        elif len(hands) > 1:
            hands.pop()
        else:
            raise ValueError("it takes back the start")
    return hands


@lru_cache(maxsize=1 << 14)
def _made(hand: Hand, i: int, j: int, operator: str) -> tuple[Hand, str] | str:
    """Return the hand after a move and the move's entry in the log, or why there is no such move."""
    if not (0 <= i < len(hand) and 0 <= j < len(hand)):
        return f"There are numbers 0 to {len(hand) - 1}; combine({i}, {j}) is out of range."
    if i == j:
        return f"A number can't be combined with itself: i and j are both {i}."
    made = apply(hand[i], operator, hand[j])
    if made is None:
        return f"{show(hand[i])} can't be divided by zero."
    return combined(hand, i, j, made), f"{show(hand[i])} {operator} {show(hand[j])} = {show(made)}"


@lru_cache(maxsize=1 << 14)
def _moved(hand: Hand, entry: str) -> Hand:
    parts = entry.split(" ")
    if len(parts) != 5 or parts[1] not in puzzles.OPERATORS or parts[3] != "=":
        raise ValueError(f"{entry!r} is no move")
    a, b = parse(parts[0]), parse(parts[2])
    if a not in hand or b not in hand or (a == b and hand.count(a) < 2):
        raise ValueError(f"{entry!r}: the numbers aren't there")
    made = apply(a, parts[1], b)
    if made is None or show(made) != parts[4]:
        raise ValueError(f"{entry!r} is wrong")
    i = hand.index(a)
    return combined(hand, i, hand.index(b, i + 1) if a == b else hand.index(b), made)


def _checked(state: JsonObject) -> tuple[str, list[str], int, int, bool]:
    """Read a saved state's fields.

    Raises:
        CheckpointError: names the field that is missing or nonsense.
    """
    task, log, done = state.get("task"), state.get("log"), state.get("done")
    if not isinstance(task, str):
        raise CheckpointError(f"toy24: task: expected a string, got {task!r}")
    if not isinstance(log, list):
        raise CheckpointError(f"toy24: log: expected a list, got {log!r}")
    entries = [entry for entry in log if isinstance(entry, str)]
    if len(entries) != len(log):
        raise CheckpointError("toy24: log: expected strings only")
    if not isinstance(done, bool):
        raise CheckpointError(f"toy24: done: expected true or false, got {done!r}")
    replayed = _count(state, "replayed")
    if replayed > len(entries):
        raise CheckpointError(f"toy24: replayed: {replayed} is more than the log has")
    return task, entries, replayed, _count(state, "steps"), done


def _count(state: JsonObject, name: str) -> int:
    number = state.get(name)
    if type(number) is not int or number < 0:
        raise CheckpointError(f"toy24: {name}: expected a count, got {number!r}")
    return number
