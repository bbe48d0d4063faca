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

_READY = 32
"""Games that are kept ready; each takes a few MB."""


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
    folder = options["cache"]
    return _Server(FastGames(None if folder is None else Cache(Path(folder)))).answer


class FastGames:
    """Any number of games on one copy of upstream's library.

    Args:
        cache: where compiled games are kept, or None.
    """

    def __init__(self, cache: Cache | None = None) -> None:
        import fast_downward

        self._library = fast_downward.load_lib()
        self._cache = cache
        self._ready: OrderedDict[str, Any] = OrderedDict()
        self._source: dict[str, Any] = {}
        self._playing: Any = None

    def begin(self, key: str, game: dict[str, Any]) -> Shown:
        """Start a game; one that isn't ready is compiled, or loaded from the cache."""
        if key not in self._ready:
            from envharness_bridge_alfworld.engine.play import FastGame

            self._ready[key] = FastGame(self._compiled(key, game), self._library)
            while len(self._ready) > _READY:
                self._ready.popitem(last=False)
        self._ready.move_to_end(key)
        self._source, self._playing = game, self._ready[key]
        return self._playing.begin()  # type: ignore[no-any-return]

    def do(self, command: str) -> Shown:
        """Do a command."""
        return self._playing.do(command)  # type: ignore[no-any-return]

    def plan(self) -> list[str] | None:
        """Ask the planner, for whom the game is translated once more."""
        from envharness_bridge_alfworld.engine.compile import translate

        _, sas = translate(self._source["pddl_domain"], self._source["pddl_problem"], optimise=True)
        return self._playing.plan(sas)  # type: ignore[no-any-return]

    def _compiled(self, key: str, game: dict[str, Any]) -> Any:
        found = None if self._cache is None else self._cache.get(key)
        if found is None:
            from envharness_bridge_alfworld.engine.compile import compile_game

            found = compile_game(game, self._library)
            if self._cache is not None:
                self._cache.put(key, found)
        return found


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
                    while len(self._seen) > _READY:
                        self._seen.popitem(last=False)
                self._seen.move_to_end(key)
                return self._games.begin(key, self._seen[key])
            case Do(command):
                return self._games.do(command)
            case Plan():
                return Planned(self._games.plan())
        raise GameError(f"{request!r} is no request")
