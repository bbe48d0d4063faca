"""What Ctrl-C does to long work: the first lets what is being played end, the second stops at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import click


@contextmanager
def draining() -> Iterator[Event]:
    """Have the first Ctrl-C set an event; the next one interrupts as usual."""
    stop = Event()

    def first(number: int, frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, usual)
        click.echo("stopping when what is being played has ended; Ctrl-C again stops at once", err=True)

    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # ignored, as under nohup, or somebody's own
        yield stop
        return
    signal.signal(signal.SIGINT, first)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)
