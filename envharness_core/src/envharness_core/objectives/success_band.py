"""Success band: a success rate that is neither hopeless nor a matter of course."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import field, frozen, validators

from envharness_core.objective import Decision
from envharness_core.objectives.gate import MOST_ROLLOUTS, SHARE, GateConfig
from envharness_core.objectives.plan import Looks, Plan
from envharness_core.objectives.rate_gate import RateGate, band_shares
from envharness_core.posterior import band_posterior

_ROUNDING = 1e-9


@frozen(kw_only=True)
class SuccessBandConfig(GateConfig):
    """The band, and how sure the gate has to be.

    Args:
        low, high: the success rates that are wanted, inclusive, ``0 <= low < high <= 1``.
        gate: ``sequential`` judges by the posterior probability of the band, ``fixed`` by the share of successes in
            ``fixed_rollouts``, as the paper does.
        fixed_rollouts: K, the rollouts of a fixed gate; the keys of the sequential one then say nothing, except
            ``prior``, ``batch``, ``curtail`` and those of the confirmation.

    The rest is as in ``GateConfig``.

    Source: ``benchmarks/gate.py``, which computes exactly what these defaults accept and spend.
    """

    low: float = field(default=0.4, validator=SHARE)
    high: float = field(default=0.6, validator=SHARE)
    gate: Literal["sequential", "fixed"] = field(
        default="sequential", validator=validators.in_(("sequential", "fixed"))
    )
    fixed_rollouts: int = field(default=5, validator=[validators.ge(1), validators.le(MOST_ROLLOUTS)])
    prior: float = field(default=0.7, validator=validators.gt(0))
    accept: float = field(default=0.48, validator=SHARE)
    reject: float = field(default=0.14, validator=SHARE)
    min_rollouts: int = field(default=2, validator=validators.ge(1))
    max_rollouts: int = field(default=32, validator=[validators.ge(1), validators.le(MOST_ROLLOUTS)])
    batch: int = field(default=1, validator=validators.ge(1))
    confirm: float = field(default=0.2, validator=SHARE)

    def __attrs_post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low must be below high: {self.low} >= {self.high}")
        super().__attrs_post_init__()


class SuccessBand(RateGate[SuccessBandConfig]):
    """Accepts a candidate whose success rate is likely to lie in [low, high]."""

    def __init__(self, config: SuccessBandConfig) -> None:
        super().__init__(config)
        self.band = (config.low, config.high)
        self.summary = f"a success rate between {config.low:g} and {config.high:g}"

    def _shares(self, baseline: tuple[int, int]) -> Sequence[float]:
        return band_shares(self.config.low, self.config.high)

    def _aim_key(self, baseline: tuple[int, int]) -> tuple[int, int]:
        return (0, 0)  # the band is the same beside any baseline

    def _probability(self, shares: tuple[float, ...], wins: int, rollouts: int) -> float:
        return band_posterior(wins, rollouts, self.config.low, self.config.high, self.config.prior)

    def _plan(self, shares: tuple[float, ...]) -> Plan:
        if self.config.gate == "sequential":
            return super()._plan(shares)
        count = self.config.fixed_rollouts
        return Plan(self._estimate, Looks(count, count, self.config.batch), curtail=self.config.curtail)

    def _estimate(self, wins: int, rollouts: int) -> Decision:
        """Judge the share of successes at face value."""
        low, high = self.config.low * rollouts - _ROUNDING, self.config.high * rollouts + _ROUNDING
        return Decision.ACCEPT if low <= wins <= high else Decision.REFINE

    def _is_open(self, likely: float) -> bool:
        return self.config.gate == "sequential" and super()._is_open(likely)

    def _says(self, baseline: tuple[int, int], counted: str, likely: float) -> str:
        how = "" if self.config.gate == "sequential" else "judged by the share, "
        return f"{counted}: {how}{likely:.2f} likely in [{self.config.low:g}, {self.config.high:g}]"
