"""What can be chosen about ALFWorld."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import Attribute, field, frozen, validators

from envharness_bridge_alfworld.engines import EngineKind, Setting
from envharness_bridge_alfworld.goals import TASK_TYPES
from envharness_core.errors import nearest

NO_CACHE = "off"

_COUNT = [validators.instance_of(int), validators.ge(1)]


def _known_types(_: object, attribute: Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    for kind in value:
        if kind not in TASK_TYPES:
            known = ", ".join(TASK_TYPES)
            raise ValueError(
                f"{attribute.name}: {kind!r} is no task type{nearest(kind, TASK_TYPES)}; known: {known}"
            )


@frozen
class ALFWorldConfig:
    """What can be chosen about ALFWorld.

    Args:
        data: the folder of the games (``alfworld-download`` makes it), or ``generated`` for games that are made up.
            None takes ``$ALFWORLD_DATA`` where that is set, else upstream's usual folder where it is there, else
            ``generated``.
        types: the task types to offer; empty for all six.
        style: ``listed`` ends the observation's text with the admissible commands; ``raw`` is the engine's text alone.
        max_steps: after how many commands an episode is truncated; None leaves that to the run's limits.
        max_repeats: how many times in a row a command may change nothing that is seen before the episode is truncated;
            None for any number.
        engine: ``fast``, or ``stock`` for upstream's own code throughout; they show the same, to the character.
        cache: the folder in which games are kept compiled (``fast`` alone); ``off`` for none. None takes
            ``envharness/alfworld`` in the user's folder for caches.
        generated: how many generated games each split has.
        generated_seed: decides which.
        seconds: how long the engine may take for an answer, loading a game included.
    """

    data: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    types: tuple[str, ...] = field(default=(), validator=_known_types)
    style: str = field(default="listed", validator=validators.in_(("listed", "raw")))
    max_steps: int | None = field(default=None, validator=validators.optional(_COUNT))
    max_repeats: int | None = field(default=None, validator=validators.optional(_COUNT))
    engine: EngineKind = field(default="fast", validator=validators.in_(("fast", "stock")))
    cache: str | None = None
    generated: int = field(default=60, validator=[*_COUNT, validators.le(100_000)])
    generated_seed: int = 0
    seconds: float = field(default=120.0, validator=[validators.gt(0.0), validators.le(86_400.0)])

    @property
    def setting(self) -> Setting:
        """Which engines play this."""
        if self.engine == "stock" or self.cache == NO_CACHE:
            return Setting(self.engine, None)
        return Setting(self.engine, str(Path(self.cache).expanduser()) if self.cache else _usual_cache())


def _usual_cache() -> str | None:
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(home) if home else Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    return str(folder / "envharness" / "alfworld")
