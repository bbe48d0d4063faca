"""What goes wrong at a model's service: errors on demand, and a limit on requests."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Literal, TypeAlias

from attrs import field, frozen, validators

from envharness_core.jsondata import JsonObject

Kind: TypeAlias = Literal["status", "garbage", "reset", "cut", "short", "midway", "stall"]
"""How an answer fails; see ``Fault``."""

_KINDS = ("status", "garbage", "reset", "cut", "short", "midway", "stall")
_ASKS_NOBODY = ("status", "garbage", "reset")

_KNOWN: Mapping[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request can't be understood."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    402: ("billing_error", "payment_required", "The account has no credit left."),
    403: ("permission_error", "permission_denied", "The project has no access to this model."),
    404: (
        "invalid_request_error",
        "model_not_found",
        "The model doesn't exist, or you have no access to it.",
    ),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    500: ("server_error", None, "The server had an error while it processed the request."),
    503: ("server_error", None, "The engine is currently overloaded. Please try again later."),
}


@frozen
class Fault:
    """One thing that goes wrong, at requests that the server picks by number and body.

    Args:
        status: the HTTP status of an answer of kind ``status``; the one in the error object of ``midway``.
        times: how many requests it strikes; None for all.
        after: how many requests it lets through first. Only those count that ``when`` accepts and that no fault
            before it in the list has struck.
        headers: further headers of the answer.
        body: the whole body in place of an error object, or of the text of ``garbage``.
        when: says of a request's body whether the fault is meant for it.
        delay: seconds before the answer begins; of a ``stall``, those in which nothing comes.
        kind: ``status`` (an HTTP error), ``garbage`` (a 200 that isn't JSON), ``reset`` (the connection breaks
            without an answer). These three don't ask the brain. The others damage what it said: ``cut`` (the
            connection closes in the middle), ``short`` (the answer ends in the middle as if that were all), ``midway``
            (half a stream, then an error object in it; a plain answer is a 200 with only the error object) and
            ``stall`` (nothing comes for ``delay`` seconds, in the middle of a stream, then the rest).
        message: what the error object says; the usual words for the status where it is None.
        code: the error object's code; the usual one where it is None.
        type: the error object's type; the usual one where it is None.
        param: the field that the error object blames.
    """

    status: int = field(default=500, validator=[validators.ge(400), validators.le(599)])
    times: int | None = field(default=1)
    after: int = field(default=0, validator=validators.ge(0))
    headers: Mapping[str, str] = field(factory=dict)
    body: str | None = None
    when: Callable[[JsonObject], bool] | None = None
    delay: float = field(default=0.0, validator=validators.ge(0))
    kind: Kind = field(default="status", validator=validators.in_(_KINDS))
    message: str | None = field(default=None, kw_only=True)
    code: str | None = field(default=None, kw_only=True)
    type: str | None = field(default=None, kw_only=True)
    param: str | None = field(default=None, kw_only=True)

    @times.validator
    def _check_times(self, _: object, value: int | None) -> None:
        if value is not None and value < 1:
            raise ValueError(f"'times' must be None or >= 1: {value}")

    @property
    def asks_the_brain(self) -> bool:
        """Whether the brain is asked, because the fault damages what it says."""
        return self.kind not in _ASKS_NOBODY

    @property
    def words(self) -> str:
        """What the error object says."""
        return self.message or self._usual[2]

    def error(self) -> JsonObject:
        """Return the error object as OpenAI's services shape it."""
        kind, code, _ = self._usual
        inner: JsonObject = {
            "message": self.words,
            "type": self.type or kind,
            "param": self.param,
            "code": self.code or (None if self.message else code),
        }
        return {"error": inner}

    @property
    def _usual(self) -> tuple[str, str | None, str]:
        return _KNOWN.get(self.status, _KNOWN[500 if self.status >= 500 else 400])

    def told(self) -> str:
        """Return the body of an answer of kind ``status``."""
        return json.dumps(self.error()) if self.body is None else self.body

    @classmethod
    def bad_key(cls, *, times: int | None = 1, after: int = 0) -> Fault:
        """Refuse the key: 401."""
        return cls(401, times, after)

    @classmethod
    def bad_request(cls, message: str, *, code: str | None = None, param: str | None = None) -> Fault:
        """Refuse the request for good: 400."""
        return cls(400, message=message, code=code, param=param)

    @classmethod
    def context_overflow(cls, *, limit: int = 8192, times: int | None = 1, after: int = 0) -> Fault:
        """Say that the conversation is longer than the model's context: 400."""
        message = (
            f"This model's maximum context length is {limit} tokens. The messages are longer: reduce them."
        )
        return cls(400, times, after, message=message, code="context_length_exceeded", param="messages")

    @classmethod
    def no_such_model(cls, *, times: int | None = 1, after: int = 0) -> Fault:
        """Say that the model doesn't exist: 404."""
        return cls(404, times, after)

    @classmethod
    def no_quota(cls, *, times: int | None = 1, after: int = 0) -> Fault:
        """Say that the account's money is spent, which no waiting mends: 429."""
        message = "You exceeded your current quota: check the plan and the billing details."
        quota = "insufficient_quota"
        return cls(429, times, after, message=message, code=quota, type=quota)

    @classmethod
    def rate_limited(
        cls, *, retry_after: float | str | None = None, times: int | None = 1, after: int = 0
    ) -> Fault:
        """Limit the rate: 429, with ``Retry-After`` in seconds or as an HTTP date where it is given."""
        text = retry_after if retry_after is None or isinstance(retry_after, str) else f"{retry_after:g}"
        return cls(429, times, after, {} if text is None else {"Retry-After": text})

    @classmethod
    def broken(cls, *, times: int | None = 1, after: int = 0) -> Fault:
        """Have an internal error: 500."""
        return cls(500, times, after)

    @classmethod
    def overloaded(cls, *, times: int | None = 1, after: int = 0) -> Fault:
        """Be overloaded: 503."""
        return cls(503, times, after)


