"""A worker process of the local executor: plays what comes down its connection until that closes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from envharness_core.episode import Record
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.trajectory import compressed

GAVE_UP = 75
"""The exit code of a worker that handed in an episode that hangs."""

BEAT_SECONDS = 5.0
"""How often a worker says that it lives."""

_LOOK_SECONDS = 0.25


class Worker:
    """Plays specs one after another, and watches over itself from a second thread."""

    def __init__(self, channel: Connection, plugins: Plugins) -> None:
        self._channel = channel
        self._player = Player(plugins)
        self._sending = threading.Lock()
        self._busy = False

    def serve(self) -> None:
        """Play the specs that arrive, and answer each with its record, until the connection closes."""
        threading.Thread(target=self._watch, daemon=True).start()
        with self._player as player:
            while True:
                try:
                    spec = self._channel.recv()
                    self._busy = True
                    self._send(player.play(spec))
                    self._busy = False
                except (
                    EOFError,
                    ConnectionError,
                ):  # the parent has gone, or doesn't want the answer any more
                    return

    def _watch(self) -> None:
        """Say now and then that this process lives; hand in an episode that hangs, and end with it."""
        beaten = time.monotonic()
        while True:
            time.sleep(_LOOK_SECONDS)
            try:
                record = self._player.overdue()
                if record is not None:
                    self._send(record)
                    os._exit(GAVE_UP)
                if self._busy and time.monotonic() - beaten > BEAT_SECONDS:
                    beaten = time.monotonic()
                    self._send(None)
            except OSError:  # the main thread notices too
                return

    def _send(self, record: Record | None) -> None:
        message = None if record is None else Record(record.episode, compressed(record.blob))
        with self._sending:
            self._channel.send(message)


def main() -> None:
    """Serve on the inherited descriptor that the command line names.

    The first message is the plugin modules and what the user chose about the rules sandbox.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it closes the channel
    with Connection(int(sys.argv[1])) as channel:
        try:
            modules, sandbox = channel.recv()
        except EOFError:
            return
        Worker(channel, Plugins(modules, sandbox=sandbox)).serve()


if __name__ == "__main__":
    main()
