"""What the gates accept and what they spend, exactly, over candidates whose true success rate is known.

The shipped objectives are asked, as a campaign asks them, about every count of successes that can come up; the chances
of these counts are binomial. Nothing is sampled, so the figures are exact and the same on every machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import comb
from typing import Any, TypeAlias

from attrs import frozen

from envharness_core.data import Verdict
from envharness_core.episode import Episode
from envharness_core.jsondata import JsonObject
from envharness_core.objective import Decision, Judgement, Objective
from envharness_core.objectives.autonomous import Autonomous, AutonomousConfig
from envharness_core.objectives.red_team import RedTeam, RedTeamConfig
from envharness_core.objectives.success_band import SuccessBand, SuccessBandConfig
from envharness_core.objectives.weakness import Weakness, WeaknessConfig
from envharness_core.outcome import Outcome
from envharness_core.posterior import band_posterior
from figures import Figure, figures_json, show

RATES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9)
"""The paper's setting: true rates, a band, and attempts a task."""
LOW, HIGH = 0.4, 0.6
TRIES = 5
OUTSIDE, MIDDLE = (0.2, 0.8), 0.5

Counts: TypeAlias = tuple[int, int]
"""Successes, and rollouts."""
Ask: TypeAlias = Callable[[Counts], Judgement]

GATES: Mapping[str, SuccessBandConfig] = {
    "paper": SuccessBandConfig(gate="fixed", curtail=False, low=LOW, high=HIGH),
    "fixed": SuccessBandConfig(gate="fixed", low=LOW, high=HIGH),
    "sequential": SuccessBandConfig(low=LOW, high=HIGH),
}
"""The point estimate of five rollouts as published, the same curtailed, and the default."""


@frozen
class Row:
    """One gate on candidates of one true rate.

    Args:
        rate: the true rate of every candidate.
        accepted: the chance that a candidate is accepted.
        rollouts: its rollouts on average.
        confirmed: the chance that it is accepted and confirmed.
        confirming: the rollouts of its confirmation on average, where there is one.
        shown: the share of successes that accepted candidates show on average.
        pooled: the same of confirmed ones, attempt and confirmation together.
        fresh: the same of confirmed ones, in the confirmation alone.
        face_value: the probability of the band that attempt and confirmation would state together, if the attempt
            counted at face value, on average over confirmed candidates; None for other objectives.
        stated: the one that the confirmation does state.
    """

    rate: float
    accepted: float
    rollouts: float
    confirmed: float
    confirming: float
    shown: float
    pooled: float
    fresh: float
    face_value: float | None
    stated: float

    @property
    def tries_accept(self) -> float:
        """The chance that one of five candidates is accepted."""
        return 1 - (1 - self.accepted) ** TRIES

    @property
    def tries_confirm(self) -> float:
        """The chance that one of five candidates is accepted and confirmed."""
        return 1 - (1 - self.confirmed) ** TRIES

    @property
    def tries_rollouts(self) -> float:
        """Rollouts on average until the first of five candidates is accepted; confirmations not counted."""
        return self.rollouts * sum((1 - self.accepted) ** tried for tried in range(TRIES))

    @property
    def tries_confirming(self) -> float:
        """Rollouts of confirmations on average until the first of five candidates is confirmed."""
        expected = self.accepted * self.confirming
        return expected * sum((1 - self.confirmed) ** tried for tried in range(TRIES))


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    options = parser.parse_args(arguments)
    gates = {name: [row(SuccessBand(config), rate) for rate in RATES] for name, config in GATES.items()}
    targets = figures(gates)
    others = dict(other_objectives())
    if options.as_json:
        tables = {**gates, **others}
        print(json.dumps({"figures": figures_json(targets), "gates": tables_json(tables)}, indent=2))
        return
    for name, rows in gates.items():
        print_gate(name, rows)
    print_bias(gates["sequential"])
    for name, rows in others.items():
        print_objective(name, rows)
    print("\nsequential, five tries")
    show(targets)


