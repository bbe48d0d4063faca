"""Replaying: what reached the bridges of a stack, done again on bare ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from envharness_core.chain import Chain
from envharness_core.checks.drive import as_json
from envharness_core.checks.results import require_same
from envharness_core.env import Bridge
from envharness_core.events import Event
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import BRIDGE
from envharness_core.plugins import Plugins
from envharness_core.stacks import Stack


def require_bare_verdict(plugins: Plugins, stack: Stack, what: str) -> None:
    """Break the law unless bare bridges, given what reached the stack's, answer and grade alike."""
    claimed = as_json(stack.evaluate())
    verdicts: list[JsonObject | None] = []
    for chain, events in zip(_chains(stack.chain), stack.events(), strict=True):
        with plugins.create(BRIDGE, chain.bridge, "bridge") as bare:
            responses, verdict = replay(bare, events)
        recorded: list[Json] = [event.body["response"] for event in events if event.kind == "step"]
        require_same(recorded, responses, f"{what}: responses of {chain.bridge.use}, replayed on a bare one")
        verdicts.append(cast("JsonObject | None", verdict))
    success = all(verdict is not None and verdict["success"] for verdict in verdicts)
    score = min(0.0 if verdict is None else cast("float", verdict["score"]) for verdict in verdicts)
    shown: Json = [claimed["success"], claimed["score"]]
    require_same([success, score], shown, f"{what}: the verdict, replayed on a bare bridge")


def replay(bridge: Bridge, events: Sequence[Event]) -> tuple[list[Json], Json]:
    """Do what reached a bridge again on a bare one: return the steps' responses, and the verdict at the end.

    The verdict is None where nothing reached it.
    """
    responses: list[Json] = []
    for event in events:
        body: Any = event.body
        match event.kind:
            case "reset":
                bridge.reset(body["seed"], body["options"])
            case "step":
                responses.append(as_json(bridge.step(event.action)))
            case "notify":
                bridge.notify_replay_complete()
            case "resume":
                bridge.resume()
            case "evaluate":
                bridge.evaluate()
    return responses, as_json(bridge.evaluate()) if events else None


def _chains(chain: Chain) -> Iterator[Chain]:
    yield chain
    for leg in chain.legs:
        yield from _chains(leg)
