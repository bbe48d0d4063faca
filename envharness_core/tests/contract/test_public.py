"""What is public is importable, complete and sorted; importing it loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import envharness_core
from envharness_core import testing

HEAVY = (
    "rich",
    "structlog",
    "cattrs",
    "hypothesis",
    "pytest",
    "sqlite3",
    "click",
    "pluggy",
    "msgspec",
    "multiprocessing",
)


def test_the_package_is_the_installed_one() -> None:
    assert envharness_core.__file__ is not None


@pytest.mark.parametrize("module", [envharness_core, testing], ids=["core", "testing"])
def test_all_is_sorted_importable_and_complete(module: object) -> None:
    names: list[str] = module.__all__  # type: ignore[attr-defined]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(module, name) is not None
    homes: dict[str, str] = module._HOMES  # type: ignore[attr-defined]
    assert set(names) == set(homes) | ({"__version__"} if "__version__" in names else set())
    assert list(homes) == sorted(homes)
    assert dir(module) == names
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("module", [envharness_core, testing], ids=["core", "testing"])
def test_what_type_checkers_see_is_what_runs(module: object) -> None:
    source = Path(str(module.__file__)).read_text()  # type: ignore[attr-defined]
    typed = {
        alias.name: str(node.module)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("envharness_core")
        for alias in node.names
    }
    package: str = module.__name__  # type: ignore[attr-defined]
    homes: dict[str, str] = module._HOMES  # type: ignore[attr-defined]
    assert typed == {name: f"{package}.{home}" for name, home in homes.items()}
    for name, home in typed.items():
        assert vars(import_module(home))[name] is getattr(module, name)


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import envharness_core", HEAVY),
        ("import envharness_core.testing", HEAVY),
        (
            "from envharness_core import Component, Layer",
            ("rich", "cattrs", "hypothesis", "pytest", "sqlite3", "click"),
        ),
        ("import envharness_core.contract", ("rich", "hypothesis", "pytest", "sqlite3", "click")),
        ("import envharness_core.plugin", ("rich", "cattrs", "hypothesis", "pytest", "sqlite3", "click")),
    ],
)
def test_importing_loads_nothing_heavy(statement: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print(*[name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
    assert ran.stderr == ""
