"""The zygote: one warm process that forks a worker for each stack and episode, and never runs designer code.

It ends when the runner's end of its control socket closes, however that happens, and its workers end with it.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import signal
import socket
import sys
from typing import NoReturn

from envharness_core.sandbox import lockdown, worker
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.dialect import BEHIND, MODULES
from envharness_core.sandbox.engine import Engine
from envharness_core.sandbox.orders import WARM, Refused, Retire, Retired, Spawn, Spawned, decode_order

_MOST = 1 << 16
_ENCODINGS = (
    "ascii",
    "cp1252",
    "idna",
    "latin-1",
    "punycode",
    "utf-16",
    "utf-32",
    "utf-8-sig",
    "unicode_escape",
)


def main(descriptor: int) -> None:
    """Serve orders on an inherited socket until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's
    control = socket.socket(fileno=descriptor)
    warm()
    sys.path[:] = sys.argv[:] = sys.orig_argv[:] = []  # where the runner lives is no worker's business
    gc.collect()
    gc.freeze()  # what is shared with the workers stays shared
    control.sendall(WARM)
    own = os.getpid()
    ended: dict[int, int] = {}
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(control, _MOST, 2)
        except ConnectionError:
            return
        if not message:
            return
        match decode_order(message):
            case Spawn() as order:
                ended.update(_swept())
                ended.pop(_spawn(control, order, descriptors, own), None)  # an id that is used again
            case Retire(pid):
                code = ended.pop(pid) if pid in ended else _waited(pid)
                control.sendall(p.encode(Retired(code)))


def warm() -> None:
    """Import everything that hooks may import, and what Python would import behind their backs."""
    for name in MODULES:
        importlib.import_module(name)
    for name in (*BEHIND, "__future__"):
        importlib.import_module(name)
    for name in _ENCODINGS:
        "a".encode(name)
    source = "class _Rules(Rules):\n    def filter_action(self, action, state):\n        return action\n"
    ast.parse(source)
    Engine([p.Source(source, 0)], resumable=False).begin()


def _spawn(control: socket.socket, order: Spawn, descriptors: list[int], own: int) -> int:
    """Fork a worker and say so; return its process id, or -1."""
    try:
        pid = os.fork()
    except OSError as error:
        pid, refusal = -1, Refused(f"no process can be forked: {error}")
    if pid == 0:
        _become_worker(order, descriptors, own)
    for descriptor in descriptors:
        os.close(descriptor)
    if pid < 0:
        control.sendall(p.encode(refusal))
    elif not hasattr(os, "pidfd_open"):
        control.sendall(p.encode(Spawned(pid)))
    else:
        pidfd = os.pidfd_open(pid)
        socket.send_fds(control, [p.encode(Spawned(pid))], [pidfd])
        os.close(pidfd)
    return pid


def _become_worker(order: Spawn, descriptors: list[int], zygote: int) -> NoReturn:
    try:
        lockdown.arrange_pipes(*descriptors)
        if order.probe:
            from envharness_core.sandbox.probe import report

            message: p.Message = report(zygote, lockdown.Limits(order.memory, order.reply))
        else:
            message = _locked(order, zygote)
        os.write(worker.WRITE, p.frame(p.NO_NONCE, message))
        if isinstance(message, p.Ready):
            worker.serve(order.reply, order.seconds)
    finally:
        os._exit(1)


def _locked(order: Spawn, zygote: int) -> p.Message:
    try:
        lockdown.wall(zygote, lockdown.Limits(order.memory, order.reply))
        if order.locked:
            lockdown.lock(zygote)
    except (lockdown.LockdownError, OSError) as error:
        return p.Unlocked(str(error))
    return p.Ready()


def _swept() -> dict[int, int]:
    """Reap the workers that ended unasked."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def _waited(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 1
