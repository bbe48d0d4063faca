"""What an operator sets for language models: ``[settings.llm]`` of a config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import Attribute, Factory, field, frozen, validators

from envharness_core.converter import structure
from envharness_core.errors import ConfigError
from envharness_core.redaction import redact_text
from envharness_core.session import Session

WHERE = "settings.llm"
"""What a user calls these settings."""

CassetteMode: TypeAlias = Literal["auto", "replay", "off"]
"""``auto`` answers what is known from the record and records the rest; ``replay`` asks nobody; ``off`` does neither."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOKS_SECRET = re.compile(r"(?:sk|rk|pk|gsk|hf|ghp|xai|pplx|nvapi)[-_]|AIza|eyJ", re.IGNORECASE)
_LENGTH = 64  # characters that the name of a variable hardly has


def _names_variables(_: object, attribute: Attribute[Any], names: object) -> None:
    """Refuse what can't be the name of a variable, without repeating it: it may be a key."""
    for name in names if isinstance(names, tuple) else ():
        if _LOOKS_SECRET.match(name) or len(name) > _LENGTH or redact_text(name) != name:
            raise ValueError(
                f"an entry of {attribute.name} looks like a key itself: "
                "put it into the environment, and its variable's name here"
            )
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{attribute.name} lists names of environment variables: letters, digits and _")


def _is_url(_: object, attribute: Attribute[str | None], url: str | None) -> None:
    if url is not None and not re.match(r"https?://[^\s/]", url):
        raise ValueError(f"{attribute.name} must begin with http:// or https://")
    if url is not None and ("@" in url.partition("://")[2].partition("/")[0] or "?" in url):
        raise ValueError(
            f"{attribute.name} holds a user, a password or a query: put the secret into the environment, and its "
            "variable's name into keys"
        )


def _are_prefixes(_: object, attribute: Attribute[dict[str, ProviderSettings]], names: object) -> None:
    for name in names if isinstance(names, dict) else ():
        if "/" in name:
            raise ValueError(f"{attribute.name} are named as in front of a model's /, such as openai")


_COUNT = validators.optional([validators.ge(1), validators.le(1024)])
_PRICE: Any = [validators.ge(0), validators.le(1e6)]


@frozen
class Price:
    """What a model costs, instead of what litellm's table says.

    Args:
        input: US dollars for a million input tokens, those from a cache included.
        output: US dollars for a million output tokens, those of reasoning included.
    """

    input: float = field(validator=_PRICE)
    output: float = field(default=0.0, validator=_PRICE)


@frozen
class CassetteSettings:
    """Whether calls are recorded, and answered from the record.

    Args:
        mode: ``auto``, ``replay`` or ``off``.
        file: the record; None for ``calls.sqlite3`` in the run folder. Without a run folder, nothing is recorded.
    """

    mode: CassetteMode = "auto"
    file: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))


@frozen
class ProviderSettings:
    """What holds for one provider's models only; None takes what holds for all.

    Args:
        api_base: as in ``Settings``.
        keys: as in ``Settings``.
        in_flight: as in ``Settings``.
    """

    api_base: str | None = field(default=None, validator=_is_url)
    keys: tuple[str, ...] | None = field(default=None, validator=_names_variables)
    in_flight: int | None = field(default=None, validator=_COUNT)


@frozen
class Endpoint:
    """Where a provider's models are reached.

    Args:
        provider: what stands in front of a model's ``/``; empty where nothing does.
        api_base: the base URL; None for litellm's own.
        keys: names of environment variables.
        in_flight: calls at once with a key.
    """

    provider: str
    api_base: str | None
    keys: tuple[str, ...]
    in_flight: int


@frozen
class Settings:
    """How models are reached; part of no run's identity.

    Args:
        api_base: the base URL of the service, for one that isn't the provider's own.
        keys: names of the environment variables that hold the keys; calls are spread over them. Empty leaves it to
            litellm, which looks into variables such as OPENAI_API_KEY. A key itself is refused.
        in_flight: calls at once with a key, in all processes of this user on this machine together.
        timeout: seconds that a call may take.
        retries: how often a call is repeated that failed in a way which may pass; waiting for a rate limit isn't
            one of these.
        patience: seconds that a call waits at most, for rate limits and between repetitions, in all.
        stream: whether answers are streamed; they are the same, but a service that stalls is noticed sooner.
        cassette: whether calls are recorded and replayed.
        prices: what models cost, by their whole names, where litellm doesn't know or the operator knows better.
        providers: settings for one provider's models, by what stands in front of a model's ``/``.
    """

    api_base: str | None = field(default=None, validator=_is_url)
    keys: tuple[str, ...] = field(default=(), validator=_names_variables)
    in_flight: int = field(default=16, validator=[validators.ge(1), validators.le(1024)])
    timeout: float = field(default=120.0, validator=[validators.gt(0), validators.le(1e6)])
    retries: int = field(default=4, validator=[validators.ge(0), validators.le(100)])
    patience: float = field(default=3600.0, validator=[validators.ge(0), validators.le(1e6)])
    stream: bool = False
    cassette: CassetteSettings = Factory(CassetteSettings)
    prices: dict[str, Price] = Factory(dict)
    providers: dict[str, ProviderSettings] = field(factory=dict, validator=_are_prefixes)

    @classmethod
    def of(cls, session: Session) -> Settings:
        """Read what a session's operator set.

        Raises:
            ConfigError: a field is wrong; no message repeats what may be a key.
        """
        for name in ("prices", "providers"):
            if not isinstance(session.settings.get(name, {}), Mapping):
                raise ConfigError(f"{WHERE}.{name}: expected a table, such as [{WHERE}.{name}.NAME]")
        try:
            return structure(session.settings, cls, WHERE)
        except ConfigError as error:
            problem = redact_text(str(error))
        raise ConfigError(problem)  # outside, as its cause would hold what was taken out

    def endpoint(self, model: str) -> Endpoint:
        """Return where a model is reached."""
        provider = model.partition("/")[0] if "/" in model else ""
        own = self.providers.get(provider, ProviderSettings())
        return Endpoint(
            provider,
            self.api_base if own.api_base is None else own.api_base,
            self.keys if own.keys is None else own.keys,
            self.in_flight if own.in_flight is None else own.in_flight,
        )
