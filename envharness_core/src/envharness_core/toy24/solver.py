"""A policy that plays Toy24 as an imperfect person does: it overlooks, goes astray, backs out, and tires."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from attrs import field, frozen, validators

from envharness_core.data import Action, Observation
from envharness_core.policy import Policy, Reply
from envharness_core.tools import Tool
from envharness_core.toy24.puzzles import OPERATORS, TARGET, Hand, Number, apply, combined, parse, value

Entry: TypeAlias = tuple[Number, str, Number, Number]
"""A move as the log writes it: a, operator, b, result."""

_CLOSED = (
    "closed",
    "forbidden",
    "not allowed",
    "disabled",
    "unavailable",
    "not available",
    "refused",
    "nothing to undo",
)
_TRANSIENT = ("try again", "timed out", "timeout", "temporar", "transient", "busy", "retry")
_FORM = 0.8
"""How much the day's form varies: standard deviation on the log odds of seeing a winning move."""
_BACK_OUT = 0.5
"""How often it takes a move back, rather than going on by guess, where it sees no win."""
_FOCUS = 2.0
"""How sharply appeal falls with a move's cost."""
_SHARPEN = 3.0
"""How much a winning move stands out among as appealing ones, to the eye that looks ahead."""
_LARGE = 36
"""Results above this are hard to keep in mind."""
_OPERATOR_COST = {"+": 0.0, "-": 0.3, "*": 0.2, "/": 1.0}
_INVITING = frozenset((number, 1) for number in (2, 3, 4, 6, 8, 12, 24))
_ADVICE = {"fraction": ("fraction",), "negative": ("negative",), "large": ("large", "big intermediate")}


@frozen
class SolverConfig:
    """How well the solver plays.

    Args:
        skill: from 0 to 1, how hidden a winning move may be so that it is still seen; never a success probability.
        patience: how many actions it spends, failed ones included, before it gives up.
        retries: how often it repeats an action that failed without being refused.
    """

    skill: float = field(default=0.6, validator=[validators.ge(0.0), validators.le(1.0)])
    patience: int = field(default=18, validator=validators.ge(1))
    retries: int = field(default=3, validator=validators.ge(0))


@frozen
class Option:
    """A move that a hand offers.

    Args:
        i: index of the first number.
        j: index of the second one.
        operator: what combines them.
        child: the hand that it leaves.
        appeal: how readily it comes to mind, above 0; fractions, negative and large results do less.
        clarity: from 0 (it can't be won from there) to 1 (won), how apparent the rest of the way is.
    """

    i: int
    j: int
    operator: str
    child: Hand
    appeal: float
    clarity: float


