"""What Ctrl-C does to long work: the first lets what is being played end, the second stops at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import click

from envharness_core.campaigns.schedule import DrainedError
from envharness_core.errors import ProviderError, RunError


@contextmanager
def kept_what_ended() -> Iterator[None]:
    """Say how a run that stops early goes on, and end with 130 where somebody stopped it, else with 3."""
    try:
        yield
    except (KeyboardInterrupt, DrainedError):
        click.echo("interrupted; what had ended is kept: run the same command to go on", err=True)
        raise click.exceptions.Exit(130) from None
    except (RunError, ProviderError) as error:
        click.echo(f"envharness: {error}; what had ended is kept", err=True)
        raise click.exceptions.Exit(3) from None


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
