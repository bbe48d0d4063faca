"""Catalog: picks parametrised layers and searches their magnitude, without a model of language.

It pools the evidence of everything that was tried on a task in a logistic model of the success rate over its knobs,
whose prior it learns from the tasks of finished waves; it proposes by Thompson sampling, and is stricter than the gate
where the pooled evidence speaks against a candidate, or for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, cast

from attrs import field, frozen, validators

from envharness_core.designer import Attempt, Candidate, Designer, Diagnosis, Evidence
from envharness_core.designers.knobs import PREFIXES, Bench, Knobs, describe
from envharness_core.designers.rate_model import Fit, Gaussian, Sample, draw, fit, learned_prior, sigmoid
from envharness_core.designers.wins import all_ways, avoidable, choices, histories, shortest_way, spare_tools
from envharness_core.episode import Episode
from envharness_core.jsondata import Json
from envharness_core.objective import Decision, Direction
from envharness_core.seeds import derive

_SHARE = [validators.ge(0.0), validators.le(1.0)]
_DEFAULT_BAND = (0.4, 0.6)
_SHORTLIST = 12
_ENOUGH = 24
"""Rollouts that must be left for exploring to be worth more than exploiting."""
_FEWEST = 9
"""Rollouts beside its confirmation that a candidate needs for a fair chance."""
_LEARNT = 50
"""Rollouts after which the pooled evidence counts as good as it gets."""


@frozen
class CatalogConfig:
    """How sure ``catalog`` has to be.

    Args:
        spread: how far a candidate's logit may be off the regression, as a standard deviation.
        first, last: the pooled probability of the band that an attempt needs for its confirmation, when few rollouts
            were spent and when many were.
        confirmed: the one that a confirmed candidate needs, unless the budget is spent.
        luck: how much of that probability a fault rate of 1 is worth avoiding: luck teaches less than rules do.
        better: by which factor another candidate must look better for one to be given up early.
        weight: how many tasks the built-in prior counts for.
        rounds: iterations of learning the prior.

    Source: tuned on Toy24 against ``solver``.
    """

    spread: float = field(default=0.18, validator=validators.gt(0.0))
    first: float = field(default=0.62, validator=_SHARE)
    last: float = field(default=0.45, validator=_SHARE)
    confirmed: float = field(default=0.85, validator=_SHARE)
    luck: float = field(default=0.35, validator=validators.ge(0.0))
    better: float = field(default=1.25, validator=validators.ge(1.0))
    weight: float = field(default=2.0, validator=validators.gt(0.0))
    rounds: int = field(default=12, validator=validators.ge(1))


class Catalog(Designer[CatalogConfig]):
    """Scaffolds by a prefix of a winning trajectory; hardens by faults, budgets, closed ways and hidden history."""

    def __init__(self, config: CatalogConfig) -> None:
        super().__init__(config)
        self._benches: dict[str, Bench] = {}  # of the tasks at hand; recomputed where missing
        self._priors: dict[int, Gaussian] = {}

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        bench = self._bench(evidence)
        wins = [episode for episode in evidence.baseline if episode.success]
        rate = len(wins) / len(evidence.baseline)
        low, high = evidence.band or _DEFAULT_BAND
        steps = [episode.steps for episode in wins] or [evidence.limits.steps]
        ways = f"the shortest takes {len(bench.way)} actions" if bench.way else "no win was seen"
        relied = [
            bench.choices[i] for i in range(len(bench.choices)) if bench.way and i not in bench.avoidable
        ]
        return Diagnosis(
            flaw="loses its way" if rate < low else "isn't stretched" if rate > high else "none",
            evidence=f"{len(wins)} of {len(evidence.baseline)} baseline rollouts succeed; {ways}",
            direction=_direction(rate, low, high),
            boundary=f"wins take {sum(steps) / len(steps):.1f} steps on average",
            headroom=f"{evidence.limits.steps} steps are allowed",
            reliance=", ".join(f"{tool} with {name} {value!r}" for tool, name, value in relied)
            or "nothing in particular",
            notes={"samples": _told_by_baseline(evidence.baseline, bench)},
        )

    def propose(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]
    ) -> Candidate | None:
        bench = self._bench(evidence)
        left = _untried(bench, history)
        if not left or evidence.budget < _FEWEST + evidence.reserve:
            return None
        model = self._model(evidence, diagnosis, history)
        if evidence.budget > _ENOUGH:
            random = Random(derive("catalog", evidence.seed, len(history)))
            left = _sampled(model, bench, left, random, evidence.band or _DEFAULT_BAND, self.config.luck)
        knobs = max(left, key=lambda item: self._worth(model, bench, item, evidence))
        notes: Any = {
            "knobs": knobs.key,
            "features": list(bench.features(knobs)),
            "ceiling": bench.ceiling(knobs),
        }
        return Candidate(bench.layers(knobs), describe(bench, knobs), notes)

    def review(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt], attempt: Attempt
    ) -> Decision:
        bench = self._bench(evidence)
        model = self._model(evidence, diagnosis, [*history, attempt])
        key, sample = _observed(attempt, bench)
        inside = model.in_band(key, sample.features, evidence.band or _DEFAULT_BAND, sample.ceiling)
        seen = [*history, attempt]
        wanted = self.config.confirmed if attempt.confirmation else self._wanted(evidence, seen)
        if inside >= wanted:
            return Decision.ACCEPT
        another = evidence.budget >= evidence.reserve + _FEWEST
        if another and self._another_is_better(model, bench, evidence, seen, inside):
            return Decision.REFINE
        if attempt.confirmation:
            return Decision.MORE if evidence.budget > 0 else Decision.ACCEPT
        return Decision.MORE if another else Decision.ACCEPT

    def _another_is_better(
        self, model: Fit, bench: Bench, evidence: Evidence, history: Sequence[Attempt], inside: float
    ) -> bool:
        others = _untried(bench, history)
        best = max((self._worth(model, bench, knobs, evidence) for knobs in others), default=0.0)
        return best > self.config.better * inside

    def _wanted(self, evidence: Evidence, history: Sequence[Attempt]) -> float:
        spent = len(evidence.baseline) + sum(len(item.episodes) + len(item.confirmation) for item in history)
        return max(
            self.config.last,
            self.config.first - (self.config.first - self.config.last) * spent / _LEARNT,
        )

    def _worth(self, model: Fit, bench: Bench, knobs: Knobs, evidence: Evidence) -> float:
        band = evidence.band or _DEFAULT_BAND
        inside = model.in_band(knobs.key, bench.features(knobs), band, bench.ceiling(knobs))
        return inside - _cost(knobs, self.config.luck)

    def _model(self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]) -> Fit:
        bench = self._bench(evidence)
        here = _samples(diagnosis, history, bench)
        return fit(self._prior(evidence, bench), here, self.config.spread)

    def _prior(self, evidence: Evidence, bench: Bench) -> Gaussian:
        """Return what finished tasks teach; the same for all tasks of a wave, so computed once for it."""
        count = len(evidence.earlier)
        if count not in self._priors:
            tasks = [
                _samples(task.diagnosis, task.attempts, bench) for task in evidence.earlier if task.diagnosis
            ]
            self._priors[count] = learned_prior(
                base_prior(len(bench.choices)),
                [samples for samples in tasks if samples],
                spread=self.config.spread,
                weight=self.config.weight,
                rounds=self.config.rounds,
            )
        return self._priors[count]

    def _bench(self, evidence: Evidence) -> Bench:
        key = f"{evidence.task.id} {evidence.seed}"
        if key not in self._benches:
            if len(self._benches) > 256:
                self._benches.clear()
            self._benches[key] = make_bench(evidence)
        return self._benches[key]


def _untried(bench: Bench, history: Sequence[Attempt]) -> list[Knobs]:
    """Return the settings that may still be proposed; leaving the task unchanged is no proposal."""
    tried = {Knobs().key, *(str(attempt.candidate.notes.get("knobs")) for attempt in history)}
    return [knobs for knobs in bench.settings() if knobs.key not in tried]


def make_bench(evidence: Evidence) -> Bench:
    """Read off the trajectories what the knobs can turn on a task."""
    trajectories = [evidence.trajectory(episode) for episode in evidence.baseline]
    won = [
        evidence.trajectory(item) for item in (*evidence.baseline, *evidence.demonstrations) if item.success
    ]
    history = histories(trajectories)
    way = shortest_way(won, history)
    ways = all_ways(won, history)
    all_choices = choices(evidence.tools)
    return Bench(
        way=way,
        spare=spare_tools(way, trajectories) if way else (),
        history=history,
        choices=all_choices,
        avoidable=tuple(i for i, choice in enumerate(all_choices) if avoidable(ways, choice)),
        steps=evidence.limits.steps,
    )


def base_prior(choices: int) -> Gaussian:
    """Return what is believed before any task was seen: what helps and what hurts, on the logit of a success rate."""
    intercept, levels = (2.0, 2.0), [(1.5, 1.0), (1.0, 1.0)]
    rate, tight, spare, forget, closed = (0.0, 0.5), (-1.2, 0.6), (-1.0, 0.6), (-0.3, 0.4), (-1.5, 1.5)
    pairs = [intercept, *levels[:PREFIXES], rate, tight, spare, forget, *[closed] * choices]
    return Gaussian.independent([mean for mean, _ in pairs], [deviation for _, deviation in pairs])


def _told_by_baseline(baseline: Sequence[Episode], bench: Bench) -> list[Json]:
    """Return what the baseline says of the unchanged task, and of the tightest budget too.

    A budget shows only when it ends an episode: a win within it would have been one under it, and no other rollout.
    """
    settings = [Knobs(), Knobs(slack=0)] if bench.way else [Knobs()]
    told: list[Json] = []
    for knobs in settings:
        wins = sum(episode.success and episode.steps <= bench.budget(knobs) for episode in baseline)
        told.append(
            {"knobs": knobs.key, "features": list(bench.features(knobs)), "wins": wins, "n": len(baseline)}
        )
    return told


def _samples(diagnosis: Diagnosis, history: Sequence[Attempt], bench: Bench) -> Mapping[str, Sample]:
    """Pool all that is known of a task by the knobs' setting."""
    told = cast("Any", diagnosis.notes["samples"])
    pairs = [(item["knobs"], Sample(tuple(item["features"]), item["wins"], item["n"])) for item in told]
    pairs += [_observed(attempt, bench) for attempt in history]
    counted: dict[str, Sample] = {}
    for key, sample in pairs:
        known = counted.get(key, Sample(sample.features, 0, 0, sample.ceiling))
        counted[key] = Sample(
            sample.features, known.successes + sample.successes, known.trials + sample.trials, sample.ceiling
        )
    return {key: sample for key, sample in counted.items() if sample.trials}


