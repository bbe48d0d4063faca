"""Waiting: what services say is read whatever they write, and where they say nothing there are bounds."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.clock import ticking
from envharness_core.errors import ProviderError
from envharness_llm.backoff import Backoff, Patience, counts_by_minute, named_wait

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"Retry-After": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"Retry-After": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"Retry-After": "7", "Retry-After-Ms": "6500"}, 6.5),
        ({"retry-after-ms": "soon", "Retry-After": "7"}, 7.0),
        ({"Retry-After": "2", "x-ratelimit-reset-requests": "9s"}, 2.0),
        ({"x-ratelimit-reset-requests": "6s"}, 6.0),
        ({"x-ratelimit-reset-tokens": "1m2s"}, 62.0),
        ({"x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-reset-requests": "1h0m1.5s"}, 3601.5),
        ({"x-ratelimit-reset": str(int(NOW) + 5)}, 5.0),
        ({"x-ratelimit-reset": str(int(NOW) * 1000 + 5000)}, 5.0),
        ({"x-ratelimit-reset-tokens-minute": "12.5"}, 12.5),
        ({"x-ratelimit-reset-requests": "8m", "x-ratelimit-reset-tokens": "3s"}, 3.0),
        (
            {
                "x-ratelimit-reset-requests": "8m",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "3s",
                "x-ratelimit-remaining-tokens": "500",
            },
            480.0,
        ),
        ({}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
    ],
)
def test_what_headers_name_is_read(headers: dict[str, str], seconds: float | None) -> None:
    read = named_wait(headers, "", NOW)
    assert read == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 6.2s. Visit the page", 6.2),
        ("Please try again in 20ms.", 0.02),
        ("please try again in 1m2s", 62.0),
        ("Retry after 12 seconds", 12.0),
        ('"retryDelay": "34s"', 34.0),
        ("try again in 5 minutes", None),
        ("Please try again later.", None),
    ],
)
def test_a_hint_in_the_words_is_the_last_resort(text: str, seconds: float | None) -> None:
    assert named_wait({}, text, NOW) == (None if seconds is None else pytest.approx(seconds))
    assert named_wait({"Retry-After": "1"}, text, NOW) == 1.0


@given(
    st.dictionaries(
        st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"]),
        st.text(st.characters(codec="latin-1"), max_size=30) | st.from_regex(r"[0-9.]{1,9}(m|s|ms|h)?"),
    ),
    st.text(max_size=60),
)
def test_nonsense_is_never_an_error_and_never_negative(headers: dict[str, str], text: str) -> None:
    read = named_wait(headers, text, NOW)
    assert read is None or 0 <= read < float("inf")


@pytest.mark.parametrize(
    ("headers", "text", "minute"),
    [
        ({}, "Limit: 3 requests per min (RPM)", True),
        ({}, "exceeded 60 requests/minute", True),
        ({"x-ratelimit-limit-requests-minute": "60"}, "", True),
        ({"x-ratelimit-limit-requests": "60"}, "Too many requests", False),
        ({}, "the permission is missing", False),
    ],
)
def test_limits_of_the_minute_are_noticed(headers: dict[str, str], text: str, *, minute: bool) -> None:
    assert counts_by_minute(headers, text) is minute


@given(st.integers(1, 10_000), st.none() | st.floats(0, 1e5), st.none() | st.floats(0, 60))
def test_a_key_rests_as_long_as_it_was_told_and_within_bounds(
    refusals: int, named: float | None, minute: float | None
) -> None:
    rest = Backoff().rest(refusals, named, minute)
    told = minute if named is None else named
    assert rest >= Backoff().least
    if told is None:
        assert 1.0 <= rest <= 60.0
    else:
        assert told <= rest <= max(told, 60.0)
    if told is not None and refusals == 1:
        assert rest <= max(told, 0.05)


@given(st.integers(1, 10_000), st.none() | st.floats(0, 1e5))
def test_repetitions_come_ever_later_and_within_bounds(attempt: int, named: float | None) -> None:
    delay = Backoff().delay(attempt, named)
    assert min(60.0, 2.0 ** min(attempt - 1, 10)) / 2 <= delay <= max(60.0, named or 0.0)
    assert delay >= (named or 0.0)


def test_patience_counts_what_was_waited_and_refuses_at_once_what_is_too_long() -> None:
    patience = Patience("openai/m", 0.1)
    patience.wait(0.04)
    assert patience.waited >= 0.04
    began = time.monotonic()
    with pytest.raises(ProviderError, match=r"openai/m.*patience"):
        patience.wait(30.0)
    assert time.monotonic() - began < 1.0


def test_the_clock_of_the_episode_stands_still_while_it_waits() -> None:
    with ticking() as clock:
        began = time.monotonic()
        Patience("m", 1.0).wait(0.3)
        assert time.monotonic() - began >= 0.3
        assert clock.elapsed < 0.2
