"""The other side of ``child``: serves what comes down its channel until that closes, or until its owner has gone."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from envharness_core.child import DONE, FRAME, RAISED

Handler: TypeAlias = Callable[[bytes], bytes]
"""Answers a request."""

_ORPHANED = 76
_WORDS = 2000  # characters
_LARGEST = 1 << 30  # bytes of any file, so that what is printed can't fill a disk


def serve(channel: socket.socket, target: str) -> None:
    """Make the handler with the options that come first, and answer until the channel closes."""
    handler: Handler | None = None
    while (request := _request(channel)) is not None:
        try:
            if handler is None:
                module, _, name = target.partition(":")
                handler = getattr(import_module(module), name)(json.loads(request))
                kind, answer = DONE, b""
            else:
                kind, answer = DONE, handler(request)
        except Exception as error:  # noqa: BLE001 - the border of whatever runs here
            kind, answer = RAISED, _words(error).encode(errors="replace")
        channel.sendall(FRAME.pack(kind, len(answer)) + answer)


def _request(channel: socket.socket) -> bytes | None:
    head = _received(channel, FRAME.size)
    return None if head is None else _received(channel, FRAME.unpack(head)[1])


def _received(channel: socket.socket, length: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < length:
        part = channel.recv(min(1 << 20, length - len(parts)))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _words(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {error}"
    said = said if len(said) <= _WORDS else f"{said[:_WORDS]}..."
    return f"{said} [{frame.name} ({frame.filename}:{frame.lineno})]"


def _end_with_owner(descriptor: int) -> None:
    """End this process as soon as the other end is closed, whatever it is doing."""
    hangs_up = select.poll()
    hangs_up.register(descriptor, getattr(select, "POLLRDHUP", select.POLLHUP))
    hangs_up.poll()
    os._exit(_ORPHANED)


def main() -> None:
    """Serve on the inherited descriptor that the command line names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's: it closes the channel
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = _LARGEST if most == resource.RLIM_INFINITY else min(_LARGEST, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    descriptor, target = int(sys.argv[1]), sys.argv[2]
    del sys.argv[1:]  # some upstreams read them
    channel = socket.socket(fileno=descriptor)
    threading.Thread(target=_end_with_owner, args=[descriptor], daemon=True).start()
    serve(channel, target)


if __name__ == "__main__":
    main()
