"""A scripted model's service without its sockets: from what a request holds to what is sent, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import evolve, field, frozen

from envharness_core.errors import PLUGIN_FAULTS
from envharness_core.jsondata import Json, JsonObject
from envharness_core.testing.model_bodies import check_chat, embed, parse
from envharness_core.testing.model_faults import Fault, Limit, Refused, Strikes, Turns
from envharness_core.testing.model_said import Brain, Said, completion, event, events, request_words

Ending: TypeAlias = Literal["whole", "cut", "reset"]
"""How an answer's connection ends: as it should, closed before all is sent, or broken before anything is."""

_JSON, _EVENTS = "application/json", "text/event-stream; charset=utf-8"


@frozen
class Reply:
    """What is sent for one request.

    Args:
        status: the HTTP status.
        pieces: the body; each event of a stream is one piece.
        headers: further headers.
        stream: send the pieces as they are, each in its own chunk.
        ending: how it ends.
        wait_before: the piece before which nothing comes for a while; the head goes before all but the first.
        wait: for how many seconds.
        error: what went wrong: what the error object says, or the fault's kind; None where nothing did.
        body: the request's body; empty where that can't be read.
    """

    status: int
    pieces: tuple[bytes, ...]
    headers: Mapping[str, str] = field(factory=dict)
    stream: bool = False
    ending: Ending = "whole"
    wait_before: int = 0
    wait: float = 0.0
    error: str | None = None
    body: JsonObject = field(factory=dict)

    @property
    def content_type(self) -> str:
        """The type of what is sent."""
        return _EVENTS if self.stream else _JSON

    def half(self) -> tuple[bytes, ...]:
        """Return the first half of the body: never all of it, and something of it."""
        if self.stream:
            return self.pieces[: max(1, len(self.pieces) // 2)]
        whole = b"".join(self.pieces)
        return (whole[: len(whole) // 2],)


def refusal(fault: Fault) -> Reply:
    """Return the answer that is a fault and nothing else."""
    if fault.kind == "reset":
        return Reply(fault.status, (), ending="reset", wait=fault.delay, error="reset")
    if fault.kind == "garbage":
        text = "<html><body>Bad gateway</body></html>" if fault.body is None else fault.body
        return Reply(200, (text.encode(),), fault.headers, wait=fault.delay, error="garbage")
    told = fault.told()
    return Reply(fault.status, (told.encode(),), fault.headers, wait=fault.delay, error=fault.words)


def damaged(reply: Reply, fault: Fault) -> Reply:
    """Return an answer as a fault of kind ``cut``, ``short``, ``midway`` or ``stall`` leaves it."""
    hurt = evolve(reply, wait=fault.delay, headers={**reply.headers, **fault.headers}, error=fault.kind)
    if fault.kind == "stall":
        return evolve(hurt, wait_before=len(reply.half()) if reply.stream else 0)
    if fault.kind == "midway":
        told = json.dumps(fault.error())
        pieces = (*reply.half(), event(told)) if reply.stream else (told.encode(),)
        return evolve(hurt, pieces=pieces)
    if fault.kind == "cut" and not reply.stream:
        return evolve(hurt, ending="cut")
    return evolve(hurt, pieces=reply.half(), ending="cut" if fault.kind == "cut" else "whole")


class Service:
    """Answers requests; every thread may ask.

    Args:
        brain: decides what the model says.
        faults: what goes wrong; of several that are due, the first.
        keys: the keys that are accepted; empty accepts any, and none.
        limit: how many requests of a key are answered.
        models: the models that exist; empty accepts any name.
        context: how many words a model's context holds; None for any number.
    """

    def __init__(
        self,
        brain: Brain,
        faults: Sequence[Fault],
        *,
        keys: tuple[str, ...],
        limit: Limit | None,
        models: tuple[str, ...],
        context: int | None,
    ) -> None:
        self._brain, self._strikes, self._keys = brain, Strikes(faults), keys
        self._turns = None if limit is None else Turns(limit)
        self._models, self._context = models, context
        self._makers = {"/v1/chat/completions": self._chat, "/v1/embeddings": self._embeddings}

    def answer(self, method: str, path: str, key: str, raw: bytes) -> Reply:
        """Return what is sent for a request; asks the brain where nothing goes wrong before."""
        if self._keys and key not in self._keys:
            return refusal(Fault.bad_key())
        maker = self._makers.get(path) if method == "POST" else None
        if maker is None:
            return self._listing(path) if method == "GET" else _unknown_url(method, path)
        allowed, headers = self._turns.take(key) if self._turns else (True, {})
        reply = self._made(maker, raw) if allowed else _limited(raw)
        return evolve(reply, headers={**headers, **reply.headers})

    def _made(self, maker: Callable[[JsonObject], Reply], raw: bytes) -> Reply:
        body: JsonObject = {}
        try:
            body = parse(raw)
            damage = self._struck(body)
            made = maker(body)
        except Refused as refused:
            return evolve(refusal(refused.fault), body=body)
        return evolve(made if damage is None else damaged(made, damage), body=body)

    def _struck(self, body: JsonObject) -> Fault | None:
        """Return the fault that will damage the answer; one that replaces it is raised."""
        fault = self._strikes.strike(body)
        if fault is not None and not fault.asks_the_brain:
            raise Refused(fault)
        return fault

    def _chat(self, body: JsonObject) -> Reply:
        check_chat(body)
        self._check_model(body)
        if self._context is not None and request_words(body) > self._context:
            raise Refused(Fault.context_overflow(limit=self._context))
        said = self._asked(body)
        if isinstance(said, Said):
            return _written(body, said)
        if said.asks_the_brain:
            return damaged(_written(body, Said(said.body or "This answer was never meant to arrive.")), said)
        raise Refused(said)

    def _asked(self, body: JsonObject) -> Said | Fault:
        try:
            return self._brain(body)
        except PLUGIN_FAULTS as error:
            raise Refused(Fault(message=f"The brain raised {type(error).__name__}: {error}")) from error

    def _embeddings(self, body: JsonObject) -> Reply:
        written = embed(body)
        self._check_model(body)
        return Reply(200, (written,))

    def _check_model(self, body: JsonObject) -> None:
        if self._models and body["model"] not in self._models:
            raise Refused(Fault.no_such_model())

    def _listing(self, path: str) -> Reply:
        listed: dict[str, Json] = {
            name: {"id": name, "object": "model", "created": 0, "owned_by": "scripted"}
            for name in self._models or ("scripted",)
        }
        if path == "/v1/models":
            return _sent({"object": "list", "data": [*listed.values()]})
        model = listed.get(path.removeprefix("/v1/models/"))
        return _sent(model) if model else _unknown_url("GET", path)


def _written(body: JsonObject, said: Said) -> Reply:
    if body.get("stream"):
        return Reply(200, tuple(events(body, said)), stream=True)
    return Reply(200, (completion(body, said),))


def _limited(raw: bytes) -> Reply:
    try:
        body = parse(raw)
    except Refused:
        body = {}
    return evolve(refusal(Fault.rate_limited()), body=body)


def _unknown_url(method: str, path: str) -> Reply:
    return refusal(Fault(404, message=f"Unknown request URL: {method} {path}.", code="unknown_url"))


def _sent(value: Json) -> Reply:
    return Reply(200, (json.dumps(value).encode(),))
