"""The lockdown: what a worker gives up before it sees any designer's code.

Source: prctl(2), landlock(7), capabilities(7), setrlimit(2) and the kernel's headers; by ctypes, so that nothing has to
be installed. Parts are applied in the order in which each still can be; one that can't be is an error that names it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress

from attrs import frozen

from envharness_core.sandbox import seccomp
from envharness_core.sandbox.worker import READ, WRITE

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _DROP_BOUNDING, _NO_NEW_PRIVILEGES = 1, 4, 22, 24, 38
_SECCOMP_FILTER = 2
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION = 0x20080522
_NOBODY = 65534
_CPU_SECONDS = 600
_CAPABILITIES = 64


class LockdownError(Exception):
    """A part of the lockdown isn't available here."""


@frozen
class Limits:
    """What a worker may take: address space in bytes, and the length of a reply in bytes."""

    memory: int
    reply: int


def arrange_pipes(read: int, write: int) -> None:
    """Put the two pipes where a worker expects them and close every other descriptor."""
    high = [os.dup(read), os.dup(write)]
    while min(high) <= WRITE:
        high = [os.dup(descriptor) for descriptor in high]
    os.dup2(high[0], READ, inheritable=False)
    os.dup2(high[1], WRITE, inheritable=False)
    os.closerange(0, READ)
    os.closerange(WRITE + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = sys.__stdin__ = _Sink()  # type: ignore[misc, assignment]


def wall(zygote: int, limits: Limits) -> None:
    """Apply what holds in every mode: a session of its own, an empty environment, limits, death with the zygote."""
    with suppress(PermissionError):  # it leads a session already
        os.setsid()
    os.environ.clear()
    for name, value in (
        ("RLIMIT_AS", limits.memory),
        ("RLIMIT_CPU", _CPU_SECONDS),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NOFILE", 16),
        ("RLIMIT_STACK", 8 << 20),
    ):
        with suppress(ValueError, OSError, AttributeError):  # a stricter limit stands already
            later = value + 5 if name == "RLIMIT_CPU" else value  # so that the signal says which limit it was
            resource.setrlimit(getattr(resource, name), (value, later))
    die_with(zygote)


def lock(zygote: int) -> None:
    """Apply the rest: no identity, no privileges, no files, no network, no other processes.

    Raises:
        LockdownError: a part isn't available here.
    """
    drop_identity()
    die_with(zygote)  # a change of identity clears it
    no_new_privileges()
    restrict_files()
    filter_calls()
    prove()


def die_with(parent: int) -> None:
    """Have this process killed when the process that forked it ends."""
    if sys.platform == "linux":
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it ended before the line above


def drop_identity() -> None:
    """Give up user, groups and every capability, where there is something to give up."""
    if os.geteuid() == 0:
        for capability in range(_CAPABILITIES):
            _libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)
        with suppress(OSError):  # a container that maps one user only: without capabilities, root is nobody
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    header = struct.pack("II", _CAPABILITY_VERSION, 0)
    nothing = bytes(24)
    number = _CAPSET.get(os.uname().machine)
    if number is None or struct.calcsize("P") != 8:
        raise LockdownError(
            f"there is no lockdown for {os.uname().machine} with {struct.calcsize('P')}-byte pointers"
        )
    if _libc.syscall(number, header, nothing):
        raise LockdownError(f"capabilities can't be dropped ({_reason()})")
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    _prctl(_SET_DUMPABLE, 0)


def no_new_privileges() -> None:
    """Renounce privileges that a program could bring."""
    _prctl(_NO_NEW_PRIVILEGES, 1)


def landlock_version() -> int:
    """Return the version of Landlock that the kernel speaks; 0 for none."""
    return max(0, int(_libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)))


def restrict_files() -> None:
    """Deny every access to files, TCP ports, abstract sockets and processes outside, by Landlock."""
    version = landlock_version()
    if version < 1:
        raise LockdownError("Landlock isn't available (Linux 5.13 or newer, with landlock among its LSMs)")
    files = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        files |= (version >= since) << bit
    rules = struct.pack("QQQ", files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    descriptor = _libc.syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(size), 0)
    if descriptor < 0 or _libc.syscall(_LANDLOCK_RESTRICT, descriptor, 0):
        raise LockdownError(f"Landlock refused ({_reason()})")
    os.close(descriptor)


def filter_calls() -> None:
    """Allow the few system calls that a worker needs, by seccomp."""
    if not seccomp.supported():
        raise LockdownError(f"there is no seccomp filter for {os.uname().machine}")
    code = seccomp.program(READ, WRITE)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.addressof(buffer))
    if _libc.prctl(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(filter_), 0, 0):
        raise LockdownError(f"seccomp filters aren't available ({_reason()})")


def prove() -> None:
    """Try what must fail now.

    Raises:
        LockdownError: it didn't.
    """
    for what, attempt in _FORBIDDEN:
        with suppress(PermissionError):
            attempt()
            raise LockdownError(f"the lockdown doesn't hold: {what} is still possible")


_FORBIDDEN: tuple[tuple[str, Callable[[], object]], ...] = (
    ("opening a file", lambda: os.open("/", os.O_RDONLY)),
    ("a socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
    ("signalling the parent", lambda: os.kill(os.getppid(), 0)),
)


class _Sink:
    """Where a designer's ``print`` goes: nowhere."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Forget a text."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _loaded() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        libc.syscall.restype = ctypes.c_long
    return libc


_libc = _loaded()


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise LockdownError(f"prctl {option} failed ({_reason()})")


def _reason() -> str:
    return os.strerror(ctypes.get_errno())
