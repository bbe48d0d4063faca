"""Weakness: a candidate has to hit where it hurts, by numbers; the words are for the designer."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen, validators

from envharness_core.objectives.gate import SHARE, GateConfig
from envharness_core.objectives.rate_gate import RateGate, band_shares
from envharness_core.posterior import MIDDLES, beta_cdf

_LONGEST = 1000


@frozen(kw_only=True)
class WeaknessConfig(GateConfig):
    """What to aim at, and how much of an effect proves it.

    Args:
        sentence: the weakness in words, 1 to 1,000 characters; a designer reads it, the gate doesn't.
        margin: by how much the success rate has to be below the unchanged task's, above 0.
        floor: the success rate that a candidate must leave at least, so that it can be solved.

    The rest is as in ``GateConfig``. The unchanged task's rate is as uncertain as its baseline leaves it.
    """

    sentence: str
    margin: float = field(default=0.2, validator=[validators.gt(0.0), validators.lt(1.0)])
    floor: float = field(default=0.1, validator=SHARE)

    def __attrs_post_init__(self) -> None:
        if not self.sentence.strip() or len(self.sentence) > _LONGEST:
            raise ValueError(f"sentence must say the weakness in 1 to {_LONGEST:,} characters")
        if self.floor + self.margin >= 1.0:
            raise ValueError(f"floor and margin must leave room below 1: {self.floor} + {self.margin}")
        super().__attrs_post_init__()


class Weakness(RateGate[WeaknessConfig]):
    """Accepts a candidate that lowers the success rate by a margin and can still be solved."""

    def __init__(self, config: WeaknessConfig) -> None:
        super().__init__(config)
        self.summary = (
            f"layers that strike this weakness: {config.sentence.strip()} (a success rate at least {config.margin:g} "
            f"below the unchanged task's, and at least {config.floor:g})"
        )

    def _shares(self, baseline: tuple[int, int]) -> Sequence[float]:
        wins, rollouts = baseline
        a, b = wins + self.config.prior, rollouts - wins + self.config.prior
        solvable = band_shares(self.config.floor, 1.0)
        lower = [1.0 - beta_cdf(rate + self.config.margin, a, b) for rate in MIDDLES]
        return [share * chance for share, chance in zip(solvable, lower, strict=True)]

    def _says(self, baseline: tuple[int, int], counted: str, likely: float) -> str:
        wins, rollouts = baseline
        return (
            f"{counted} where the unchanged task has {wins} of {rollouts}: {likely:.2f} likely that the rate is at "
            f"least {self.config.margin:g} lower and at least {self.config.floor:g}"
        )
