"""Errors: one tree, drawn in the module's docstring, that crosses processes intact."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from envharness_core import errors
from envharness_core.errors import (
    DataError,
    EnvHarnessError,
    PluginError,
    RulesError,
    SetupError,
    VerifierError,
    nearest,
    unknown,
)

EVERY: list[type[EnvHarnessError]] = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, EnvHarnessError)
]
ARGUMENTS: dict[type[EnvHarnessError], tuple[Any, ...]] = {
    DataError: ("data.numbers[2]", "nan is not a JSON number"),
    RulesError: ("filter_action", "contract", "expected an Action or Blocked, got NoneType"),
    SetupError: (3, 'do(text="look")', "ends the episode"),
}


@pytest.mark.parametrize("cls", EVERY)
def test_an_error_survives_pickling_and_copying(cls: type[EnvHarnessError]) -> None:
    error = cls(*ARGUMENTS.get(cls, ("what happened",)))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is cls
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_the_drawing_in_the_docstring_is_the_tree() -> None:
    drawn: list[tuple[str, str]] = []
    parents: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        name = next((cls.__name__ for cls in EVERY if cls.__name__ in line.replace("─", " ").split()), None)
        if name is not None and (not drawn or "──" in line):
            depth = line.index(name)
            parents[depth] = name
            above = [place for place in parents if place < depth]
            drawn.append((name, parents[max(above)] if above else "Exception"))
    assert drawn
    assert sorted(drawn) == sorted((cls.__name__, cls.__bases__[0].__name__) for cls in EVERY)


def test_who_must_act_is_told_by_the_class() -> None:
    assert issubclass(SetupError, PluginError)
    assert not issubclass(VerifierError, PluginError)


def test_an_unknown_name_comes_with_the_nearest_and_with_all() -> None:
    error = unknown("layer", "faultz", ["faults", "budget"], where="layers[0]")
    assert str(error) == "layers[0]: unknown layer 'faultz' (did you mean 'faults'?); known: budget, faults"
    assert str(unknown("task", "x", [])) == "unknown task 'x'; known: none"
    many = str(unknown("task", "x", [f"{number:02}" for number in range(30)]))
    assert "19, ... (30 in all)" in many
    assert nearest("nothing like it", ["faults"]) == ""
