"""Redaction: what looks like a secret is gone, what doesn't stays, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.jsondata import Json, canonical
from envharness_core.redaction import REDACTED, may_hold_secret, redact, redact_text

_BODY = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
SECRETS = [
    f"sk-{_BODY}",
    f"sk-ant-api03-{_BODY}",
    f"sk-proj-{_BODY}",
    f"sk_live_{_BODY}",
    f"ghp_{_BODY}",
    f"github_pat_{_BODY}",
    f"glpat-{_BODY}",
    f"xoxb-123456789012-{_BODY}",
    "AKIAIOSFODNN7EXAMPLE",
    f"AIza{_BODY}xyz",
    f"ya29.{_BODY}",
    f"hf_{_BODY}",
    f"gsk_{_BODY}",
    f"pypi-{_BODY}",
    f"eyJhbGciOiJIUzI1NiJ9.{_BODY}.{_BODY}",
]
IN_CONTEXT = [
    ("Authorization: Bearer {}", _BODY),
    ("authorization: basic {}", "dXNlcjpwYXNzd29yZA=="),
    ("postgres://admin:{}@db.example/x", "hunter2"),
    ("export OPENAI_API_KEY={}", _BODY),
    ("GITHUB_TOKEN={}", _BODY),
    ('{{"api_key": "{}"}}', _BODY),
    ("client-secret: {}", _BODY),
    ("password = '{}'", "correct-horse"),
]
HARMLESS = [
    "input_tokens: 812",
    "task-1-2-3-4 and risk-averse-behaviour-of-agents",
    "the password is on the sticky note",
    "https://example.org/a:b@c",
    "a basic question of bearer bonds",
    "keyboard: qwertyuiop",
    "Numbers: [0] 1  [1] 2",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_is_known_by_its_look(secret: str) -> None:
    for text in (secret, f"my key is {secret}, keep it", f'"{secret}"', f"x\n{secret}\ny"):
        assert redact_text(text) == text.replace(secret, REDACTED)


@pytest.mark.parametrize(("frame", "secret"), IN_CONTEXT)
def test_a_secret_is_known_by_what_precedes_it(frame: str, secret: str) -> None:
    assert redact_text(frame.format(secret)) == frame.format(REDACTED)


def test_a_private_key_goes_whole_even_cut_off() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----"
    assert redact_text(f"a\n{key}\nb") == f"a\n{REDACTED}\nb"
    assert redact_text(key[:50]) == REDACTED


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


def test_names_redact_texts_and_leave_counts() -> None:
    value: Json = {
        "api_key": "short",
        "X-Api-Key": "short",
        "headers": [{"Authorization": "whatever", "accept": "json"}],
        "token": "t",
        "input_tokens": 5,
        "tokens": "five",
        "password": "",
        "keys": {"secret": {"inner": "stays"}},
    }
    assert redact(value) == {
        "api_key": REDACTED,
        "X-Api-Key": REDACTED,
        "headers": [{"Authorization": REDACTED, "accept": "json"}],
        "token": REDACTED,
        "input_tokens": 5,
        "tokens": "five",
        "password": "",
        "keys": {"secret": {"inner": "stays"}},
    }


_texts = st.one_of(
    st.text(max_size=20), st.sampled_from(SECRETS + HARMLESS + [a.format(b) for a, b in IN_CONTEXT])
)
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_texts, inner, max_size=3)),
    max_leaves=12,
)


@given(_json)
def test_redacting_twice_changes_nothing_more(value: Json) -> None:
    once = redact(value)
    assert redact(once) == once
    for secret in SECRETS:
        assert secret.encode() not in canonical(once)


@given(_json)
def test_the_quick_look_never_misses(value: Json) -> None:
    if redact(value) != value:
        assert may_hold_secret(canonical(value).decode())


@given(_texts)
def test_only_secrets_are_touched(text: str) -> None:
    if not may_hold_secret(text):
        assert redact_text(text) == text