class Solver(Policy[SolverConfig]):
    """Searches imperfectly on what it is shown, recovers from faults, gives up sensibly.

    At each hand it looks for a winning move. Whether it sees one depends on how the winning moves' appeal and clarity
    compare with the appeal of everything else that it hasn't ruled out; skill and the day's form tip the scales. If
    it sees none it follows what looks inviting, or backs out. What it has ruled out it reads from the log that it is
    shown, and nowhere else. Skills that speak of fractions, negative or large intermediates make it overlook those
    less. It computes everything for itself, from the numbers that it is shown.
    """

    def __init__(self, config: SolverConfig | None = None) -> None:
        super().__init__(config or SolverConfig())
        self.start("", (), 0)

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        """Forget the last episode."""
        self._random = random.Random(seed)
        self._edge = math.exp(7.0 * self.config.skill - 1.0 + self._random.gauss(0.0, _FORM))
        self._advice = _advice_in(skills)
        self._can_undo = not tools or any(tool.name == "undo" for tool in tools)
        self._blind: dict[Hand, float] = {}
        self._turns = 0
        self._failures = 0
        self._first = 0
        self._last: tuple[Action, Hand] | None = None
        self._closed: frozenset[str] = frozenset()
        self._refused: list[tuple[Hand, str]] = []

    def act(self, observation: Observation) -> Reply:
        """Answer with one action, or with stop() where patience or ideas have run out."""
        table = _table(_strings(observation, "numbers"))
        self._turns += 1
        self._first = max(self._first, len(table))
        again = self._after_failure(table, observation.text)
        if not table or self._turns > self.config.patience:
            action = Action("stop")
        elif again is not None:
            action = again
        else:
            action = self._next(table, _strings(observation, "log"))
        self._last = action, table
        return Reply((action,), " ".join([action.name, *map(str, action.kwargs.values())]))

    def _next(self, hand: Hand, log: tuple[str, ...]) -> Action:
        if hand == (TARGET,):
            return Action("stop")
        options: Sequence[Option] = outlook(hand, self._closed, self._advice)
        dead = ruled_out(hand, log)
        if dead or self._refused:
            options = [
                option
                for option in options
                if option.child not in dead and (option.child, option.operator) not in self._refused
            ]
        option = self._seen(hand, options)
        if option is None and (len(hand) <= 2 or not options or self._backs_out(hand)):
            return Action("undo" if self._may_undo(hand) else "stop")
        if option is None:
            option = self._drawn(options, [option.appeal for option in options])
        return Action("combine", {"i": option.i, "j": option.j, "op": option.operator})

    def _seen(self, hand: Hand, options: Sequence[Option]) -> Option | None:
        """Return a winning move, if the solver sees one.

        What it overlooked at a hand it goes on overlooking, until it has ruled out enough of the rest.
        """
        signals = [option.appeal * option.clarity for option in options]
        signal = self._edge * sum(signals)
        noise = sum([option.appeal for option in options if not option.clarity])
        blindness = self._blind.setdefault(hand, self._random.random())
        if signal and blindness * (signal + noise) < signal:
            return self._drawn(options, signals)
        return None

    def _drawn(self, options: Sequence[Option], weights: list[float]) -> Option:
        return self._random.choices(options, weights)[0]

    def _may_undo(self, hand: Hand) -> bool:
        return self._can_undo and len(hand) < self._first

    def _backs_out(self, hand: Hand) -> bool:
        return self._may_undo(hand) and self._random.random() < _BACK_OUT

    def _after_failure(self, hand: Hand, text: str) -> Action | None:
        """Notice that the last action changed nothing: return it to try again, or rule it out and return None."""
        if self._last is None or self._last[1] != hand or self._last[0].name == "stop":
            self._failures = 0
            return None
        action = self._last[0]
        self._failures += 1
        reason = text.partition("\n\n")[0].lower() if "\n\n" in text else ""
        transient = any(word in reason for word in _TRANSIENT)
        refused = not transient and (self._failures > 1 or any(word in reason for word in _CLOSED))
        if not refused and self._failures <= self.config.retries:
            return action
        self._failures = 0
        self._rule_out(action, hand, reason)
        return None

    def _rule_out(self, action: Action, hand: Hand, reason: str) -> None:
        """Do without what was refused: undo, an operator that the reason names, else that one move."""
        if action.name == "undo":
            self._can_undo = False
            return
        operator = str(action.kwargs["op"])
        closed = f"'{operator}'" in reason or f'"{operator}"' in reason or f"`{operator}`" in reason
        if closed or any(known == operator for _, known in self._refused):
            self._closed |= {operator}
        self._refused += [
            (option.child, operator)
            for option in outlook(hand, frozenset(), self._advice)
            if (option.i, option.j, option.operator) == (action.kwargs["i"], action.kwargs["j"], operator)
        ]


def _advice_in(skills: Sequence[str]) -> frozenset[str]:
    text = " ".join(skills).lower()
    return frozenset(topic for topic, words in _ADVICE.items() if any(word in text for word in words))


def _strings(observation: Observation, key: str) -> tuple[str, ...]:
    listed = observation.data.get(key)
    return tuple([item for item in listed if isinstance(item, str)]) if isinstance(listed, list) else ()


@lru_cache(maxsize=1 << 14)
def _table(numbers: tuple[str, ...]) -> Hand:
    """Read the numbers shown; none where some layer has made them unreadable."""
    try:
        return tuple(parse(number) for number in numbers)
    except ValueError:
        return ()


