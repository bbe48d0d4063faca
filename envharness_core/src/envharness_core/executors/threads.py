"""Threads: plays episodes at once in this process, for policies that wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue

from attrs import field, frozen, validators

from envharness_core.episode import EpisodeSpec, Record
from envharness_core.errors import ConfigError
from envharness_core.executor import LOOK_SECONDS, Executor
from envharness_core.kinds import BRIDGE
from envharness_core.player import Player
from envharness_core.plugins import Plugins

_PATIENCE = 10.0  # seconds for threads to end what they play, when nobody wants it any more


@frozen
class ThreadsConfig:
    """How many episodes to play at once.

    Args:
        threads: at least 1.
    """

    threads: int = field(default=16, validator=[validators.ge(1), validators.le(4096)])


class Threads(Executor[ThreadsConfig]):
    """Plays episodes at once in threads of this process: for policies that wait for a model, not for the processor.

    Each thread has stacks and policies of its own. A thread can't be killed: an episode that hangs holds its thread,
    and is ended only by its own steps' limits. A bridge that needs a process of its own is refused.
    """

    def run(self, jobs: Iterator[EpisodeSpec | None], plugins: Plugins) -> Iterator[Record]:
        crew = _Crew(plugins)
        fits: set[str] = set()
        more = True
        try:
            while more or crew.playing:
                while more and crew.playing < self.config.threads:
                    try:
                        job = next(jobs)
                    except StopIteration:
                        more = False
                        break
                    if job is None:
                        break
                    _require_threads(plugins, job, fits)
                    crew.play(job)
                record = crew.next() if crew.playing else None
                if record is not None:
                    yield record
        finally:
            crew.dismiss()


class _Crew:
    """Threads that play, each with a player of its own, which never leaves its thread."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._todo: SimpleQueue[EpisodeSpec | None] = SimpleQueue()
        self._done: SimpleQueue[Record | BaseException] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.playing = 0

    def play(self, spec: EpisodeSpec) -> None:
        """Have an idle thread play an episode, or a new one."""
        if self.playing == len(self._threads):
            thread = threading.Thread(target=self._work, name="envharness-episode", daemon=True)
            self._threads.append(thread)
            thread.start()
        self.playing += 1
        self._todo.put(spec)

    def next(self) -> Record | None:
        """Wait for an episode to end; None where none does for a while."""
        try:
            ended = self._done.get(timeout=LOOK_SECONDS)
        except Empty:
            return None
        self.playing -= 1
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def dismiss(self) -> None:
        """End the threads; one that hangs ends with the process."""
        for _ in self._threads:
            self._todo.put(None)
        until = time.monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        with Player(self._plugins) as player:
            while True:
                spec = self._todo.get()
                if spec is None:
                    return
                try:
                    self._done.put(player.play(spec))
                except BaseException as error:  # noqa: BLE001 - what a policy may raise past every border
                    self._done.put(error)


def _require_threads(plugins: Plugins, spec: EpisodeSpec, fits: set[str]) -> None:
    """Refuse a bridge that needs a process of its own, once for each."""
    bridge = spec.design.bridge
    if bridge.use in fits:
        return
    made = plugins.create(BRIDGE, bridge, "bridge")
    try:
        if made.capabilities.worker == "process":
            raise ConfigError(
                f"executor: {bridge.use} needs a process of its own: use the executor local instead of threads"
            )
    finally:
        made.close()
    fits.add(bridge.use)
