"""The client: asks models for whoever needs one, within the limits of their services and the operator's patience."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TypeAlias, TypeVar

from attrs import evolve

from envharness_core.jsondata import JsonObject
from envharness_core.session import Session
from envharness_llm.backoff import Backoff, Patience
from envharness_llm.cassette import Cassette, Vectors
from envharness_llm.failure import Failure
from envharness_llm.keys import Key, KeyPool, keys_of, require_keys
from envharness_llm.messages import Answer, Request, Role
from envharness_llm.provider import Provider
from envharness_llm.settings import Settings

T = TypeVar("T")

Call: TypeAlias = Callable[[Key], T | Failure]
"""Asks a service once."""

_BATCH = 96  # texts that every service embeds in one call


class Client:
    """Asks models; cheap to make, and threads may share it.

    All clients of this user on this machine that use the same key stay within its limits together. An answer that is
    on the cassette costs no call.

    Args:
        settings: how models are reached.
        session: where the record of calls lies.
        backoff: how long to wait where a service doesn't say.

    Raises:
        ConfigError: an environment variable isn't set, or the record of calls can't be used.
    """

    def __init__(self, settings: Settings, session: Session, backoff: Backoff | None = None) -> None:
        self._settings = settings
        self._backoff = backoff or Backoff()
        self._provider = Provider(settings)
        self._pools: dict[str, KeyPool] = {}
        self._lock = Lock()
        cassette = evolve(settings.cassette, mode="replay") if session.replaying else settings.cassette
        if cassette.mode != "replay":
            require_keys(settings)
        self._cassette = Cassette.of(cassette, session.folder)

    @classmethod
    def of(cls, session: Session) -> Client:
        """Make the client that a session's operator set up.

        Raises:
            ConfigError: a field of ``[settings.llm]`` is wrong, an environment variable isn't set, or the record of
                calls can't be used.
        """
        return cls(Settings.of(session), session)

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request, whose usage whoever asks has to account for.

        Raises:
            ProviderError: the service failed for longer than the operator's patience, or refuses this call.
            AccessError: it refuses the key, the account or the model; or a file that calls need can't be used.
            ContextError: the conversation doesn't fit into the model.
        """

        def asked() -> Answer:
            return self._reach(
                request.params.model, request.role, lambda key: self._provider.complete(request, key)
            )

        return asked() if self._cassette is None else self._cassette.answer(request, asked)

    def embed(self, model: str, texts: Sequence[str], role: Role = "embedder") -> Vectors:
        """Return a vector for each text, in order, and what they cost; in batches.

        Raises:
            ProviderError: as ``ask``.
            AccessError: as ``ask``.
            ContextError: a text is too long for the model.
        """
        vectors: list[list[float]] = []
        usage: JsonObject = {}
        for start in range(0, len(texts), _BATCH):
            some, used = self._embed(model, texts[start : start + _BATCH], role)
            vectors += some
            usage = _sum(usage, used)
        return vectors, usage

    def close(self) -> None:
        """Let go of the record of calls; a later call takes it up again."""
        if self._cassette is not None:
            self._cassette.close()

    def _embed(self, model: str, texts: Sequence[str], role: Role) -> Vectors:
        def asked() -> Vectors:
            return self._reach(model, role, lambda key: self._provider.embed(model, texts, key))

        return asked() if self._cassette is None else self._cassette.vectors(model, texts, role, asked)

    def _reach(self, model: str, role: Role, call: Call[T]) -> T:
        """Call until there is an answer, or no use in calling."""
        pool = self._pool(model)
        patience = Patience(model, self._settings.patience)
        failed = 0
        while True:
            key, got = self._take_turn(pool, patience, role, call)
            if not isinstance(got, Failure):
                return got
            if got.kind == "limited":
                continue
            failed += 1
            delay = self._backoff.delay(failed, got.wait)
            if got.kind != "broken" or failed > self._settings.retries or not patience.allows(delay):
                raise got.error(model, key.variable, failed)
            patience.wait(delay)

    def _take_turn(
        self, pool: KeyPool, patience: Patience, role: Role, call: Call[T]
    ) -> tuple[Key, T | Failure]:
        """Call once, when it is this call's turn, and tell all others on the same key what came of it."""
        with pool.turn(patience) as turn:
            got = call(turn.key)
            facts: dict[str, object] = {"model": patience.model, "role": role}
            facts["seconds"] = round(time.monotonic() - turn.began, 3)
            facts["waited"] = round(patience.waited, 3)
            if not isinstance(got, Failure):
                turn.served()
                _log("debug", "model_called", facts | (dict(got.usage) if isinstance(got, Answer) else {}))
            elif got.kind == "limited":
                rest = turn.refused(got, self._backoff)
                _log("info", "model_limited", facts | {"key": turn.key.variable, "rest": round(rest, 3)})
            else:
                _log("info", "model_failed", facts | {"kind": got.kind, "problem": got.text})
        return turn.key, got

    def _pool(self, model: str) -> KeyPool:
        endpoint = self._settings.endpoint(model)
        with self._lock:
            if endpoint.provider not in self._pools:
                self._pools[endpoint.provider] = KeyPool(endpoint, keys_of(endpoint))
            return self._pools[endpoint.provider]


def _sum(one: JsonObject, other: JsonObject) -> JsonObject:
    total = dict(one)
    for name, amount in other.items():
        so_far = total.get(name, 0)
        if isinstance(amount, int | float) and isinstance(so_far, int | float):
            total[name] = so_far + amount
    return total


def _log(level: str, event: str, facts: Mapping[str, object]) -> None:
    """Log what happened to a call; where nobody has configured logging, nothing is said."""
    import structlog  # with rich behind it, which not everybody needs

    if structlog.is_configured():
        getattr(structlog.get_logger(), level)(event, **facts)