@lru_cache(maxsize=1 << 16)
def outlook(
    hand: Hand, closed: frozenset[str] = frozenset(), advice: frozenset[str] = frozenset()
) -> tuple[Option, ...]:
    """Return a hand's moves without the closed operators, one for each operator and hand that it leaves.

    The order is that of indices and operators. Computed once a process for each hand.
    """
    found: dict[tuple[Hand, str], Option] = {}
    for i in range(len(hand)):
        for j in range(len(hand)):
            for operator in OPERATORS:
                if i == j or operator in closed or (i > j and operator in "+*"):
                    continue
                made = apply(hand[i], operator, hand[j])
                if made is None:
                    continue
                child = combined(hand, i, j, made)
                if (child, operator) not in found:
                    appeal = _appeal(operator, made, advice)
                    clear = clarity(child, closed, advice)
                    found[child, operator] = Option(i, j, operator, child, appeal, clear)
    return tuple(found.values())


@lru_cache(maxsize=1 << 16)
def clarity(hand: Hand, closed: frozenset[str], advice: frozenset[str]) -> float:
    """Return how apparent a win is: the winning moves' share of all appeal, each weighted by what comes after it."""
    if len(hand) <= 1:
        return float(hand == (TARGET,))
    options = outlook(hand, closed, advice)
    won = sum(option.appeal * option.clarity for option in options)
    lost = sum(option.appeal for option in options if not option.clarity)
    return _SHARPEN * won / (_SHARPEN * won + lost) if won else 0.0


def _appeal(operator: str, made: Number, advice: frozenset[str]) -> float:
    cost = _OPERATOR_COST[operator]
    if made[1] != 1:
        cost += 0.4 if "fraction" in advice else 1.8
    if made[0] < 0:
        cost += 0.4 if "negative" in advice else 1.5
    size = abs(value(made))
    if size > _LARGE:
        cost += (0.3 if "large" in advice else 1.0) * math.log2(size / 24)
    if made in _INVITING:
        cost -= 0.7
    return math.exp(-_FOCUS * cost)


def ruled_out(hand: Hand, log: tuple[str, ...]) -> frozenset[Hand]:
    """Return the hands that the shown log says were tried and taken back, given the hand that it led to.

    A log may have lost its beginning: what is taken back without having been shown tells nothing.
    """
    if "undo" not in log:
        return frozenset()
    return _ruled_out(hand, tuple([text for text in log if text == "undo" or _entry(text) is not None]))


@lru_cache(maxsize=1 << 14)
def _ruled_out(hand: Hand, log: tuple[str, ...]) -> frozenset[Hand]:
    kept: list[Entry | None] = []
    open_moves: list[int] = []
    start = 0
    for place, text in enumerate(log):
        kept.append(_entry(text))
        if kept[-1] is not None:
            open_moves.append(place)
        elif open_moves:
            open_moves.pop()
        else:
            start = place + 1
    for place in reversed(open_moves):
        entry = kept[place]
        if place >= start and entry is not None:
            hand = _taken_back(hand, entry)
    path, dead = [hand], set()
    for entry in kept[start:]:
        if entry is not None:
            path.append(_put(path[-1], entry))
        else:
            dead.add(path.pop())
    return frozenset(dead)


@lru_cache(maxsize=1 << 14)
def _entry(text: str) -> Entry | None:
    """Read a move of the log; None where it is none."""
    parts = text.split(" ")
    if len(parts) != 5:
        return None
    try:
        return parse(parts[0]), parts[1], parse(parts[2]), parse(parts[4])
    except ValueError:
        return None


@lru_cache(maxsize=1 << 14)
def _taken_back(hand: Hand, entry: Entry) -> Hand:
    numbers = list(hand)
    if entry[3] in numbers:
        numbers.remove(entry[3])
    return tuple(sorted((*numbers, entry[0], entry[2]), key=value))


@lru_cache(maxsize=1 << 14)
def _put(hand: Hand, entry: Entry) -> Hand:
    numbers = list(hand)
    for number in (entry[0], entry[2]):
        if number in numbers:
            numbers.remove(number)
    return tuple(sorted((*numbers, entry[3]), key=value))
