"""Short memory: a history that the agent sees only the end of."""

from __future__ import annotations

from attrs import field, frozen, validators

from envharness_core.data import EnvState, Observation
from envharness_core.jsondata import Json
from envharness_core.layers.rules import Rules


@frozen
class ShortMemoryConfig:
    """How much of the history is shown.

    Args:
        key: the list of strings in ``observation.data`` that holds the history, oldest first.
        keep: how many of its last entries are shown, 0 or more.
    """

    key: str = field(validator=validators.min_len(1))
    keep: int = field(validator=validators.ge(0))


class ShortMemory(Rules[ShortMemoryConfig]):
    """Shows only the last entries of a history, in the observation's data and in its text.

    Of the text, the lines that show a dropped entry go, as many as there are entries, from the top.
    """

    def filter_observation(self, observation: Observation, env_state: EnvState) -> Observation:
        history = observation.data.get(self.config.key)
        if not isinstance(history, list) or len(history) <= self.config.keep:
            return observation
        cut = len(history) - self.config.keep
        data = {**observation.data, self.config.key: history[cut:]}
        return Observation(_without(observation.text, history[:cut]), data)


def _without(text: str, entries: list[Json]) -> str:
    lines = text.split("\n")
    start = 0
    for entry in entries:
        for index in range(start, len(lines)):
            if isinstance(entry, str) and entry in lines[index]:
                del lines[index]
                start = index
                break
    return "\n".join(lines)
