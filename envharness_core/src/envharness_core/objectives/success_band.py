"""Success band: a success rate that is neither hopeless nor a matter of course."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen, validators

from envharness_core.episode import Episode
from envharness_core.objective import Decision, Direction, Judgement, Objective
from envharness_core.posterior import band_posterior

_SHARE = [validators.ge(0.0), validators.le(1.0)]


@frozen
class SuccessBandConfig:
    """The band, and how sure the gate has to be.

    Args:
        low, high: the success rates that are wanted, inclusive, ``0 <= low < high <= 1``.
        prior: both parameters of the rate's Beta prior.
        accept: the posterior probability of the band at which a candidate is accepted.
        reject: the one at which it is given up.
        min_rollouts: no verdict before so many graded rollouts.
        max_rollouts: a candidate that is undecided then is given up.
        batch: how many rollouts are asked for at a time in between.
        confirm_rollouts: fresh rollouts that confirm an accepted candidate; 0 for none.
        confirm: the posterior probability, over the attempt and its confirmation together, below which the
            confirmation refuses.

    Source: by simulation, the defaults of prior, accept, reject and max_rollouts accept a true rate of 0.2 or 0.8 in
    a fifth of tasks over five tries, where a point estimate of five rollouts accepts it in three quarters.
    """

    low: float = field(default=0.4, validator=_SHARE)
    high: float = field(default=0.6, validator=_SHARE)
    prior: float = field(default=0.3, validator=validators.gt(0))
    accept: float = field(default=0.44, validator=_SHARE)
    reject: float = field(default=0.12, validator=_SHARE)
    min_rollouts: int = field(default=6, validator=validators.ge(1))
    max_rollouts: int = field(default=20, validator=validators.ge(1))
    batch: int = field(default=2, validator=validators.ge(1))
    confirm_rollouts: int = field(default=10, validator=validators.ge(0))
    confirm: float = field(default=0.44, validator=_SHARE)

    def __attrs_post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low must be below high: {self.low} >= {self.high}")
        if self.reject >= self.accept:
            raise ValueError(f"reject must be below accept: {self.reject} >= {self.accept}")
        if self.min_rollouts > self.max_rollouts:
            raise ValueError("min_rollouts must not be above max_rollouts")


class SuccessBand(Objective[SuccessBandConfig]):
    """Accepts a candidate whose success rate is likely to lie in [low, high]."""

    def __init__(self, config: SuccessBandConfig) -> None:
        super().__init__(config)
        self.band = (config.low, config.high)
        self.summary = f"a success rate between {config.low:g} and {config.high:g}"

    def judge(self, baseline: Sequence[Episode], attempt: Sequence[Episode]) -> Judgement:
        config = self.config
        rollouts, inside, direction = len(attempt), self._inside(attempt), self._direction(attempt)
        reason = self._reason(attempt, inside)
        if rollouts < config.min_rollouts:
            return Judgement(Decision.MORE, direction, inside, reason, config.min_rollouts - rollouts)
        wanted = min(config.batch, config.max_rollouts - rollouts)
        if inside >= config.accept:
            return Judgement(Decision.ACCEPT, "leave", inside, reason, wanted)
        if inside <= config.reject:
            return Judgement(Decision.REFINE, direction, inside, reason)
        if rollouts >= config.max_rollouts:
            return Judgement(Decision.REFINE, direction, inside, f"undecided: {reason}")
        return Judgement(Decision.MORE, direction, inside, reason, wanted)

    def confirm(
        self, baseline: Sequence[Episode], attempt: Sequence[Episode], confirmation: Sequence[Episode]
    ) -> Judgement:
        config = self.config
        missing = config.confirm_rollouts - len(confirmation)
        together = [*attempt, *confirmation]
        inside, direction = self._inside(together), self._direction(together)
        reason = f"with confirmation, {self._reason(together, inside)}"
        if missing > 0:
            return Judgement(Decision.MORE, direction, inside, reason, missing)
        if inside >= config.confirm:
            return Judgement(Decision.ACCEPT, "leave", inside, reason, config.batch)
        return Judgement(Decision.REFINE, direction, inside, reason)

    def _inside(self, episodes: Sequence[Episode]) -> float:
        wins = sum(episode.success for episode in episodes)
        return band_posterior(wins, len(episodes), self.config.low, self.config.high, self.config.prior)

    def _direction(self, episodes: Sequence[Episode]) -> Direction:
        wins = sum(episode.success for episode in episodes)
        middle = (self.config.low + self.config.high) / 2
        return "harden" if wins > middle * len(episodes) else "scaffold"

    def _reason(self, episodes: Sequence[Episode], inside: float) -> str:
        wins = sum(episode.success for episode in episodes)
        return (
            f"{wins} of {len(episodes)}: {inside:.2f} likely in [{self.config.low:g}, {self.config.high:g}]"
        )
