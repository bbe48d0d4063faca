"""A worker process of the local executor: plays what comes down its connection until that closes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from attrs import evolve

from envharness_core.episode import EpisodeSpec, Record
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.trajectory import compressed

GAVE_UP = 75
"""The exit code of a worker that handed in an episode that hangs."""

ORPHANED = 76
"""The exit code of a worker whose runner has gone."""

BEAT_SECONDS = 5.0
"""How often a worker says that it lives."""

_LOOK_SECONDS = 0.25
_HELD_SECONDS = 0.02  # how long a record waits for others to travel with


class Worker:
    """Plays specs one after another, and watches over itself from a second thread."""

    def __init__(self, channel: Connection, plugins: Plugins) -> None:
        self._channel = channel
        self._player = Player(plugins)
        self._sending = threading.Lock()
        self._done: list[Record] = []
        self._busy = False

    def serve(self) -> None:
        """Play the specs that arrive, several at a time, and answer with their records until the connection closes."""
        threading.Thread(target=self._watch, daemon=True).start()
        with self._player:
            while True:
                try:
                    specs = self._channel.recv()
                    self._busy = True
                    self._play(specs)
                    self._busy = False
                except (
                    EOFError,
                    ConnectionError,
                ):  # the parent has gone, or doesn't want the answer any more
                    return

    def _play(self, specs: list[EpisodeSpec]) -> None:
        sent = time.monotonic()
        for spec in specs:
            record = self._player.play(spec)
            with self._sending:
                self._done.append(evolve(record, blob=compressed(record.blob)))
            if time.monotonic() - sent > _HELD_SECONDS:
                self._send()
                sent = time.monotonic()
        self._send()

    def _watch(self) -> None:
        """Say now and then that this process lives; hand in an episode that hangs, and end with it."""
        beaten, parent = time.monotonic(), os.getppid()
        while True:
            time.sleep(_LOOK_SECONDS)
            if os.getppid() != parent:  # killed: nobody waits for what is played here
                os._exit(ORPHANED)
            try:
                record = self._player.overdue()
                if record is not None:
                    self._done.append(evolve(record, blob=compressed(record.blob)))
                    self._send()
                    os._exit(GAVE_UP)
                if self._busy and time.monotonic() - beaten > BEAT_SECONDS:
                    beaten = time.monotonic()
                    self._send()
            except OSError:  # the main thread notices too
                return

    def _send(self) -> None:
        """Hand in what is done, in order; nothing is a sign of life."""
        with self._sending:
            done, self._done = self._done, []
            self._channel.send(done)


def main() -> None:
    """Serve on the inherited descriptor that the command line names.

    The first message is the plugin modules, what the user chose about sandbox and plugins, and the run folder.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it closes the channel
    with Connection(int(sys.argv[1])) as channel:
        try:
            modules, sandbox, settings, folder = channel.recv()
        except EOFError:
            return
        plugins = Plugins(modules, sandbox=sandbox).working_in(folder, settings)
        Worker(channel, plugins).serve()


if __name__ == "__main__":
    main()
