"""A worker process of the local executor: plays what comes down its connection until that closes."""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection

from envharness_core.episode import Record
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.trajectory import compressed


def serve(channel: Connection) -> None:
    """Play the specs that arrive, and answer each with its record; the first message is the plugin modules
    and what the user chose about the rules sandbox."""
    modules, sandbox = channel.recv()
    plugins = Plugins(modules, sandbox=sandbox)
    with Player(plugins) as player:
        while True:
            try:
                spec = channel.recv()
                record = player.play(spec)
                channel.send(Record(record.episode, compressed(record.blob)))
            except (EOFError, ConnectionError):  # the parent has gone, or doesn't want the answer any more
                return


def main() -> None:
    """Serve on the inherited descriptor that the command line names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it closes the channel
    with Connection(int(sys.argv[1])) as channel:
        serve(channel)


if __name__ == "__main__":
    main()
