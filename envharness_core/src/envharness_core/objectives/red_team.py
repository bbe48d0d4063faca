"""Red team: as hard as it gets, as long as it can be solved."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from envharness_core.objectives.gate import SHARE, GateConfig
from envharness_core.objectives.rate_gate import RateGate, band_shares


@frozen(kw_only=True)
class RedTeamConfig(GateConfig):
    """How low the success rate has to be, and what counts as solvable.

    Args:
        high: the success rate that a candidate may have at most, above ``floor``.
        floor: the one that it must have at least, to be solvable.

    The rest is as in ``GateConfig``.
    """

    high: float = field(default=0.2, validator=SHARE)
    floor: float = field(default=0.02, validator=SHARE)

    def __attrs_post_init__(self) -> None:
        if self.floor >= self.high:
            raise ValueError(f"floor must be below high: {self.floor} >= {self.high}")
        super().__attrs_post_init__()


class RedTeam(RateGate[RedTeamConfig]):
    """Accepts a candidate that the policy rarely solves, and has solved: a win is the proof that it can be."""

    def __init__(self, config: RedTeamConfig) -> None:
        super().__init__(config)
        self.band = (config.floor, config.high)
        self.summary = (
            f"as low a success rate as possible, at most {config.high:g}, on a task that can still be solved: "
            f"at least {config.floor:g}, and one success seen"
        )

    def _shares(self, baseline: tuple[int, int]) -> Sequence[float]:
        return band_shares(self.config.floor, self.config.high)

    def _aim_key(self, baseline: tuple[int, int]) -> tuple[int, int]:
        return (0, 0)  # the unchanged task doesn't matter

    def _proven(self, wins: int) -> bool:
        return wins > 0

    def _says(self, baseline: tuple[int, int], counted: str, likely: float) -> str:
        return f"{counted}: {likely:.2f} likely in [{self.config.floor:g}, {self.config.high:g}]"
