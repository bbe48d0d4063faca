"""Redaction: takes secrets out of what leaves a run, by the names they go under and by how they look."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envharness_core.jsondata import Json

REDACTED = "[redacted]"
"""What stands in a secret's place."""

_NAMES = (
    r"api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|secret|passwd|password|passphrase|"
    r"access[_-]?token|auth[_-]?token|refresh[_-]?token|bearer[_-]?token|session[_-]?token|client[_-]?secret|"
    r"credentials?|authorization|cookie"
)
_SECRET_NAME = re.compile(rf"(?:.*[_-])?(?:{_NAMES}|token)", re.IGNORECASE)

_VALUES = (
    r"\bsk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter and others
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",  # AWS
    r"\bAIza[A-Za-z0-9_-]{35}",  # Google
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bgsk_[A-Za-z0-9]{20,}",
    r"\bpypi-[A-Za-z0-9_-]{32,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",  # a JSON web token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)
_VALUE = re.compile("|".join(_VALUES))
_KEPT = (  # what stands in front of a secret tells what it was, and stays
    re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE),
    re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,200}:)[^\s/@]{1,200}(?=@)", re.IGNORECASE),
    re.compile(
        rf"(?<![A-Za-z0-9])((?:[A-Za-z0-9]{{1,40}}[_-]){{0,6}}(?:{_NAMES})[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?)"
        r"(?!\[redacted\]|bearer\b|basic\b)[^\s\"',;&}\\]{6,}",
        re.IGNORECASE,
    ),
    re.compile(r"(\b[A-Z0-9_]{0,80}TOKEN\s{0,3}=\s{0,3}[\"']?)[^\s\"',;&}\\]{8,}"),
)
_LOOKS = (
    *(
        "sk-",
        "sk_",
        "rk_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "AKIA",
        "ASIA",
    ),
    *("AIza", "ya29.", "hf_", "pypi-", "eyJ", "PRIVATE KEY"),
)
_WORDS = (
    *(
        "bearer",
        "basic",
        "://",
        "token",
        "secret",
        "passw",
        "passphrase",
        "credential",
        "authorization",
        "cookie",
    ),
    *("apikey", "api_key", "api-key", "accesskey", "access_key", "access-key"),
    *("privatekey", "private_key", "private-key"),
)


def may_hold_secret(text: str) -> bool:
    """Say quickly whether a text, or the JSON of some data, is worth a closer look; False is certain."""
    if any(look in text for look in _LOOKS):
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS)


def redact_text(text: str) -> str:
    """Return a text with the secrets in it replaced: keys by their look, tokens and passwords by what precedes them.

    >>> redact_text("curl -H 'Authorization: Bearer abcdefghijklmnop1234'")
    "curl -H 'Authorization: Bearer [redacted]'"
    """
    if not may_hold_secret(text):
        return text
    for pattern in _KEPT:
        text = pattern.sub(rf"\g<1>{REDACTED}", text)
    return _VALUE.sub(REDACTED, text)


def redact(value: Json) -> Json:
    """Return plain data with its secrets replaced: texts under a secret's name whole, other texts by ``redact_text``.

    Numbers stay, whatever they are called: ``input_tokens`` is a count.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {redact_text(key): _named(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return value


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that aren't called as secrets are."""
    return {name: value for name, value in environment.items() if not _SECRET_NAME.fullmatch(name)}


def _named(name: str, value: Json) -> Json:
    if isinstance(value, str) and value and _SECRET_NAME.fullmatch(name):
        return REDACTED
    return redact(value)
