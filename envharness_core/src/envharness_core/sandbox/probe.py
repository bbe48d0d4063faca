"""The probe: what of the lockdown holds on this machine, found out by trying, in a worker of its own."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from envharness_core.sandbox import lockdown
from envharness_core.sandbox import protocol as p


class Report(p.Message):
    """What was found: ``(what, holds, detail)`` each."""

    parts: list[tuple[str, bool, str]]


def report(zygote: int, limits: lockdown.Limits) -> Report:
    """Apply each part of the lockdown, then try what it should prevent; the process is of no more use afterwards."""
    version = lockdown.landlock_version()
    steps: tuple[tuple[str, Callable[[], object], str], ...] = (
        ("process wall, limits, empty environment", lambda: lockdown.wall(zygote, limits), "applied"),
        ("user and capabilities dropped", lockdown.drop_identity, "applied"),
        ("dies with the runner", lambda: lockdown.die_with(zygote), "parent-death signal"),
        ("no new privileges", lockdown.no_new_privileges, "applied"),
        ("Landlock denies files and TCP", lockdown.restrict_files, f"version {version}"),
        ("seccomp allows a few system calls", lockdown.filter_calls, os.uname().machine),
    )
    parts = [_applied(*step) for step in steps]
    parts += [_tried(what, attempt) for what, attempt in _ATTEMPTS]
    return Report(parts)


def _applied(what: str, apply: Callable[[], object], detail: str) -> tuple[str, bool, str]:
    try:
        apply()
    except (lockdown.LockdownError, OSError) as error:
        return what, False, str(error)
    return what, True, detail


def _tried(what: str, attempt: Callable[[], object]) -> tuple[str, bool, str]:
    try:
        attempt()
    except OSError as error:
        refused = error.errno in (errno.EPERM, errno.EACCES)
        return f"tried: {what}", refused, error.strerror or str(error)
    return f"tried: {what}", False, "it worked"


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.connect(("127.0.0.1", 9))


def _write() -> None:
    path = f"/tmp/envharness-probe-{os.getpid()}"  # noqa: S108 - it mustn't come to be
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)  # noqa: PTH108 - the same calls as anybody's


def _signal() -> None:
    with suppress(ProcessLookupError):
        os.kill(os.getppid(), 0)


_ATTEMPTS: tuple[tuple[str, Callable[[], object]], ...] = (
    ("read a file", lambda: os.open("/", os.O_RDONLY)),
    ("write a file", _write),
    ("use the network", _connect),
    ("fork", _fork),
    ("run a program", lambda: os.execv(sys.executable, [sys.executable, "-c", ""])),  # noqa: S606
    ("signal another process", _signal),
)
