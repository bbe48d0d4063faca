"""Accounts: what a run has used of models, by role, and whether its budget allows more."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import field, frozen, validators

from envharness_core.jsondata import JsonObject

_POSITIVE = validators.optional(validators.gt(0))

_DIGITS = 9  # of a dollar: what is beyond depends on the order of a sum

POLICY = "policy"
"""The role of whoever plays."""


@frozen
class Budget:
    """What a run may use of models, those of earlier sessions in its folder included.

    Args:
        usd: US dollars, by the price lists that the models' plugin knows; None for no limit.
        tokens: input and output tokens together; None for no limit.
    """

    usd: float | None = field(default=None, validator=_POSITIVE)
    tokens: int | None = field(default=None, validator=_POSITIVE)


class Account:
    """Counts what is used, from any thread.

    Args:
        budget: what may be used.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._totals: dict[str, dict[str, float]] = defaultdict(dict)

    def charge(self, role: str, usage: JsonObject) -> None:
        """Add what was used to a role's account; what isn't a number doesn't count."""
        with self._lock:
            add_usage(self._totals[role], usage)
            heard = _HEARD.get()
            if heard is not None:
                add_usage(heard.setdefault(role, {}), usage)

    def charge_again(self, used: JsonObject) -> None:
        """Add what ``charges`` had collected in an earlier session."""
        for role, usage in used.items():
            if isinstance(usage, dict):
                self.charge(role, usage)

    def go_on(self, used: JsonObject) -> None:
        """Add what the policy's stored episodes have used; calls without a price are no news then."""
        self.charge(POLICY, {key: amount for key, amount in used.items() if key != "unpriced_calls"})

    def played(self, usage: JsonObject) -> None:
        """Add what an episode used to the policy's account, which counts the episodes that used anything."""
        if usage:
            self.charge(POLICY, {**usage, "episodes": 1})

    def totals(self) -> JsonObject:
        """Return what was used, by role, whatever the order it came in; roles that used nothing aren't there."""
        with self._lock:
            return {role: rounded(used) for role, used in sorted(self._totals.items()) if used}

    def spent(self) -> str:
        """Say why the budget allows nothing more, or return an empty text."""
        return self._over(0)

    def forbids(self, playing: int) -> str:
        """Say why no further episode may begin while so many are played, or return an empty text.

        Each of them, and the new one, is expected to use what the mean episode has used.
        """
        return self._over(playing + 1)

    def _over(self, episodes: int) -> str:
        usd, tokens = self._budget.usd, self._budget.tokens
        if usd is None and tokens is None:
            return ""
        with self._lock:
            totals = list(self._totals.values())
            policy = {**self._totals[POLICY]}
        if usd is not None and any(used.get("unpriced_calls") for used in totals):
            return (
                "budget.usd is set, but the price of a model isn't known: set it, as in settings.llm.prices, or set "
                "budget.tokens instead, and run again to go on"
            )
        played = policy.get("episodes", 0)
        share = episodes / played if played else 0.0
        for name, limit, used_of in (("usd", usd, _usd), ("tokens", tokens, tokens_of)):
            used = sum(map(used_of, totals))
            expected = used + share * used_of(policy)
            if limit is not None and (used >= limit or expected > limit):
                return (
                    f"the budget is spent: {used:.6g} of budget.{name} = {limit:g} used"
                    + (", and the next episodes are likely to need more than is left" if used < limit else "")
                    + "; raise it and run again to go on"
                )
        return ""


_HEARD: ContextVar[dict[str, dict[str, float]] | None] = ContextVar("envharness_charges", default=None)


@contextmanager
def charges() -> Iterator[JsonObject]:
    """Collect what this thread charges meanwhile, by role; it is charged all the same."""
    heard: dict[str, dict[str, float]] = {}
    token = _HEARD.set(heard)
    told: JsonObject = {}
    try:
        yield told
    finally:
        _HEARD.reset(token)
        told.update({role: {**used} for role, used in heard.items()})


def rounded(used: Mapping[str, float]) -> JsonObject:
    """Return sums without the digits that depend on the order of summing."""
    return {key: round(amount, _DIGITS) for key, amount in used.items()}


def add_usage(total: dict[str, float], usage: JsonObject) -> None:
    """Add the numbers of a usage to a total; nobody uses less than nothing."""
    for key, amount in usage.items():
        if type(amount) in (int, float) and amount > 0:  # type: ignore[operator]
            total[key] = total.get(key, 0) + amount  # type: ignore[operator]


def tokens_of(used: Mapping[str, object]) -> float:
    """Return how many tokens a usage has, input and output together."""
    return _number(used, "input_tokens") + _number(used, "output_tokens")


def _usd(used: Mapping[str, object]) -> float:
    return _number(used, "cost_usd")


def _number(used: Mapping[str, object], key: str) -> float:
    value = used.get(key)
    return value if isinstance(value, int | float) else 0.0