def _observed(attempt: Attempt, bench: Bench) -> tuple[str, Sample]:
    """Return an attempt as a sample; one without notes is the unchanged task."""
    episodes = (*attempt.episodes, *attempt.confirmation)
    wins, count = sum(episode.success for episode in episodes), len(episodes)
    notes = cast("Any", attempt.candidate.notes)
    if not notes:
        return Knobs().key, Sample(bench.features(Knobs()), wins, count)
    return notes["knobs"], Sample(tuple(notes["features"]), wins, count, notes["ceiling"])


def _sampled(
    model: Fit,
    bench: Bench,
    settings: Sequence[Knobs],
    random: Random,
    band: tuple[float, float],
    luck: float,
) -> list[Knobs]:
    """Return the settings that would come closest to the band's middle if one draw of the coefficients were true."""
    drawn = draw(model.coefficients, random)
    middle = (band[0] + band[1]) / 2

    def off(knobs: Knobs) -> float:
        value = sum(x * y for x, y in zip(bench.features(knobs), drawn, strict=True))
        return 4 * abs(bench.ceiling(knobs) * sigmoid(value) - middle) + _cost(knobs, luck)

    return sorted(settings, key=off)[:_SHORTLIST]


def _cost(knobs: Knobs, luck: float) -> float:
    """Return how much a setting is worth avoiding: luck most, then whatever changes more of the task."""
    structure = 0.01 * ((knobs.spare is not None) + knobs.forget + (knobs.slack is not None))
    return luck * knobs.rate + 0.02 * knobs.prefix + 0.02 * (knobs.closed is not None) + structure


def _direction(rate: float, low: float, high: float) -> Direction:
    if low <= rate <= high:
        return "leave"
    return "scaffold" if rate < low else "harden"
