"""The fast engine: compiled games on one copy of upstream's library."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import fast_downward

from envharness_bridge_alfworld.engine.cache import Cache
from envharness_bridge_alfworld.engine.compiled import CompiledGame
from envharness_bridge_alfworld.engine.grammar import GameError
from envharness_bridge_alfworld.engine.messages import Shown
from envharness_bridge_alfworld.engine.play import FastGame

_READY = 32
"""Games that are kept ready; each takes a few MB."""


class FastGames:
    """Any number of games on one copy of upstream's library.

    Args:
        cache: where compiled games are kept, or None.
    """

    def __init__(self, cache: Cache | None = None) -> None:
        self._library = fast_downward.load_lib()
        self._cache = cache
        self._ready: OrderedDict[str, FastGame] = OrderedDict()
        self._source: dict[str, Any] = {}
        self._playing: FastGame | None = None

    def begin(self, key: str, game: dict[str, Any]) -> Shown:
        """Start a game; one that isn't ready is compiled, or loaded from the cache."""
        if key not in self._ready:
            self._ready[key] = FastGame(self._compiled(key, game), self._library)
            while len(self._ready) > _READY:
                self._ready.popitem(last=False)
        self._ready.move_to_end(key)
        self._source, self._playing = game, self._ready[key]
        return self._playing.begin()

    def do(self, command: str) -> Shown:
        """Do a command."""
        return self._begun().do(command)

    def plan(self) -> list[str] | None:
        """Ask the planner, for whom the game is translated once more."""
        from envharness_bridge_alfworld.engine.compile import translate

        _, sas = translate(self._source["pddl_domain"], self._source["pddl_problem"], optimise=True)
        return self._begun().plan(sas)

    def _begun(self) -> FastGame:
        if self._playing is None:
            raise GameError("no game has begun")
        return self._playing

    def _compiled(self, key: str, game: dict[str, Any]) -> CompiledGame:
        found = None if self._cache is None else self._cache.get(key)
        if found is None:
            from envharness_bridge_alfworld.engine.compile import compile_game

            found = compile_game(game, self._library)
            if self._cache is not None:
                self._cache.put(key, found)
        return found
