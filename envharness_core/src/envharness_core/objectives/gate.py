"""What every gate is told: how sure to be, and how many rollouts that may cost."""

from __future__ import annotations

from attrs import field, frozen, validators

from envharness_core.objectives.plan import Looks

SHARE = [validators.ge(0.0), validators.le(1.0)]
MOST_ROLLOUTS = 200


@frozen(kw_only=True)
class GateConfig:
    """How sure a gate has to be, and what it may spend.

    Args:
        prior: every parameter of the Beta or Dirichlet prior; 0.5 is Jeffreys'.
        accept: the posterior probability of the wanted at which a candidate is accepted.
        reject: the one at which it is given up.
        min_rollouts: no verdict on fewer graded rollouts.
        max_rollouts: a candidate that is undecided then is given up; at most 200.
        batch: how many rollouts lie between two looks at the numbers.
        curtail: whether rollouts that can't change the decision are left out.
        confirm_rollouts: fresh rollouts that confirm an accepted candidate; 0 for none.
        confirm: the posterior probability below which the confirmation refuses.
    """

    prior: float = field(default=0.5, validator=validators.gt(0))
    accept: float = field(default=0.8, validator=SHARE)
    reject: float = field(default=0.1, validator=SHARE)
    min_rollouts: int = field(default=6, validator=validators.ge(1))
    max_rollouts: int = field(default=30, validator=[validators.ge(1), validators.le(MOST_ROLLOUTS)])
    batch: int = field(default=2, validator=validators.ge(1))
    curtail: bool = True
    confirm_rollouts: int = field(default=10, validator=[validators.ge(0), validators.le(MOST_ROLLOUTS)])
    confirm: float = field(default=0.5, validator=SHARE)

    def __attrs_post_init__(self) -> None:
        if self.reject >= self.accept:
            raise ValueError(f"reject must be below accept: {self.reject} >= {self.accept}")
        if self.min_rollouts > self.max_rollouts:
            raise ValueError(
                f"min_rollouts must not be above max_rollouts: {self.min_rollouts} > {self.max_rollouts}"
            )

    @property
    def looks(self) -> Looks:
        """When the numbers are looked at."""
        return Looks(self.min_rollouts, self.max_rollouts, self.batch)
