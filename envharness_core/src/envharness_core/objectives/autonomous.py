"""Autonomous: no rate is asked for; a candidate has to make a task more learnable than it was."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen, validators

from envharness_core.objectives.gate import SHARE, GateConfig
from envharness_core.objectives.rate_gate import RateGate, band_shares
from envharness_core.posterior import MIDDLES, beta_cdf


@frozen(kw_only=True)
class AutonomousConfig(GateConfig):
    """What counts as learnable, and as progress.

    Args:
        floor, ceiling: below the one nothing is won to learn from, above the other nothing is left to learn,
            ``0 <= floor < 0.5 < ceiling <= 1``.
        margin: by how much the success rate has to come closer to one half than the unchanged task's; a rate that
            is that close to it will do in any case. Above 0, below 0.5.

    The rest is as in ``GateConfig``.
    """

    floor: float = field(default=0.1, validator=SHARE)
    ceiling: float = field(default=0.9, validator=SHARE)
    margin: float = field(default=0.15, validator=[validators.gt(0.0), validators.lt(0.5)])

    def __attrs_post_init__(self) -> None:
        if not self.floor < 0.5 < self.ceiling:
            raise ValueError(f"floor and ceiling must be on either side of 0.5: {self.floor}, {self.ceiling}")
        super().__attrs_post_init__()


class Autonomous(RateGate[AutonomousConfig]):
    """Accepts a candidate that wins and losses can be learnt from, more than from the unchanged task."""

    def __init__(self, config: AutonomousConfig) -> None:
        super().__init__(config)
        self.band = (config.floor, config.ceiling)
        self.summary = (
            f"a task that more can be learnt from: a success rate between {config.floor:g} and {config.ceiling:g}, "
            f"and at least {config.margin:g} closer to one half than it was, in whichever direction that is"
        )

    def _shares(self, baseline: tuple[int, int]) -> Sequence[float]:
        learnable = band_shares(self.config.floor, self.config.ceiling)
        closer = [self._closer(abs(rate - 0.5), baseline) for rate in MIDDLES]
        return [share * chance for share, chance in zip(learnable, closer, strict=True)]

    def _closer(self, distance: float, baseline: tuple[int, int]) -> float:
        """Return how likely a rate so far from one half is closer to it than the baseline's by the margin."""
        if distance <= self.config.margin:
            return 1.0
        (wins, rollouts), least = baseline, distance + self.config.margin
        a, b = wins + self.config.prior, rollouts - wins + self.config.prior
        return beta_cdf(0.5 - least, a, b) + 1.0 - beta_cdf(0.5 + least, a, b)

    def _says(self, baseline: tuple[int, int], counted: str, likely: float) -> str:
        (wins, rollouts), config = baseline, self.config
        return (
            f"{counted} where the unchanged task has {wins} of {rollouts}: {likely:.2f} likely in "
            f"[{config.floor:g}, {config.ceiling:g}] and {config.margin:g} closer to one half, or within that of it"
        )