class Refused(Exception):  # noqa: N818 - says what happened
    """A request gets an error in place of an answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.told())
        self.fault = fault


class Strikes:
    """Decides which request meets which fault; threads may share it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = tuple(faults)
        self._met = [0] * len(self._faults)
        self._lock = Lock()

    def strike(self, body: JsonObject) -> Fault | None:
        """Return the fault that a request meets, and count it."""
        meant = [fault.when is None or fault.when(body) for fault in self._faults]
        with self._lock:
            for index, fault in enumerate(self._faults):
                if meant[index]:
                    self._met[index] += 1
                    past = self._met[index] - fault.after
                    if past > 0 and (fault.times is None or past <= fault.times):
                        return fault
        return None


@frozen
class Limit:
    """At most so many requests of a key in a window, which begins with the first request after the last window.

    Args:
        requests: how many are answered; the others get a 429.
        seconds: the length of a window.
        retry_after: send ``Retry-After``: whole seconds, rounded up, as the HTTP standard has it.
        precise: send ``retry-after-ms`` and ``x-ratelimit-reset-requests`` too, as OpenAI's services do.
    """

    requests: int = field(validator=validators.ge(1))
    seconds: float = field(validator=validators.gt(0))
    retry_after: bool = field(default=True, kw_only=True)
    precise: bool = field(default=False, kw_only=True)


class Turns:
    """Counts requests by key and window; threads may share it."""

    def __init__(self, limit: Limit, now: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._now = limit, now
        self._windows: dict[str, tuple[float, int]] = {}
        self._lock = Lock()

    def take(self, key: str) -> tuple[bool, dict[str, str]]:
        """Say whether a request is answered, and which headers its answer bears; a refused one counts nothing."""
        limit = self._limit
        with self._lock:
            now = self._now()
            began, used = self._windows.get(key, (now, 0))
            if now - began >= limit.seconds:
                began, used = now, 0
            allowed = used < limit.requests
            self._windows[key] = began, used + allowed
        headers = {
            "x-ratelimit-limit-requests": str(limit.requests),
            "x-ratelimit-remaining-requests": str(limit.requests - used - allowed),
        }
        return allowed, headers | self._when(began + limit.seconds - now, allowed=allowed)

    def _when(self, rest: float, *, allowed: bool) -> dict[str, str]:
        """Return the headers that say when the window ends."""
        headers: dict[str, str] = {}
        if self._limit.precise:
            headers["x-ratelimit-reset-requests"] = duration(rest)
        if self._limit.precise and not allowed:
            headers["retry-after-ms"] = str(math.ceil(rest * 1000))
        if self._limit.retry_after and not allowed:
            headers["Retry-After"] = str(math.ceil(rest))
        return headers


def duration(seconds: float) -> str:
    """Write seconds as OpenAI's headers do: ``20ms``, ``1.5s``, ``6m0s``; rounded up to milliseconds."""
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes}m{rest / 1000:g}s" if minutes else f"{rest / 1000:g}s"
