"""Waiting: what services say about when to come back, and what to do where they don't."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite

from attrs import define, frozen

from envharness_core import waiting
from envharness_core.errors import ProviderError

MINUTE = 60.0
_EPOCH = (
    1e9  # a number as large as this is a point in time; in milliseconds where it is a thousand times that
)
_UNITS = {"h": 3600.0, "m": MINUTE, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_HINT = re.compile(
    r"(?:try again in|retry (?:in|after)|retryDelay\W{1,5})\s*"
    r"(?:about )?((?:\d+(?:\.\d+)?\s?(?:ms|h|m|s)(?![a-z]))+|\d+(?:\.\d+)? ?(?=sec))",
    re.IGNORECASE,
)
_PER_MINUTE = re.compile(r"per[ _-]?min|/ ?min|\b[rt]pm\b", re.IGNORECASE)
_RESETS = ("requests", "tokens", "input-tokens", "output-tokens", "requests-minute", "tokens-minute")


def named_wait(headers: Mapping[str, str], text: str, now: float) -> float | None:
    """Return for how many seconds a service wants to be left alone; None where it doesn't say.

    ``retry-after-ms`` goes before ``Retry-After`` (seconds or an HTTP date), then come the resets of those limits
    that are used up, or the nearest reset where it isn't said which are, then a hint in the error's words.

    Args:
        headers: of its answer, in any case.
        text: the words of its error.
        now: seconds since the epoch.
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(lowered.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    after = _moment(lowered.get("retry-after", ""), now)
    if after is None:
        after = _reset(lowered, now)
    if after is None and (hint := _HINT.search(text)):
        after = _moment(hint[1].replace(" ", ""), now)
    return after


def counts_by_minute(headers: Mapping[str, str], text: str) -> bool:
    """Say whether a service's limit is one of the minute, by its words or the names of its headers."""
    limits = (name.lower() for name in headers if "ratelimit" in name.lower())
    return bool(_PER_MINUTE.search(text)) or any("minute" in name for name in limits)


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    spent: list[float] = []
    others: list[float] = []
    for what in ("", *(f"-{name}" for name in _RESETS)):
        until = _moment(headers.get(f"x-ratelimit-reset{what}", ""), now)
        if until is not None:
            left = _number(headers.get(f"x-ratelimit-remaining{what}", ""))
            (spent if left == 0 else others).append(until)
    return max(spent) if spent else min(others, default=None)


def _moment(value: str, now: float) -> float | None:
    """Read seconds, a point in time, ``1m2.5s``, or an HTTP date, as seconds from now."""
    number = _number(value)
    if number is not None:
        if number < _EPOCH:
            return number
        return max(0.0, (number / 1000 if number >= _EPOCH * 1000 else number) - now)
    parts = _DURATION.findall(value)
    if parts and "".join(amount + unit for amount, unit in parts) == value:
        return sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now) if value else None
    except (ValueError, OverflowError):
        return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


@frozen
class Backoff:
    """How long to wait where a service doesn't say.

    Args:
        first: seconds, about, before a call that failed is repeated; doubled each time.
        most: seconds that one such wait takes at most.
        least: seconds that a key rests at least after it was refused; doubled as long as no call gets through, up to
            a second or four times what the service names, so that one which names next to nothing isn't hammered.
    """

    first: float = 1.0
    most: float = MINUTE
    least: float = 0.025

    def delay(self, attempt: int, named: float | None = None) -> float:
        """Return the seconds before a call is repeated.

        Args:
            attempt: how many have failed, from 1.
            named: what the service asked for, which is obeyed.
        """
        return max(self._doubled(self.first, attempt - 1) * random.uniform(0.5, 1.0), named or 0.0)

    def rest(self, refusals: int, named: float | None, minute: float | None) -> float:
        """Return the seconds for which a key rests after a call was refused for the rate.

        Args:
            refusals: how often it had to rest since a call got through, this time included.
            named: what the service asked for.
            minute: seconds that are left of the minute by which the service counts; None where it doesn't.
        """
        least = self._doubled(self.least, refusals)
        if named is not None:
            most = max(1.0, 4 * named) if named > 0 else self.most
            return max(named, min(least, most))  # longer where a service doesn't mean what it says
        if minute is not None:
            return max(minute, least)
        return max(self.first, self._doubled(self.first, refusals) * random.uniform(0.5, 1.0))

    def _doubled(self, seconds: float, times: int) -> float:
        return min(self.most, seconds * 2.0 ** min(times, 32))


@define
class Patience:
    """How long one call may wait in all, for rate limits and between repetitions.

    Args:
        model: whom it waits for.
        limit: seconds.
        waited: seconds so far.
    """

    model: str
    limit: float
    waited: float = 0.0

    def allows(self, seconds: float) -> bool:
        """Say whether that much more may be waited for."""
        return self.waited + seconds <= self.limit

    def wait(self, seconds: float) -> None:
        """Wait, while the episode's clock stands still.

        Raises:
            ProviderError: that would be longer than the limit; nothing was waited for then.
        """
        if not self.allows(seconds):
            raise ProviderError(
                f"{self.model}: the service asks for {seconds:.1f} s of waiting after {self.waited:.1f} s, which is "
                f"longer than settings.llm.patience ({self.limit:g} s); go on later, or raise it"
            )
        began = time.monotonic()
        with waiting():
            time.sleep(seconds)
        self.waited += time.monotonic() - began
