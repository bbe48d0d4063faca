"""Upstream's engine, untouched, as ALFWorld itself starts it."""

from __future__ import annotations

from typing import Any

from envharness_bridge_alfworld.engine.messages import Shown


class StockGames:
    """One upstream environment, in which any number of games are played one after another."""

    def __init__(self) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
        from textworld.envs.pddl.pddl import PddlEnv

        infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
        self._bare = PddlEnv(infos)
        self._env: Any = AlfredInfos(AlfredDemangler(self._bare, shuffle=False))
        self._loaded: str | None = None

    def begin(self, key: str, game: dict[str, Any]) -> Shown:
        """Start a game; one that isn't the last one is loaded first."""
        if key != self._loaded:
            self._loaded = None
            self._env.load(game)
            self._loaded = key
        return self._shown(self._env.reset(), understood=True)

    def do(self, command: str) -> Shown:
        """Do a command."""
        state, _, _ = self._env.step(command)
        return self._shown(state, understood=self._bare._last_action is not None)

    def plan(self) -> list[str] | None:
        """Ask the planner."""
        return list(self._bare._pddl_state.replan(self._bare._entity_infos)) or None

    def _shown(self, state: Any, *, understood: bool) -> Shown:
        held = {
            self._bare._entity_infos[fact.arguments[-1].name].name
            for fact in self._bare._pddl_state.facts
            if fact.name == "holds"
        }
        return Shown(
            state["feedback"],
            list(state["admissible_commands"]),
            bool(state["won"]),
            sorted(held),
            understood,
        )
