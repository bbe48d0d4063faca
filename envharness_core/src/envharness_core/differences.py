"""Differences between two pieces of plain data, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from envharness_core.jsondata import Json


def differences(old: Json, new: Json, path: str = "", now: str = "now") -> Iterator[str]:
    """Yield ``path: old (now new)`` for each value that differs; lists of unequal length differ as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key, now)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]", now)
    elif old != new:
        yield f"{path}: {old!r} ({now} {new!r})"
