"""Setup: an episode that starts after some actions have been done."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen, validators

from envharness_core.data import Action, ResetResponse, StepResponse
from envharness_core.env import Env
from envharness_core.errors import SetupError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.layer import Layer
from envharness_core.tools import Toolbox


@frozen
class SetupConfig:
    """The actions that a Setup replays, in order; at least one."""

    actions: tuple[Action, ...] = field(validator=validators.min_len(1))


class Setup(Layer[SetupConfig]):
    """Replays actions after each reset, then says that the replay is over: the agent starts from there.

    The replay is charged to nobody. An action that a layer inside blocks is skipped and listed in the reset's
    ``info["setup"]``, one object for each Setup of the stack, innermost first.
    """

    def __init__(self, inner: Env, config: SetupConfig) -> None:
        super().__init__(inner, config)
        toolbox = Toolbox(tuple(inner.tools()))
        for index, action in enumerate(config.actions):
            problem = toolbox.problem_with(action)
            if problem is not None:
                raise SetupError(index, str(action), f"malformed: {problem}")

    def reset(self, seed: int, options: Mapping[str, Json]) -> ResetResponse:
        replays = options.get("replays")
        told = {**options, "replays": 1 + (replays if isinstance(replays, int) else 0)}
        response = super().reset(seed, told)
        blocked: list[Json] = []
        for index, action in enumerate(self.config.actions):
            if self._replay(index, action).info.get("blocked") is not None:
                blocked.append(index)
        self.inner.notify_replay_complete()
        done: JsonObject = {"actions": len(self.config.actions), "blocked": blocked}
        earlier = response.info.get("setup")
        setups: list[Json] = [*(earlier if isinstance(earlier, list) else []), done]
        return ResetResponse(self.inner.observe(), response.instruction, {**response.info, "setup": setups})

    def _replay(self, index: int, action: Action) -> StepResponse:
        response = self.inner.step(action)
        if "malformed" in response.info:
            raise SetupError(index, str(action), f"malformed: {response.info['malformed']}")
        if response.ended:
            raise SetupError(index, str(action), "ends the episode")
        if "handoff" in response.info:
            raise SetupError(index, str(action), "crosses into the next leg of a link")
        return response
