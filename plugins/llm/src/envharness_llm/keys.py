"""Keys: taken from the environment by the names of their variables, and used in turns."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from attrs import field, frozen

from envharness_core.errors import ConfigError
from envharness_core.jsondata import canonical
from envharness_llm.backoff import Backoff, Patience
from envharness_llm.failure import Failure
from envharness_llm.gate import Gate, find_gate
from envharness_llm.settings import WHERE, Endpoint, Settings

_NEEDLESS = "none"  # what is sent to a service of the operator's own for which no key is named


@frozen
class Key:
    """What a call needs to be let in.

    Args:
        variable: the environment variable that holds it; empty where there is none.
        secret: the key; None leaves it to litellm, which knows of other ways to be let in.
        api_base: where it is used; None for litellm's own place.
    """

    variable: str
    secret: str | None = field(repr=False)
    api_base: str | None


@frozen(eq=False)
class Turn:
    """A call's turn with a key, which ends with the call.

    Args:
        key: to be used.
        began: when, in seconds of ``time.monotonic()``.
    """

    key: Key
    began: float
    _gate: Gate

    def served(self) -> None:
        """Note that the service took the call."""
        self._gate.served()

    def refused(self, failure: Failure, backoff: Backoff) -> float:
        """Have everybody on this key wait, because the call was refused for the rate; return the seconds."""
        return self._gate.refuse(failure, self.began, backoff)


class KeyPool:
    """The keys of a provider: a call takes the one whose gate opens first, then the least busy one.

    Args:
        endpoint: where they are used.
        keys: at least one.

    Raises:
        AccessError: the folder for temporary files can't be used.
    """

    def __init__(self, endpoint: Endpoint, keys: tuple[Key, ...]) -> None:
        self._gates = [(key, find_gate(_digest(endpoint, key), endpoint.in_flight)) for key in keys]

    @contextmanager
    def turn(self, patience: Patience) -> Iterator[Turn]:
        """Wait for a key's gate and for a slot.

        Raises:
            ProviderError: no gate opens within the patience.
            AccessError: the folder for temporary files can't be used.
        """
        while True:
            with ExitStack() as held:
                with _CHOOSING:  # else many would choose the same key before any of them is counted
                    shut, key, gate = self._best()
                    held.enter_context(gate.chosen())
                if shut > 0:
                    patience.wait(shut)
                    continue
                held.enter_context(gate.slot())
                if gate.shut() > 0:  # while this call waited for the slot
                    continue
                yield Turn(key, time.monotonic(), gate)
                return

    def _best(self) -> tuple[float, Key, Gate]:
        """Return the seconds until a key's gate opens, the key, and its gate."""
        shut, _, number = min(
            (gate.shut(), gate.busy, number) for number, (_, gate) in enumerate(self._gates)
        )
        return shut, *self._gates[number]


_CHOOSING = Lock()  # of this process, as gates are: every client has a pool of its own, and the same gates


def keys_of(endpoint: Endpoint) -> tuple[Key, ...]:
    """Take the keys of a provider from the environment.

    Raises:
        ConfigError: a variable isn't set; names it.
    """
    if not endpoint.keys:
        return (_unnamed(endpoint),)
    return tuple(Key(name, _secret(name), endpoint.api_base) for name in endpoint.keys)


def require_keys(settings: Settings) -> None:
    """See that every variable that settings name is set.

    Raises:
        ConfigError: one isn't.
    """
    for model in ("", *(f"{provider}/" for provider in settings.providers)):
        keys_of(settings.endpoint(model))


def _unnamed(endpoint: Endpoint) -> Key:
    """Take the key from where litellm would look; a service of the operator's own may want none."""
    usual = f"{endpoint.provider or 'openai'}_API_KEY".upper()
    secret = os.environ.get(usual, "").strip()
    if secret:
        return Key(usual, secret, endpoint.api_base)
    return Key("", _NEEDLESS if endpoint.api_base else None, endpoint.api_base)


def _secret(variable: str) -> str:
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise ConfigError(
            f"{WHERE}.keys: the environment variable {variable} isn't set; set it, or take it out of the list"
        )
    return secret


def _digest(endpoint: Endpoint, key: Key) -> str:
    parts = canonical([endpoint.provider, endpoint.api_base or "", key.secret or ""])
    return hashlib.blake2b(parts, digest_size=16, person=b"envharness-key").hexdigest()
