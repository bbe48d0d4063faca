"""A worker: serves one run of layers for one episode, locked down, over two pipes."""

from __future__ import annotations

import os
import signal
from types import CodeType

from envharness_core.errors import RulesError
from envharness_core.hooks import HOOKS
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.dialect import FILENAME
from envharness_core.sandbox.engine import Engine
from envharness_core.sandbox.faults import OutOfTimeError, fault_of
from envharness_core.sandbox.static import problems

READ, WRITE = 3, 4
"""The descriptors of a worker's two pipes, the only ones that it has."""

_CHUNK = 1 << 16
_SOFT = 0.8  # of a call's time: when the worker itself gives a call up, before the runner does


def serve(longest: int, seconds: float) -> None:
    """Answer requests until the runner closes the pipe; whatever is caught becomes a fault.

    Args:
        longest: bytes that a reply may have.
        seconds: CPU seconds that a call may take.
    """
    server = Server(longest, seconds)
    while True:
        nonce, request = p.decode_request(_received())
        _send(server.answered(nonce, request))


class Server:
    """What a worker keeps: its engine, once that has begun.

    Args:
        longest: bytes that a reply may have.
        seconds: CPU seconds that a call may take. Code that catches everything, or hangs in C, meets the runner's own
            deadline.
    """

    def __init__(self, longest: int, seconds: float) -> None:
        self._longest = longest
        self._seconds = seconds
        signal.signal(signal.SIGPROF, self._late)
        self._engine = Engine((), resumable=False)

    def answered(self, nonce: int, request: p.Request) -> bytes:
        """Return the frame that answers a request."""
        try:
            signal.setitimer(signal.ITIMER_PROF, self._seconds * _SOFT)
            try:
                framed = p.frame(nonce, self._done(request))
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except BaseException as error:  # noqa: BLE001 - a designer's code may raise anything at all
            return p.frame(nonce, self._fault(error))
        if len(framed) > self._longest:
            size = f"what it returned takes {len(framed):,} bytes; {self._longest:,} are allowed"
            return p.frame(nonce, self._fault(RulesError(self._engine.at[1], "contract", size)))
        return framed

    def _late(self, number: int, frame: object) -> None:
        raise OutOfTimeError(f"it takes longer than the {self._seconds:g} CPU seconds of a call")

    def _fault(self, error: BaseException) -> p.Fault:
        engine = self._engine
        return fault_of(error, engine.at, [source.code for source in engine.sources], self._hook())

    def _done(self, request: p.Request) -> p.Reply:
        match request:
            case p.Begin(sources, resumable):
                return self._begun(sources, resumable=resumable)
        engine = self._engine
        match request:
            case p.Before(action, state):
                return engine.before(action, state)
            case p.After():
                return engine.after(request)
            case p.Reset(observation, state):
                return engine.reset(observation, state)
            case p.Renew():
                engine.renew()
            case p.Show(shown):
                engine.show(shown)
            case p.Recall():
                return p.Shown(engine.shown())
        return p.Done()

    def _begun(self, sources: list[p.Source], *, resumable: bool) -> p.Reply:
        self._engine = Engine(sources, resumable=resumable)
        for index, source in enumerate(sources):
            if source.check:
                self._engine.at = (index, "source")
                fault = self._looked_at(index, source.code)
                if fault is not None:
                    return fault
        return self._engine.begin()

    def _looked_at(self, index: int, code: str) -> p.Fault | None:
        found = problems(code)
        if not found:
            return None
        kind = "forbidden" if all(problem.forbidden for problem in found) else "compile"
        told = "; ".join([found[0].text, *(f"line {other.line}: {other.text}" for other in found[1:5])])
        return p.Fault(index, "source", kind, told, found[0].line, "")

    def _hook(self) -> CodeType | None:
        """Return the code of the hook that ran last, to say where it stands."""
        index, name = self._engine.at
        if name not in HOOKS or index >= len(self._engine.layers):
            return None
        owner: object = self._engine.layers[index].hooks.owner
        code = getattr(getattr(type(owner), name, None), "__code__", None)
        return code if isinstance(code, CodeType) and code.co_filename == FILENAME else None


def _received() -> memoryview:
    """Return the body of one frame, in as few reads as can be."""
    data = _read()
    while len(data) < p.LENGTH.size:
        data += _read()
    (length,) = p.LENGTH.unpack_from(data)
    parts, missing = [data], length + p.LENGTH.size - len(data)
    while missing > 0:
        parts.append(_read())
        missing -= len(parts[-1])
    return memoryview(data if len(parts) == 1 else b"".join(parts))[p.LENGTH.size :]


def _read() -> bytes:
    data = os.read(READ, _CHUNK)
    if not data:
        os._exit(0)  # the runner has gone
    return data


def _send(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(WRITE, view) :]
