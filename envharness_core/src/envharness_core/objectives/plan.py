"""Plans: sequential tests on the successes of one batch, which ask for no rollout that can't change their decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import exp, log

from attrs import frozen

from envharness_core.objective import Decision
from envharness_core.posterior import CELLS, log_likelihood

Rule = Callable[[int, int], Decision]
"""Says what to do after so many wins in so many rollouts, at one of a plan's looks."""

_ACCEPTED, _REFUSED = 1, 2


@frozen
class Looks:
    """When a gate looks at the numbers: after ``first`` rollouts, after each further ``batch``, and from ``last`` on.

    Args:
        first, last: the fewest and the most rollouts, ``1 <= first <= last``.
        batch: how many rollouts lie between two looks, at least 1.
    """

    first: int
    last: int
    batch: int

    def at(self, rollouts: int) -> bool:
        """Say whether there is a look after so many rollouts."""
        regular = rollouts >= self.first and (rollouts - self.first) % self.batch == 0
        return regular or rollouts >= self.last

    def after(self, rollouts: int) -> int:
        """Return after how many rollouts the next look is; the same number where none is left."""
        if rollouts < self.first:
            return self.first
        passed = (rollouts - self.first) // self.batch
        return max(rollouts, min(self.last, self.first + (passed + 1) * self.batch))


class Plan:
    """A sequential test: a rule, and the looks at which it is asked; at the last one it must decide.

    Curtailed, a plan decides as soon as all that could still happen leads to the same decision: it decides what
    the uncurtailed one would, earlier; only it accepts nothing without a rollout.

    Args:
        rule: the decision after (wins, rollouts); asked at looks, and beyond the last one.
        looks: when the rule is asked.
        curtail: whether to stop when the decision is certain.
    """

    def __init__(self, rule: Rule, looks: Looks, *, curtail: bool = True) -> None:
        self._rule = rule
        self._looks = looks
        self._curtail = curtail
        self._known: dict[tuple[int, int], Decision] = {}

    def decide(self, wins: int, rollouts: int) -> Decision:
        """Return the decision after so many wins in so many rollouts, or ``MORE``."""
        said = self._said(wins, rollouts)
        if said is not Decision.MORE or not self._curtail or rollouts >= self._looks.last:
            return said
        outcomes = self._outcomes[rollouts][wins]
        if outcomes == _ACCEPTED and rollouts:
            return Decision.ACCEPT
        return Decision.REFINE if outcomes == _REFUSED else Decision.MORE

    def certain(self, wins: int, rollouts: int) -> bool:
        """Say whether the decision is one of curtailment: made before the rule was asked, or asked again."""
        return (
            self._said(wins, rollouts) is Decision.MORE and self.decide(wins, rollouts) is not Decision.MORE
        )

    def wanted(self, wins: int, rollouts: int) -> int:
        """Return how many rollouts to ask for before anything can be decided; up to the next look if all is."""
        look = self._looks.after(rollouts)
        if not self._curtail or self.decide(wins, rollouts) is not Decision.MORE:
            return look - rollouts
        for further in range(1, look - rollouts):
            could = range(wins, wins + further + 1)
            if any(self.decide(won, rollouts + further) is not Decision.MORE for won in could):
                return further
        return look - rollouts

    @cached_property
    def log_acceptance(self) -> tuple[float, ...]:
        """For each cell of the success rate, the logarithm of the chance that the plan accepts."""
        terms = [
            (log(ways), log_likelihood(wins, rollouts)) for wins, rollouts, ways in self._ways_to_accept()
        ]
        return tuple(_log_sum([ways + cells[cell] for ways, cells in terms]) for cell in range(CELLS))

    def _ways_to_accept(self) -> Iterator[tuple[int, int, int]]:
        """Yield (wins, rollouts) at which the plan accepts, and in how many orders it gets there."""
        row = [1]
        for rollouts in range(self._looks.last + 1):
            after = [0] * (rollouts + 2)
            for wins, ways in enumerate(row):
                if not ways:
                    continue
                decision = self.decide(wins, rollouts)
                if decision is Decision.ACCEPT:
                    yield wins, rollouts, ways
                elif decision is Decision.MORE:
                    after[wins] += ways
                    after[wins + 1] += ways
            row = after

    def _said(self, wins: int, rollouts: int) -> Decision:
        if not self._looks.at(rollouts):
            return Decision.MORE
        if (wins, rollouts) not in self._known:
            self._known[wins, rollouts] = self._rule(wins, rollouts)
        return self._known[wins, rollouts]

    @cached_property
    def _outcomes(self) -> list[list[int]]:
        """For each (rollouts, wins), which decisions the plan may still come to, as a set of bits."""
        rows: list[list[int]] = []
        for rollouts in range(self._looks.last, -1, -1):
            row = []
            for wins in range(rollouts + 1):
                said = self._said(wins, rollouts)
                if said is Decision.MORE:
                    row.append(rows[-1][wins] | rows[-1][wins + 1])
                else:
                    row.append(_ACCEPTED if said is Decision.ACCEPT else _REFUSED)
            rows.append(row)
        return rows[::-1]


def _log_sum(logs: list[float]) -> float:
    if not logs:
        return -1e9
    most = max(logs)
    return most + log(sum(exp(value - most) for value in logs))
