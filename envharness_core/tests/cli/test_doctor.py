"""``envharness doctor BRIDGE``: what a bridge needs, asked of its class alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from envharness_core.cli.doctor_command import command
from envharness_core.errors import ConfigError, PluginError

PLUGIN = ("--plugin", "needy=needy_bridges")


def asked(*args: str) -> Result:
    return CliRunner().invoke(command, [*PLUGIN, *args], standalone_mode=False)


def answer(*args: str) -> Any:
    done = asked(*args, "--json")
    return done.return_value, json.loads(done.stdout)


def test_a_bridge_that_needs_nothing_says_so_in_a_line() -> None:
    done = asked("toy24")
    assert done.return_value is None
    first, second = done.stdout.splitlines()
    assert first.startswith("bridge core/toy24 of plugin 'core' (envharness-core ")
    assert second == "needs nothing beyond its package"
    assert answer("toy24") == (
        None,
        {"bridge": "core/toy24", "config": {}, "holds": True, "needs": []},
    )


def test_it_is_asked_although_it_cant_be_made() -> None:
    done = asked('{use = "needy/needy", data = "/games"}')
    assert done.return_value == 1
    assert done.stdout.splitlines()[1:] == [
        "ok      engine: version 3",
        "MISSING games: none in /games: download them,",
        "        or name another folder",
    ]
    code, told = answer('{use = "needy/needy", data = "/games"}')
    assert (code, told["holds"]) == (1, False)
    assert told["config"] == {"data": "/games"}
    assert [(row["part"], row["holds"]) for row in told["needs"]] == [("engine", True), ("games", False)]
    assert asked('{use = "needy/needy", data = "here"}').return_value is None


def test_a_package_that_cant_be_imported_is_a_finding_with_its_install_line() -> None:
    done = asked("needy/absent")
    assert done.return_value == 1
    assert "MISSING package: plugin 'needy'" in done.stdout
    assert "ModuleNotFoundError" in done.stdout
    assert "pip install 'needy[engine]'" in done.stdout


def test_a_bridge_that_a_function_makes_cant_be_asked() -> None:
    assert "needs nothing beyond its package" in asked("needy/made").stdout


def test_what_its_doctor_prints_stays_out_of_the_json() -> None:
    assert answer("needy/loud")[1]["holds"]


@pytest.mark.parametrize(
    ("args", "kind", "says"),
    [
        (["toy25"], ConfigError, "bridge: unknown bridge 'toy25' (did you mean 'toy24'?)"),
        (['{use = "needy/needy", dat = "x"}'], ConfigError, "bridge (needy/needy): unknown key 'dat'"),
        (['{use = "needy/needy"'], ConfigError, "neither a name, an inline TOML table nor JSON"),
        (["needy/ill"], PluginError, "bridge needy/ill: doctor raised ZeroDivisionError"),
        (["needy/odd"], PluginError, "bridge needy/odd: doctor must return Findings, got ['games']"),
    ],
)
def test_whose_mistake_it_is(args: list[str], kind: type[Exception], says: str) -> None:
    done = asked(*args)
    assert isinstance(done.exception, kind)
    assert says in str(done.exception)
