"""Engines: processes that play games, taken for an episode and given back, so that what they know stays warm."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec
from attrs import define, field, frozen

from envharness_bridge_alfworld.engine import messages
from envharness_bridge_alfworld.engine.messages import Begin, Do, Message, Plan, Planned, Shown, Unknown
from envharness_core.child import Child
from envharness_core.errors import BridgeError

EngineKind: TypeAlias = Literal["fast", "stock"]

_SERVE = "envharness_bridge_alfworld.engine.serve:serve"
_IDLE = 64
"""Engines that are kept while nobody plays on them."""
_LARGEST = 2048
"""MB of memory above which an engine isn't used again."""

M = TypeVar("M", bound=Message)


@frozen
class Setting:
    """What decides which engines are alike.

    Args:
        kind: ``fast``, or ``stock``, upstream's own.
        cache: the folder of compiled games, or None.
    """

    kind: EngineKind
    cache: str | None


class Engine:
    """A process with upstream's engine in it; plays one game at a time.

    Args:
        setting: which engine.
        seconds: how long it may take for an answer.

    Raises:
        BridgeError: it can't be started.
    """

    def __init__(self, setting: Setting, seconds: float) -> None:
        self.setting = setting
        self.played: str | None = None
        """The key of the game that was played last."""
        options = {"engine": setting.kind, "cache": setting.cache}
        # upstream makes this folder when it is imported, whatever it is called
        quiet = {"ALFWORLD_DATA": tempfile.gettempdir()}
        self._child = Child(_SERVE, dict(options), seconds=seconds, environment=quiet)

    @property
    def pid(self) -> int:
        """Its process's id."""
        return self._child.pid

    @property
    def reusable(self) -> bool:
        """Whether another episode may be played on it."""
        return self._child.alive and megabytes(self._child.pid) < _LARGEST

    def begin(self, key: str, game: bytes, seconds: float) -> Shown:
        """Start a game anew.

        Args:
            key: stands for the contents of the game's file.
            game: those contents.
            seconds: how long it may take.

        Raises:
            BridgeError: the engine failed, and is closed.
        """
        answer = self._ask(Begin(key, None), seconds)
        if isinstance(answer, Unknown):
            answer = self._ask(Begin(key, game), seconds)
        self.played = key
        return self._expected(answer, Shown)

    def do(self, command: str, seconds: float) -> Shown:
        """Do a command."""
        return self._expected(self._ask(Do(command), seconds), Shown)

    def plan(self, seconds: float) -> list[str] | None:
        """Return the planner's commands from here, or None."""
        return self._expected(self._ask(Plan(), seconds), Planned).commands

    def close(self) -> None:
        """End the process; idempotent."""
        self._child.close()

    def _ask(self, request: messages.Request, seconds: float) -> messages.Answer:
        try:
            return messages.decode_answer(self._child.ask(messages.encode(request), seconds))
        except msgspec.MsgspecError as error:
            self.close()
            raise BridgeError(f"ALFWorld's engine answered nonsense: {error}") from error
        except BridgeError as error:
            self.close()  # what it holds is anyone's guess
            raise BridgeError(f"ALFWorld's engine failed: {error}{_advice(error)}") from error

    def _expected(self, answer: messages.Answer, kind: type[M]) -> M:
        if isinstance(answer, kind):
            return answer
        self.close()
        raise BridgeError(f"ALFWorld's engine answered with {type(answer).__name__}")


@define
class Engines:
    """The engines of this process that nobody plays on; any thread may take and give."""

    _idle: list[Engine] = field(factory=list)
    _lock: threading.Lock = field(factory=threading.Lock)

    def take(self, setting: Setting, key: str, seconds: float) -> Engine:
        """Return an engine, preferably one that has just played this game; makes one where none is idle.

        Raises:
            BridgeError: none can be started.
        """
        while (engine := self._pop(setting, key)) is not None:
            if engine.reusable:
                return engine
            engine.close()
        return Engine(setting, seconds)

    def give(self, engine: Engine) -> None:
        """Take an engine back; one that can't be used again is ended."""
        with self._lock:
            kept = len(self._idle) < _IDLE and engine.reusable
            if kept:
                self._idle.append(engine)
        if not kept:
            engine.close()

    def close(self) -> None:
        """End all engines that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for engine in idle:
            engine.close()

    def _pop(self, setting: Setting, key: str) -> Engine | None:
        with self._lock:
            fitting = [engine for engine in self._idle if engine.setting == setting]
            if not fitting:
                return None
            engine = next((one for one in fitting if one.played == key), fitting[-1])
            self._idle.remove(engine)
            return engine


@cache
def shared() -> Engines:
    """Return this process's engines: process-wide because processes are, and warm for every stack that comes."""
    return Engines()


def _advice(error: BridgeError) -> str:
    late = "no answer within" in str(error)
    return (
        "; the bridge's option seconds allows more (the planner may take minutes in a large room)"
        if late
        else ""
    )


def _after_fork() -> None:
    shared.cache_clear()  # the engines are the parent's


with suppress(AttributeError):  # where there is no fork
    os.register_at_fork(after_in_child=_after_fork)


def megabytes(pid: int) -> float:
    """Return the memory that a process takes; 0 where nobody knows."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return 0.0
