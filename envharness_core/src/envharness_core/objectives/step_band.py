"""Step band: successes that are neither immediate nor endless."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen, validators

from envharness_core.episode import Episode
from envharness_core.objective import Decision, Direction, Judgement, Objective
from envharness_core.objectives.gate import GateConfig
from envharness_core.posterior import beta_cdf


@frozen(kw_only=True)
class StepBandConfig(GateConfig):
    """The band of steps, and how sure the gate has to be.

    Args:
        low, high: the steps that are wanted, inclusive, ``1 <= low <= high``; the policy's actions in a successful
            rollout, blocked, failed and malformed ones included.
        min_wins: successes that a candidate needs, so that it can be solved; at least 1.

    The rest is as in ``GateConfig``. The prior is that of a success with too few, the wanted, or too many steps; the
    probabilities are those that the median is in the band, and the confirmation's rests on its own rollouts alone.
    """

    low: int = field(validator=validators.ge(1))
    high: int = field(validator=validators.ge(1))
    min_wins: int = field(default=3, validator=validators.ge(1))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.low > self.high:
            raise ValueError(f"low must not be above high: {self.low} > {self.high}")
        if self.min_wins > self.max_rollouts:
            raise ValueError(
                f"min_wins must not be above max_rollouts: {self.min_wins} > {self.max_rollouts}"
            )


@frozen
class Tally:
    """How many rollouts succeeded with too few, the wanted and too many steps, of how many in all."""

    below: int
    inside: int
    above: int
    rollouts: int

    @property
    def wins(self) -> int:
        """The successes."""
        return self.below + self.inside + self.above


class StepBand(Objective[StepBandConfig]):
    """Accepts a candidate whose successes take, in the median, a wanted number of steps.

    The median of a success's steps is in the band where neither more than half of all successes are below it nor more
    than half above it. What the rollouts say of either share is a Beta posterior, whatever the steps' distribution.
    """

    def __init__(self, config: StepBandConfig) -> None:
        super().__init__(config)
        steps = f"{config.low} to {config.high} steps in the median"
        self.summary = f"successes that take {steps}, at least {config.min_wins} of them"

    def judge(self, baseline: Sequence[Episode], attempt: Sequence[Episode]) -> Judgement:
        config, tally = self.config, self._tally(attempt)
        likely, direction = self._likely(tally), self._direction(tally)
        reason = self._says(tally, likely)
        at_look = config.looks.at(tally.rollouts)
        if at_look and likely >= config.accept and tally.wins >= config.min_wins:
            spare = min(config.batch, max(0, config.max_rollouts - tally.rollouts))
            return Judgement(Decision.ACCEPT, "leave", likely, reason, spare)
        if at_look and (tally.wins > 0 and likely <= config.reject):
            return Judgement(Decision.REFINE, direction, likely, reason)
        if tally.rollouts >= config.max_rollouts:
            return Judgement(Decision.REFINE, direction, likely, f"undecided: {reason}")
        if config.curtail and not self._can_be_saved(tally, config.max_rollouts, config.accept):
            reason += "; further rollouts couldn't change that"
            return Judgement(Decision.REFINE, direction, likely, reason)
        return Judgement(
            Decision.MORE, direction, likely, reason, config.looks.after(tally.rollouts) - tally.rollouts
        )

    def confirm(
        self, baseline: Sequence[Episode], attempt: Sequence[Episode], confirmation: Sequence[Episode]
    ) -> Judgement:
        """Judge on the fresh rollouts alone: the attempt was picked for its own."""
        config, tally = self.config, self._tally(confirmation)
        missing = config.confirm_rollouts - tally.rollouts
        if attempt and not config.confirm_rollouts:
            return self.judge(baseline, attempt)
        likely, direction = self._likely(tally), self._direction(tally)
        reason = f"fresh: {self._says(tally, likely)}"
        if missing > 0 and (
            not config.curtail or self._can_be_saved(tally, config.confirm_rollouts, config.confirm)
        ):
            return Judgement(Decision.MORE, direction, likely, reason, missing)
        if missing <= 0 and likely >= config.confirm and tally.wins:
            return Judgement(Decision.ACCEPT, "leave", likely, reason, config.batch)
        return Judgement(Decision.REFINE, direction, likely, reason)

    def _tally(self, episodes: Sequence[Episode]) -> Tally:
        steps = [episode.steps for episode in episodes if episode.success]
        below = sum(count < self.config.low for count in steps)
        above = sum(count > self.config.high for count in steps)
        return Tally(below, len(steps) - below - above, above, len(episodes))

    def _likely(self, tally: Tally) -> float:
        """Return the posterior probability that the median is in the band."""
        return max(0.0, 1.0 - self._mostly(tally.below, tally) - self._mostly(tally.above, tally))

    def _mostly(self, count: int, tally: Tally) -> float:
        """Return the posterior probability that more than half of all successes are like these."""
        prior = self.config.prior
        return 1.0 - beta_cdf(0.5, count + prior, tally.wins - count + 2 * prior)

    def _can_be_saved(self, tally: Tally, total: int, wanted: float) -> bool:
        """Say whether a candidate would be accepted if all rollouts to come were as wanted."""
        best = Tally(tally.below, tally.inside + total - tally.rollouts, tally.above, total)
        return best.wins >= self.config.min_wins and self._likely(best) >= wanted

    def _direction(self, tally: Tally) -> Direction:
        """Too many steps and too few successes ask for help, too few steps for hindrance."""
        return "harden" if tally.below > tally.above else "scaffold"

    def _says(self, tally: Tally, likely: float) -> str:
        config = self.config
        return (
            f"{tally.wins} of {tally.rollouts} succeeded, {tally.below} in fewer than {config.low} steps, "
            f"{tally.above} in more than {config.high}: the median is {likely:.2f} likely in "
            f"[{config.low}, {config.high}]"
        )
