"""The engine's process: answers requests for one game at a time, and keeps those that it knows ready."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from envharness_bridge_alfworld.engine import messages
from envharness_bridge_alfworld.engine.cache import Cache
from envharness_bridge_alfworld.engine.grammar import GameError
from envharness_bridge_alfworld.engine.messages import Answer, Begin, Do, Plan, Planned, Shown, Unknown

_SEEN = 32
"""Games whose files are kept."""


class _Games(Protocol):
    def begin(self, key: str, game: dict[str, Any]) -> Shown: ...

    def do(self, command: str) -> Shown: ...

    def plan(self) -> list[str] | None: ...


def serve(options: dict[str, Any]) -> Callable[[bytes], bytes]:
    """Return the handler of an engine.

    Args:
        options: ``engine``, ``fast`` or ``stock``; ``cache``, a folder or None.
    """
    if options["engine"] == "stock":
        from envharness_bridge_alfworld.engine.stock import StockGames

        return _Server(StockGames()).answer
    from envharness_bridge_alfworld.engine.fast import FastGames

    folder = options["cache"]
    return _Server(FastGames(None if folder is None else Cache(Path(folder)))).answer


class _Server:
    """Answers requests; knows which games it has seen, so that their files needn't be sent again."""

    def __init__(self, games: _Games) -> None:
        self._games = games
        self._seen: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def answer(self, request: bytes) -> bytes:
        """Answer one request."""
        return messages.encode(self._answered(messages.decode_request(request)))

    def _answered(self, request: messages.Request) -> Answer:
        match request:
            case Begin(key, None) if key not in self._seen:
                return Unknown()
            case Begin(key, game):
                if game is not None:
                    self._seen[key] = json.loads(game)
                    while len(self._seen) > _SEEN:
                        self._seen.popitem(last=False)
                self._seen.move_to_end(key)
                return self._games.begin(key, self._seen[key])
            case Do(command):
                return self._games.do(command)
            case Plan():
                return Planned(self._games.plan())
        raise GameError(f"{request!r} is no request")
