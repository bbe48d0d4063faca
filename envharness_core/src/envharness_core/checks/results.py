"""Results: how a named check went, and how checks are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeAlias, TypeVar

from attrs import frozen

from envharness_core.errors import PLUGIN_FAULTS
from envharness_core.jsondata import Json, JsonObject

B = TypeVar("B")

Check: TypeAlias = Callable[[B], str | None]
"""Takes the bench, raises where the law is broken, and may return why it had nothing to check."""


@frozen
class CheckResult:
    """How a check went; ``detail`` says what is broken, or why there was nothing to check."""

    name: str
    law: str
    passed: bool
    detail: str = ""

    def as_json(self) -> JsonObject:
        """Return the result as plain data."""
        return {"name": self.name, "law": self.law, "passed": self.passed, "detail": self.detail}


class Broken(Exception):  # noqa: N818 - says what happened to a law
    """A law is broken; the message says how."""


def run_check(check: Check[B], bench: B) -> CheckResult:
    """Run one check; whatever it raises is a failure of what is checked."""
    law = (check.__doc__ or "").strip().split("\n")[0]
    name = check.__name__
    try:
        note = check(bench)
    except Broken as broken:
        return CheckResult(name, law, passed=False, detail=str(broken))
    except PLUGIN_FAULTS as error:
        return CheckResult(name, law, passed=False, detail=f"raised {type(error).__name__}: {error}")
    return CheckResult(name, law, passed=True, detail=note or "")


def require(condition: object, detail: str) -> None:
    """Break the law unless the condition holds."""
    if not condition:
        raise Broken(detail)


def fail(detail: str) -> NoReturn:
    """Break the law."""
    raise Broken(detail)


def require_same(expected: Json, got: Json, what: str) -> None:
    """Break the law where two values differ, naming the first place."""
    place = difference(expected, got)
    if place is not None:
        raise Broken(f"{what}: {place}")


def difference(expected: Json, got: Json, path: str = "") -> str | None:
    """Say where two values differ first, or return None where they don't."""
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() == got.keys():
        return _first(
            difference(expected[key], got[key], f"{path}.{key}" if path else key) for key in expected
        )
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = zip(expected, got, strict=True)
        return _first(difference(*pair, f"{path}[{index}]") for index, pair in enumerate(pairs))
    if type(expected) is type(got) and expected == got:
        return None
    return f"{path or 'value'}: expected {_shown(expected)}, got {_shown(got)}"


def _first(places: Iterable[str | None]) -> str | None:
    return next((place for place in places if place is not None), None)


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
