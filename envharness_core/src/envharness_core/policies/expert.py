"""Expert: does what the bridge itself says solves the task."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from envharness_core.data import Action, Observation
from envharness_core.errors import ConfigError, unknown
from envharness_core.policy import Ask, Policy, Reply
from envharness_core.tools import Tool


@frozen
class ExpertConfig:
    """Which of the bridge's solutions to play.

    Args:
        way: one of the bridge's ways; empty for its first.
        again: whether to ask before each action and do the first of what is said, instead of once at the start: for
            worlds that layers change on the way, and for links.
    """

    way: str = ""
    again: bool = False


class Expert(Policy[ExpertConfig]):
    """Plays the bridge's own solution: for gold checks, scaffolds and tests, and never an agent to compare with.

    Where what it said is done and the episode goes on, it calls nothing and says so, until the step limit ends the
    episode. Where the way knows none, the episode says nothing: it is a ``policy_error``. What it knows stands in no
    reply but as actions.
    """

    privileged = True
    repeats = True

    def __init__(self, config: ExpertConfig | None = None) -> None:
        super().__init__(config or ExpertConfig())
        self._ask: Ask = lambda _: None
        self._planned: list[Action] = []

    def consult(self, ask: Ask, ways: tuple[str, ...]) -> None:
        way = self.config.way
        if not ways:
            raise ConfigError("policy: the expert plays a bridge's own solutions, and this bridge knows none")
        if way and way not in ways:
            raise unknown("way", way, ways, where="policy.way")
        self._ask = ask

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        self._planned = [] if self.config.again else self._asked()

    def act(self, observation: Observation) -> Reply:
        if self.config.again:
            self._planned = self._asked()
        if not self._planned:
            return Reply((), problem="the bridge's solution has nothing to do from here")
        return Reply((self._planned.pop(0),))

    def _asked(self) -> list[Action]:
        found = self._ask(self.config.way)
        if found is None:
            way = f"by {self.config.way!r}" if self.config.way else "by its first way"
            raise ConfigError(
                f"the bridge knows no solution {way} from here; perhaps it knows one by another way"
            )
        return list(found)
