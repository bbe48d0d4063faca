"""Driving: seeded random episodes, written down so that two can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import attrs
from attrs import define, field, frozen

from envharness_core.data import Action, Observation, StepResponse
from envharness_core.env import Env
from envharness_core.errors import LayerError
from envharness_core.events import Event
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.policies.random import draw
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack

STEPS = 12  # of a driven episode; most of what goes wrong shows in the first few


@frozen
class World:
    """A bridge and one of its tasks."""

    bridge: ComponentSpec
    task: str


@define
class Driver:
    """Draws actions from an environment's tools by a seed.

    A text argument is chosen from the lists of strings in the observation's data, such as admissible commands, and
    from ``texts``.
    """

    seed: int
    texts: tuple[str, ...] = ()
    _random: Random = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._random = Random(self.seed)

    def action(self, env: Env, observation: Observation) -> Action:
        """Draw the next action."""
        tool = self._random.choice(env.tools())
        texts = [*_offered(observation), *self.texts] or [""]
        return Action(tool.name, draw(tool.schema, self._random, texts))


def as_json(value: Any) -> JsonObject:
    """Return a frozen record of the contract as strict JSON.

    Raises:
        DataError: something in it isn't.
    """
    return copy_object(attrs.asdict(value))


def play(
    env: Env, task: str, driver: Driver, *, seed: int = 0, layer_seed: int | None = None, steps: int = STEPS
) -> list[Json]:
    """Play an episode and return everything that was seen, the verdict last."""
    options: JsonObject = {"task": task} if layer_seed is None else {"task": task, "layer_seed": layer_seed}
    first = env.reset(seed, options)
    return [as_json(first), *go_on(env, first.observation, driver, steps)]


def go_on(env: Env, observation: Observation, driver: Driver, steps: int = STEPS) -> list[Json]:
    """Play on for some steps, or to the end, and return everything that was seen, the verdict last."""
    tape: list[Json] = []
    for _ in range(steps):
        action = driver.action(env, observation)
        response = stepped(env, action)
        if response is None:
            tape.append({"action": str(action), "fault": "masks an end that can't be"})
            break
        tape.append({"action": str(action), "response": as_json(response), "state": seen_state(env)})
        if response.ended:
            break
        observation = response.observation
    return [*tape, as_json(env.evaluate())]


def perform(
    env: Env, task: str, actions: Sequence[Action], *, seed: int = 0, layer_seed: int | None = None
) -> list[Json]:
    """Reset and do the given actions, or those before the end: return everything that was seen, the verdict last."""
    options: JsonObject = {"task": task} if layer_seed is None else {"task": task, "layer_seed": layer_seed}
    return [as_json(env.reset(seed, options)), *do(env, actions)]


def do(env: Env, actions: Sequence[Action]) -> list[Json]:
    """Do the given actions, or those before the end, and return everything that was seen, the verdict last."""
    tape: list[Json] = []
    for action in actions:
        response = stepped(env, action)
        if response is None:
            break
        tape.append({"action": action.name, "response": as_json(response), "state": seen_state(env)})
        if response.ended:
            break
    return [*tape, as_json(env.evaluate())]


def ended(tape: Sequence[Json]) -> bool:
    """Whether the episode that ``go_on`` wrote down came to its end."""
    last: Any = tape[-2] if len(tape) > 1 else {}
    response = last.get("response") or {}
    return bool(response.get("terminated") or response.get("truncated"))


def stepped(env: Env, action: Action) -> StepResponse | None:
    """Do a step; None where a layer masks the end of a bridge that can't be resumed, which is refused rightly."""
    try:
        return env.step(action)
    except LayerError:
        if isinstance(env, Stack) and not env.capabilities.resumable and ended_inside(env.events()):
            return None
        raise


def seen_state(env: Env) -> JsonObject:
    """Return what hooks see of the world, as strict JSON."""
    return copy_object(env.get_env_state(), "state")


def snapshot(env: Env) -> JsonObject:
    """Return everything that can be asked of an environment without advancing it."""
    return {
        "observation": as_json(env.observe()),
        "state": seen_state(env),
        "verdict": as_json(env.evaluate()),
    }


def ended_inside(legs: Sequence[Sequence[Event]]) -> bool:
    """Whether the bridge that was stepped last ended its episode and wasn't resumed."""
    for events in legs:
        for event in reversed(events):
            if event.kind in ("resume", "reset"):
                break
            if event.kind == "step":
                if ends(event):
                    return True
                break
    return False


def ends(event: Event) -> bool:
    """Whether a step's event ended its bridge's episode."""
    response: Any = event.body["response"]
    return bool(response["terminated"] or response["truncated"])


def vandalise(value: Json) -> None:
    """Write to everything in a value that can be written to."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            vandalise(item)
            value[key] = "vandalised"
        value["vandal"] = True
    elif isinstance(value, list):
        for item in value:
            vandalise(item)
        value.append("vandalised")


def _offered(observation: Observation) -> list[str]:
    lists = [value for value in observation.data.values() if isinstance(value, list)]
    return [text for texts in lists for text in texts if isinstance(text, str)]
