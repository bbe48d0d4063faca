"""Rate gates: what all objectives about a success rate share, so that each states only which rates it wants.

A candidate is judged sequentially by the posterior probability that its rate is a wanted one. An accepted one is judged
again on fresh rollouts, and there its own attempt isn't taken at face value: it was tried among others and picked
because it looked good (the winner's curse). What it says of a rate is its likelihood divided by the chance that a
candidate of that rate is accepted at all, so how many were tried before it doesn't matter, and a lucky streak that the
gate would let through at any rate counts for nothing. What a designer that is stricter than the gate picked, the gate
doesn't know.

Source: Zollner and Pritchard (2007) and Ghosh, Zou and Wright (2008) for the likelihood conditional on selection.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from envharness_core.episode import Episode
from envharness_core.objective import Decision, Direction, Judgement, Objective
from envharness_core.objectives.gate import GateConfig
from envharness_core.objectives.plan import Plan
from envharness_core.posterior import CELLS, MIDDLES, cell_posterior, log_likelihood

_ROUNDING = 1e-9

GateConfigT = TypeVar("GateConfigT", bound=GateConfig)


class Aim:
    """What is wanted of a candidate's rate beside one baseline, and the plan that finds out whether it has it.

    Args:
        shares: for each cell of the rate, how far rates in it are wanted, in [0, 1].
        plan: decides on counts.
    """

    def __init__(self, shares: Sequence[float], plan: Plan) -> None:
        self.shares = tuple(shares)
        self.plan = plan
        wanted = sum(self.shares)
        pairs = zip(self.shares, MIDDLES, strict=True)
        self.middle = sum(share * rate for share, rate in pairs) / wanted if wanted else 0.5
        """Where the wanted rates lie, on average."""
        self.confirming: dict[tuple[int, int], tuple[bool, ...]] = {}
        """By an attempt's (wins, rollouts): whether so many wins in a whole confirmation confirm it."""