def figures(gates: Mapping[str, Sequence[Row]]) -> list[Figure]:
    """Return the figures that have a target, all of the default gate over five tries."""
    default = {item.rate: item for item in gates["sequential"]}
    spent = mean_rollouts(gates["sequential"]) / mean_rollouts(gates["paper"])
    return [
        Figure("accepts a true 0.2 or 0.8", max(default[rate].tries_accept for rate in OUTSIDE), "", 0.25),
        Figure("accepts a true 0.5", default[MIDDLE].tries_accept, "", 0.9, bound=">="),
        Figure("mean rollouts", spent, "x the paper's", 1.25),
    ]


def mean_rollouts(rows: Sequence[Row]) -> float:
    """Return the rollouts over five tries, averaged over the true rates."""
    return sum(item.tries_rollouts for item in rows) / len(rows)


def other_objectives() -> Iterator[tuple[str, list[Row]]]:
    """Yield the other objectives about a rate, beside baselines of five rollouts."""
    for wins in (4, 5):
        weakness = Weakness(WeaknessConfig(sentence="any"))
        yield f"weakness, baseline {wins} of 5", [row(weakness, rate, (wins, 5)) for rate in RATES]
    for wins in (1, 3, 5):
        autonomous = Autonomous(AutonomousConfig())
        yield f"autonomous, baseline {wins} of 5", [row(autonomous, rate, (wins, 5)) for rate in RATES]
    yield "red_team", [row(RedTeam(RedTeamConfig()), rate) for rate in (0.0, 0.02, *RATES[:-2])]


def row(objective: Objective[Any], rate: float, baseline: Counts = (5, 5)) -> Row:
    """Return what an objective does with candidates of a true rate."""
    judge, confirm = asked(objective, baseline)
    ends, rollouts = walked(judge, rate)
    accepted = {
        counts: chance for counts, chance in ends.items() if judge(counts).decision is Decision.ACCEPT
    }
    confirming = 0.0
    kept: dict[tuple[Counts, Counts], float] = {}
    for counts, chance in accepted.items():
        asks = confirm(counts)
        fresh, spent = walked(asks, rate)
        confirming += chance * spent
        for more, share in fresh.items():
            if asks(more).decision is Decision.ACCEPT:
                kept[counts, more] = chance * share
    pooled = {(w + v, n + m): 0.0 for (w, n), (v, m) in kept}
    for (w, n), (v, m) in kept:
        pooled[w + v, n + m] += kept[(w, n), (v, m)]
    fresh_alone = [(more, chance) for (_, more), chance in kept.items()]
    stated = [(confirm(counts)(more).score, chance) for (counts, more), chance in kept.items()]
    band = isinstance(objective, SuccessBand)
    return Row(
        rate=rate,
        accepted=sum(accepted.values()),
        rollouts=rollouts,
        confirmed=sum(kept.values()),
        confirming=_over(confirming, sum(accepted.values())),
        shown=_mean([(_share(counts), chance) for counts, chance in accepted.items()]),
        pooled=_mean([(_share(counts), chance) for counts, chance in pooled.items()]),
        fresh=_mean([(_share(counts), chance) for counts, chance in fresh_alone]),
        face_value=_mean([(_at_face_value(*c), chance) for c, chance in pooled.items()]) if band else None,
        stated=_mean(stated),
    )


def asked(objective: Objective[Any], baseline: Counts) -> tuple[Ask, Callable[[Counts], Ask]]:
    """Return an objective's two questions on counts; each is answered by the shipped code, once."""
    before = episodes(baseline)

    @cache
    def judge(counts: Counts) -> Judgement:
        return objective.judge(before, episodes(counts))

    @cache
    def confirm(attempt: Counts) -> Ask:
        return cache(lambda counts: objective.confirm(before, episodes(attempt), episodes(counts)))

    return judge, confirm


