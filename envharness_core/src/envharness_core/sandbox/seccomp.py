"""The seccomp filter: the system calls that a locked worker may make, as a BPF program.

Source: seccomp(2), the kernel's ``linux/filter.h`` and ``asm/unistd.h``. The program is a list of 8-byte instructions
over ``struct seccomp_data``: the call's number at offset 0, the architecture at 4, the arguments from 16 on.
"""

from __future__ import annotations

import errno
import platform
import struct

_X86_64 = {
    "read": 0, "write": 1, "close": 3, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
    "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28,
    "setitimer": 38, "getpid": 39, "exit": 60, "gettimeofday": 96, "getppid": 110, "sigaltstack": 131, "gettid": 186,
    "time": 201, "clock_gettime": 228, "exit_group": 231,
    "getrandom": 318,
}  # fmt: skip
_AARCH64 = {
    "close": 57, "read": 63, "write": 64, "exit": 93, "exit_group": 94,
    "setitimer": 103, "clock_gettime": 113, "sched_yield": 124,
    "sigaltstack": 132,
    "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "gettimeofday": 169, "getpid": 172,
    "getppid": 173, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226,
    "madvise": 233, "getrandom": 278,
}  # fmt: skip
ARCHITECTURES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
"""By machine: the audit number, and the numbers of the allowed calls."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
_NUMBER, _ARCHITECTURE, _FIRST, _THIRD = 0, 4, 16, 32
_EXECUTABLE = 4  # PROT_EXEC
_CLOCKS = 16  # MAX_CLOCKS


def supported() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() in ARCHITECTURES


def program(read: int, write: int) -> bytes:
    """Return the filter for a worker that reads from one descriptor and writes to another.

    Everything that isn't allowed fails with EPERM; a call by another architecture's numbers kills the process.
    """
    audit, calls = ARCHITECTURES[platform.machine()]
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, audit, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if platform.machine() == "x86_64":
        code += [_instruction(_AT_LEAST, _X32, 0, 1), _instruction(_RETURN, _KILL)]
    code += _only_on(calls["read"], read) + _only_on(calls["write"], write)
    code += _never_executable(calls["mmap"]) + _never_executable(calls["mprotect"])
    code += _own_clock(calls["clock_gettime"])
    for name in sorted(calls.keys() - {"read", "write", "mmap", "mprotect", "clock_gettime"}):
        code += [_instruction(_EQUAL, calls[name], 0, 1), _instruction(_RETURN, _ALLOW)]
    return b"".join([*code, _instruction(_RETURN, _ERRNO | errno.EPERM)])


def _only_on(call: int, descriptor: int) -> list[bytes]:
    return [
        _instruction(_EQUAL, call, 0, 4),
        _instruction(_LOAD, _FIRST),
        _instruction(_EQUAL, descriptor, 1, 0),
        _instruction(_RETURN, _ERRNO | errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]


def _own_clock(call: int) -> list[bytes]:
    """Allow the system's clocks alone: those of other processes have greater numbers, and would tell that they live."""
    return [
        _instruction(_EQUAL, call, 0, 4),
        _instruction(_LOAD, _FIRST),
        _instruction(_AT_LEAST, _CLOCKS, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]


def _never_executable(call: int) -> list[bytes]:
    return [
        _instruction(_EQUAL, call, 0, 4),
        _instruction(_LOAD, _THIRD),
        _instruction(_ANY_BIT, _EXECUTABLE, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)
