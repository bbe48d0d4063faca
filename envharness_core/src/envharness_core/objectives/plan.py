"""Plans: sequential tests on the successes of one batch, which ask for no rollout that can't change their decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from math import exp, log

from envharness_core.objective import Decision
from envharness_core.posterior import CELLS, log_likelihood

Rule = Callable[[int, int], Decision]
"""Says what to do after so many wins in so many rollouts, at one of a plan's looks."""

_ACCEPTED, _REFUSED = 1, 2


class Plan:
    """A sequential test: a rule, and after how many rollouts it is asked.

    Looks are after ``first`` rollouts, then after each further ``batch``, and after ``last``, where the rule must
    decide. Curtailed, a plan decides as soon as all that could still happen leads to the same decision: it decides what
    the uncurtailed one would, earlier; only it accepts nothing without a rollout.

    Args:
        rule: the decision after (wins, rollouts); asked at looks, and beyond the last one.
        first, last: the fewest and the most rollouts, ``1 <= first <= last``.
        batch: how many rollouts lie between two looks, at least 1.
        curtail: whether to stop when the decision is certain.
    """

    def __init__(self, rule: Rule, first: int, last: int, batch: int, *, curtail: bool = True) -> None:
        self._rule = rule
        self._first, self._last, self._batch = first, last, batch
        self._curtail = curtail
        self._known: dict[tuple[int, int], Decision] = {}

    def decide(self, wins: int, rollouts: int) -> Decision:
        """Return the decision after so many wins in so many rollouts, or ``MORE``."""
        said = self._said(wins, rollouts)
        if said is not Decision.MORE or not self._curtail or rollouts >= self._last:
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
        look = self._next_look(rollouts)
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
        for rollouts in range(self._last + 1):
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
        look = rollouts >= self._last or (
            rollouts >= self._first and (rollouts - self._first) % self._batch == 0
        )
        if not look:
            return Decision.MORE
        if (wins, rollouts) not in self._known:
            self._known[wins, rollouts] = self._rule(wins, rollouts)
        return self._known[wins, rollouts]

    @cached_property
    def _outcomes(self) -> list[list[int]]:
        """For each (rollouts, wins), which decisions the plan may still come to, as a set of bits."""
        rows: list[list[int]] = []
        for rollouts in range(self._last, -1, -1):
            row = []
            for wins in range(rollouts + 1):
                said = self._said(wins, rollouts)
                if said is Decision.MORE:
                    row.append(rows[-1][wins] | rows[-1][wins + 1])
                else:
                    row.append(_ACCEPTED if said is Decision.ACCEPT else _REFUSED)
            rows.append(row)
        return rows[::-1]

    def _next_look(self, rollouts: int) -> int:
        if rollouts < self._first:
            return self._first
        passed = (rollouts - self._first) // self._batch
        return max(rollouts, min(self._last, self._first + (passed + 1) * self._batch))


def _log_sum(logs: list[float]) -> float:
    if not logs:
        return -1e9
    most = max(logs)
    return most + log(sum(exp(value - most) for value in logs))