def walked(ask: Ask, rate: float) -> tuple[dict[Counts, float], float]:
    """Return the chance of each count at which a gate decides, and the rollouts until then on average.

    As in a campaign, as many rollouts are played as the gate asks for.
    """
    ends: dict[Counts, float] = {}
    waiting = {(0, 0): 1.0}
    while waiting:
        counts = min(
            waiting, key=lambda item: item[1]
        )  # in the order of rollouts, so that each comes up once
        chance, judgement = waiting.pop(counts), ask(counts)
        if judgement.decision is not Decision.MORE:
            ends[counts] = chance
            continue
        for won in range(judgement.rollouts + 1):
            lost = judgement.rollouts - won
            share = comb(judgement.rollouts, won) * rate**won * (1 - rate) ** lost
            after = (counts[0] + won, counts[1] + judgement.rollouts)
            waiting[after] = waiting.get(after, 0.0) + chance * share
    return ends, sum(chance * rollouts for (_, rollouts), chance in ends.items())


def episodes(counts: Counts) -> list[Episode]:
    """Return made-up episodes with such counts; the gates count, whatever the order."""
    wins, rollouts = counts
    return [
        Episode(
            str(index), "t", "s", index, Outcome.COMPLETED, Verdict(index < wins, float(index < wins)), 1, 0.0
        )
        for index in range(rollouts)
    ]


def print_gate(name: str, rows: Sequence[Row]) -> None:
    """Print what a gate accepts and spends."""
    print(f"\n{name}: accepted with a true rate in [{LOW:g}, {HIGH:g}] is right, elsewhere wrong")
    print(
        f"{'rate':>6}{'one try':>10}{'rollouts':>10}{'5 tries':>10}{'rollouts':>10}{'confirmed':>11}{'on top':>8}"
    )
    for item in rows:
        print(
            f"{item.rate:6g}{item.accepted:10.3f}{item.rollouts:10.1f}{item.tries_accept:10.3f}"
            f"{item.tries_rollouts:10.1f}{item.tries_confirm:11.3f}{item.tries_confirming:8.1f}"
        )
    confirming = sum(item.tries_confirming for item in rows) / len(rows)
    print(f"{'mean':>6}{'':30}{mean_rollouts(rows):10.2f}{'':11}{confirming:8.2f}")


def print_bias(rows: Sequence[Row]) -> None:
    """Print how good what was picked looks beside how good it is."""
    print("\nthe winner's curse, sequential: shares of successes, and probabilities of the band, on average")
    print(f"{'rate':>6}{'accepted':>10}{'pooled':>8}{'fresh':>8}{'face value':>12}{'stated':>8}")
    for item in rows:
        face = 0.0 if item.face_value is None else item.face_value
        print(
            f"{item.rate:6g}{item.shown:10.3f}{item.pooled:8.3f}{item.fresh:8.3f}{face:12.3f}{item.stated:8.3f}"
        )


def print_objective(name: str, rows: Sequence[Row]) -> None:
    """Print what another objective accepts and spends on one candidate."""
    print(f"\n{name}: one try")
    print(f"{'rate':>6}{'accepted':>10}{'rollouts':>10}{'confirmed':>11}")
    for item in rows:
        print(f"{item.rate:6g}{item.accepted:10.3f}{item.rollouts:10.1f}{item.confirmed:11.3f}")


def tables_json(tables: Mapping[str, Sequence[Row]]) -> JsonObject:
    """Return the tables as plain data."""
    return {name: [_row_json(item) for item in rows] for name, rows in tables.items()}


def _row_json(item: Row) -> JsonObject:
    return {
        "rate": item.rate,
        "one_try": {"accepted": item.accepted, "rollouts": item.rollouts, "confirmed": item.confirmed},
        "tries": {
            "accepted": item.tries_accept,
            "rollouts": item.tries_rollouts,
            "confirmed": item.tries_confirm,
            "confirming": item.tries_confirming,
        },
        "share": {"accepted": item.shown, "pooled": item.pooled, "fresh": item.fresh},
        "probability": {"face_value": item.face_value, "stated": item.stated},
    }


def _at_face_value(wins: int, rollouts: int) -> float:
    return band_posterior(wins, rollouts, LOW, HIGH, GATES["sequential"].prior)


def _share(counts: Counts) -> float:
    return counts[0] / counts[1]


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    return _over(sum(value * chance for value, chance in weighted), sum(chance for _, chance in weighted))


def _over(value: float, by: float) -> float:
    return value / by if by else 0.0


if __name__ == "__main__":
    main()