class RateGate(Objective[GateConfigT]):
    """An objective about one success rate; a subclass says which rates it wants, and in which words.

    It counts the rollouts' successes and nothing else, so their order doesn't matter.
    """

    def __init__(self, config: GateConfigT) -> None:
        super().__init__(config)
        self._aims: dict[tuple[int, int], Aim] = {}

    @abstractmethod
    def _shares(self, baseline: tuple[int, int]) -> Sequence[float]:
        """Return how far each cell of the candidate's rate is wanted, beside a baseline's (wins, rollouts)."""

    @abstractmethod
    def _says(self, baseline: tuple[int, int], counted: str, likely: float) -> str:
        """Return the numbers in a sentence, of which ``counted`` are the rollouts'."""

    def judge(self, baseline: Sequence[Episode], attempt: Sequence[Episode]) -> Judgement:
        config, (wins, rollouts) = self.config, _counts(attempt)
        aim = self._aim(_counts(baseline))
        plan, likely = aim.plan, self._likely(aim, wins, rollouts)
        decision = plan.decide(wins, rollouts)
        reason = self._says(_counts(baseline), f"{wins} of {rollouts}", likely)
        if decision is Decision.MORE:
            more = plan.wanted(wins, rollouts)
            return Judgement(decision, _direction(aim, wins, rollouts), likely, reason, more)
        if plan.certain(wins, rollouts):
            reason += "; further rollouts couldn't change that"
        if decision is Decision.ACCEPT:
            spare = min(config.batch, max(0, config.max_rollouts - rollouts))
            return Judgement(decision, "leave", likely, reason, spare)
        if rollouts >= config.max_rollouts and self._is_open(likely):
            reason = f"undecided: {reason}"
        return Judgement(decision, _direction(aim, wins, rollouts), likely, reason)

    def confirm(
        self, baseline: Sequence[Episode], attempt: Sequence[Episode], confirmation: Sequence[Episode]
    ) -> Judgement:
        config, (wins, rollouts), tried = self.config, _counts(confirmation), _counts(attempt)
        missing = config.confirm_rollouts - rollouts
        if not tried[1]:
            return Judgement(Decision.MORE, "leave", 0.0, "nothing to confirm", max(0, missing))
        if not config.confirm_rollouts:
            return self.judge(baseline, attempt)
        aim = self._aim(_counts(baseline))
        likely = self._confirmed(aim, tried, wins, rollouts)
        counted = f"{tried[0]} of {tried[1]}, picked for it, then {wins} of {rollouts} fresh"
        reason = self._says(_counts(baseline), counted, likely)
        direction = _direction(aim, tried[0] + wins, tried[1] + rollouts)
        if missing <= 0:
            if likely >= config.confirm:
                return Judgement(Decision.ACCEPT, "leave", likely, reason, config.batch)
            return Judgement(Decision.REFINE, direction, likely, reason)
        if self._lost(aim, tried, wins, rollouts):
            reason += "; further rollouts couldn't change that"
            return Judgement(Decision.REFINE, direction, likely, reason)
        return Judgement(Decision.MORE, direction, likely, reason, self._step(aim, tried, wins, rollouts))

    def _aim(self, baseline: tuple[int, int]) -> Aim:
        key = self._aim_key(baseline)
        if key not in self._aims:
            shares = tuple(self._shares(key))
            self._aims[key] = Aim(shares, self._plan(shares))
        return self._aims[key]

    def _aim_key(self, baseline: tuple[int, int]) -> tuple[int, int]:
        """Return what of a baseline decides which rates are wanted; (0, 0) where nothing does."""
        return baseline

    def _plan(self, shares: tuple[float, ...]) -> Plan:
        """Return the plan for what is wanted: by default, by the posterior's two thresholds."""
        config = self.config

        def rule(wins: int, rollouts: int) -> Decision:
            likely = self._probability(shares, wins, rollouts)
            if likely >= config.accept and self._proven(wins):
                return Decision.ACCEPT
            undecided = likely > config.reject and rollouts < config.max_rollouts
            return Decision.MORE if undecided else Decision.REFINE

        return Plan(rule, config.looks, curtail=config.curtail)

    def _proven(self, wins: int) -> bool:
        """Say whether what an acceptance needs beside the probability has been seen."""
        return True

    def _is_open(self, likely: float) -> bool:
        """Say whether a candidate that is given up was neither accepted nor refused by its numbers."""
        return likely > self.config.reject

    def _likely(self, aim: Aim, wins: int, rollouts: int) -> float:
        return self._probability(aim.shares, wins, rollouts)

    def _probability(self, shares: tuple[float, ...], wins: int, rollouts: int) -> float:
        """Return the posterior probability that the rate is a wanted one."""
        return _wanted(shares, cell_posterior(wins, rollouts, self.config.prior))

    def _confirmed(self, aim: Aim, tried: tuple[int, int], wins: int, rollouts: int) -> float:
        """Return the posterior probability after a confirmation, of an attempt that was picked for its numbers."""
        pairs = zip(log_likelihood(*tried), aim.plan.log_acceptance, strict=True)
        evidence = [likelihood - accepted for likelihood, accepted in pairs]
        return _wanted(aim.shares, cell_posterior(wins, rollouts, self.config.prior, evidence))

    def _lost(self, aim: Aim, tried: tuple[int, int], wins: int, rollouts: int) -> bool:
        """Say whether no rest of a confirmation could confirm; one that is won goes on: it is what is kept for."""
        total = self.config.confirm_rollouts
        if tried not in aim.confirming:
            likely = (self._confirmed(aim, tried, won, total) for won in range(total + 1))
            aim.confirming[tried] = tuple(probability >= self.config.confirm for probability in likely)
        ends = slice(wins, wins + total - rollouts + 1)
        return self.config.curtail and not any(aim.confirming[tried][ends])

    def _step(self, aim: Aim, tried: tuple[int, int], wins: int, rollouts: int) -> int:
        """Return how many rollouts of a confirmation to ask for before it can be lost, or is complete."""
        missing = self.config.confirm_rollouts - rollouts
        for further in range(1, missing):
            if any(self._lost(aim, tried, wins + won, rollouts + further) for won in range(further + 1)):
                return further
        return missing


@lru_cache(maxsize=256)
def band_shares(low: float, high: float) -> tuple[float, ...]:
    """Return which share of each cell lies in [low, high]."""
    edges = [(cell / CELLS, (cell + 1) / CELLS) for cell in range(CELLS)]
    return tuple(max(0.0, min(high, upper) - max(low, lower)) * CELLS for lower, upper in edges)


def _wanted(shares: Sequence[float], masses: Sequence[float]) -> float:
    return min(1.0, sum(share * mass for share, mass in zip(shares, masses, strict=True)))


def _counts(episodes: Sequence[Episode]) -> tuple[int, int]:
    return sum(episode.success for episode in episodes), len(episodes)


def _direction(aim: Aim, wins: int, rollouts: int) -> Direction:
    return "harden" if wins > aim.middle * rollouts + _ROUNDING else "scaffold"
