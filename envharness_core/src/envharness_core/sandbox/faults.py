"""Faults: what went wrong in a designer's code, told so that the designer can mend it."""

from __future__ import annotations

import errno
from types import CodeType

from envharness_core.errors import RulesError, nearest
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.dialect import FILENAME, IN_SCOPE, MODULES, ForbiddenImportError
from envharness_core.text import printable

LONGEST = 2000
"""Characters of a fault's detail and of its trace."""

_FRAMES = 4
_WALLED = (errno.EPERM, errno.EACCES)


class OutOfTimeError(BaseException):
    """A call took too long; raised inside of it, so that the designer learns where."""


def fault_of(error: BaseException, at: tuple[int, str], sources: list[str], hook: CodeType | None) -> p.Fault:
    """Describe what was caught.

    Args:
        error: what was raised.
        at: the layer and the hook that ran.
        sources: the layers' code.
        hook: that hook's own code, for where there is no traceback into it.
    """
    index, name = at
    source = sources[index] if index < len(sources) else ""
    detail, kind = _told(error), _kind(error)
    frames = _frames(error)
    if isinstance(error, RulesError):
        name, detail = error.hook, error.detail
        detail = _told(error.__cause__) if error.kind == "raised" and error.__cause__ else detail
    if isinstance(error, SyntaxError):
        fence = "; give the code alone, without a Markdown fence" if source.lstrip().startswith("```") else ""
        said: object = error.msg
        line = error.lineno if isinstance(error.lineno, int) and 0 < error.lineno < 1_000_000 else None
        return _clipped(
            index, name, "compile", (said if isinstance(said, str) else "invalid syntax") + fence, line, ""
        )
    if name == "source" and not frames:
        kind = "compile"
        if isinstance(error, MemoryError | RecursionError):
            detail = "it is nested too deeply"
    line = frames[-1][0] if frames else (hook.co_firstlineno if hook is not None else None)
    return _clipped(index, name, kind, detail + _hint(error, kind), line, _trace(frames, source))


def _kind(error: BaseException) -> str:
    cause = error
    if isinstance(error, RulesError):
        if error.kind != "raised" or error.__cause__ is None:
            return error.kind
        cause = error.__cause__
    if isinstance(cause, MemoryError):
        return "memory"
    if isinstance(cause, OutOfTimeError):
        return "timeout"
    if isinstance(cause, ForbiddenImportError):
        return "forbidden"
    if isinstance(cause, OSError) and cause.errno in _WALLED:
        return "forbidden"
    return "raised"


def _told(error: BaseException) -> str:
    if isinstance(error, OutOfTimeError):
        return str(error)
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - a designer's exception may raise anything while it is printed
        text = "which can't be printed"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _hint(error: BaseException, kind: str) -> str:
    cause = error.__cause__ or error
    if kind == "memory":
        return "; the rules may take only so much memory: keep less"
    if kind == "forbidden" and isinstance(cause, OSError):
        return "; files, processes, the network and sleeping are out of reach in the rules sandbox"
    if isinstance(cause, NameError) and isinstance(cause.name, str):
        return "; import it first" if cause.name in MODULES else nearest(cause.name, IN_SCOPE)
    if type(cause).__name__ == "FrozenInstanceError":
        return "; data is frozen: return a new one, as in evolve(observation, text=...)"
    return ""


def _frames(error: BaseException) -> list[tuple[int, str]]:
    """Return line and function of each frame in the designer's code, outermost first."""
    cause: BaseException = error
    if isinstance(error, RulesError) and error.__cause__ is not None:
        cause = error.__cause__
    found = []
    trace = cause.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILENAME:
            found.append((trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return found[:1] + found[1:][-_FRAMES + 1 :]


def _trace(frames: list[tuple[int, str]], source: str) -> str:
    lines = source.split("\n")
    told = []
    for line, function in frames:
        text = lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
        told.append(f"line {line}, in {function}: {text}")
    return "\n".join(told)


def _clipped(layer: int, hook: str, kind: str, detail: str, line: int | None, trace: str) -> p.Fault:
    return p.Fault(layer, hook, kind, printable(detail[:LONGEST]), line, printable(trace[:LONGEST]))
