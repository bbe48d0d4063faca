"""Finding and loading plugins: guarded, lazy, and with errors that name who must act."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envharness_core.errors import ConfigError, NameConflict, PluginError
from envharness_core.kinds import BRIDGE, KINDS, LAYER
from envharness_core.plugins import Plugins, short_name
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write an importable module of a name that no other test uses."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def module(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text(f"from envharness_core import *\n{source}")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return module


def distribution(folder: Path, name: str, version: str, module: str) -> None:
    """Install a distribution whose entry point claims the plugin name ``weather``."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[envharness]\nweather = {module}\n")


BROKEN = "import no_such_dependency\n"
WEATHER = """
class Rain(Layer):
    "Makes everything wet."

@hookimpl
def envharness_layers():
    yield Component(name="rain", factory=Rain)
    yield Component(name="weather", factory="no_such_module:Storm", install="pip install 'weather[storm]'")
"""


def test_a_broken_plugin_is_listed_with_its_cause_and_breaks_nothing_else(write: Write) -> None:
    plugins = Plugins({"broken": write("broken_one", BROKEN), "weather": write("weather_one", WEATHER)})
    rows = {row.source.name: row for row in plugins.listing()}
    assert (
        "can't be imported: ModuleNotFoundError: No module named 'no_such_dependency'" in rows["broken"].error
    )
    assert "put the module beside the config or into this folder, or on PYTHONPATH" in rows["broken"].error
    assert rows["weather"].error == ""
    assert plugins.find(LAYER, "weather/rain").summary == "Makes everything wet."
    with build_stack(plugins, ComponentSpec("toy24"), [ComponentSpec("weather/rain")]) as stack:
        assert stack.layers[0].use == "weather/rain"


def test_naming_a_broken_plugin_is_fatal(write: Write) -> None:
    plugins = Plugins({"broken": write("broken_two", BROKEN)})
    for _ in range(2):
        with pytest.raises(PluginError, match=r"plugin 'broken' \(module broken_two\) can't be imported"):
            plugins.find(LAYER, "broken/anything")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "@hookimpl\ndef envharness_layer():\n    yield\n",
            "there is no hook 'envharness_layer' (did you mean 'envharness_layers'?)",
        ),
        ("@hookimpl\ndef envharness_layers(plugins):\n    yield\n", "a hook takes no arguments"),
        (
            "@hookimpl\ndef envharness_layers():\n    yield 'faults'\n",
            "must yield Component(name=..., factory=...), got str",
        ),
        ("@hookimpl\ndef envharness_layers():\n    1 / 0\n", "envharness_layers raised ZeroDivisionError"),
        ("@hookimpl\ndef envharness_layers():\n    pass\n", "envharness_layers raised TypeError"),
        (
            "@hookimpl\ndef envharness_layers():\n    yield Component('Bad Name', Layer)\n",
            "raised ValueError",
        ),
        (
            "@hookimpl\ndef envharness_layers():\n    yield Component('a', Layer)\n    yield Component('a', Layer)\n",
            "registers layer 'a' twice",
        ),
    ],
)
def test_what_a_plugin_does_wrong_is_said(write: Write, source: str, says: str) -> None:
    name = write(f"wrong_{abs(hash(source)) % 10**9}", source)
    with pytest.raises(PluginError) as caught:
        Plugins({"wrong": name}).find(LAYER, "wrong/a")
    assert says in str(caught.value)
    assert f"plugin 'wrong' (module {name})" in str(caught.value)
    (row,) = [row for row in Plugins({"wrong": name}).listing() if row.source.name == "wrong"]
    assert says in row.error


def test_a_factory_that_cannot_be_imported_names_what_to_install(write: Write) -> None:
    plugins = Plugins({"weather": write("weather_two", WEATHER)})
    with pytest.raises(PluginError, match=r"the factory of layer 'weather'.*pip install 'weather\[storm\]'"):
        build_stack(plugins, ComponentSpec("toy24"), [ComponentSpec("weather")])


def test_two_distributions_that_claim_one_name_are_both_named(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("weather_three", WEATHER)
    distribution(tmp_path, "envharness-weather", "1.0", "weather_three")
    assert Plugins().find(LAYER, "weather/rain").source.version == "1.0"
    distribution(tmp_path, "other-weather", "2.5", "weather_three")
    plugins = Plugins()
    with pytest.raises(NameConflict, match="remove one of them") as caught:
        plugins.find(LAYER, "weather/rain")
    assert "envharness-weather 1.0" in str(caught.value)
    assert "other-weather 2.5" in str(caught.value)
    rows = [row for row in plugins.listing() if row.source.name == "weather"]
    assert {row.source.distribution for row in rows} == {"envharness-weather", "other-weather"}
    assert all("is claimed by" in row.error for row in rows)
    plugins.find(BRIDGE, "toy24")


def test_a_module_may_not_take_an_installed_plugins_name(write: Write) -> None:
    with pytest.raises(NameConflict, match=r"envharness-core .* and module weather_four"):
        Plugins({"core": write("weather_four", WEATHER)}).find(BRIDGE, "core/toy24")


def test_an_unknown_name_comes_with_the_nearest_and_what_is_installed() -> None:
    plugins = Plugins()
    with pytest.raises(
        ConfigError, match=r"layers\[1\]: unknown layer 'fautls' \(did you mean 'faults'\?\)"
    ) as caught:
        plugins.find(LAYER, "fautls", "layers[1]")
    assert "budget, closed, faults" in str(caught.value)
    with pytest.raises(ConfigError, match=r"unknown plugin 'cor' \(did you mean 'core'\?\)"):
        plugins.source("cor")
    with pytest.raises(ConfigError, match="unknown bridge 'nowhere/toy24'"):
        plugins.find(BRIDGE, "nowhere/toy24")


def test_an_unknown_key_and_a_wrong_value_name_the_component_and_the_field() -> None:
    found = Plugins().find(LAYER, "faults")
    with pytest.raises(
        ConfigError, match=r"here \(core/faults\): unknown key 'rat' \(did you mean 'rate'\?\)"
    ):
        found.configure({"rat": 1}, "here")
    with pytest.raises(ConfigError, match=r"here \(core/faults\): 'rate' must be <= 1"):
        found.configure({"rate": 2}, "here")
    with pytest.raises(ConfigError, match=r"here \(core/faults\)\.rate: expected a number, got 'x'"):
        found.configure({"rate": "x"}, "here")


def test_names_are_short_where_they_may_be() -> None:
    plugins = Plugins()
    assert plugins.find(BRIDGE, "toy24") == plugins.find(BRIDGE, "core/toy24")
    assert plugins.find(BRIDGE, "toy24").full_name == "core/toy24"
    assert [short_name(name) for name in ("core/toy24", "rain/rain", "weather/rain")] == [
        "toy24",
        "rain",
        "weather/rain",
    ]


def test_the_core_enters_by_the_same_door_and_each_kind_has_its_hook() -> None:
    plugins = Plugins()
    assert plugins.source("core").distribution == "envharness-core"
    for kind in KINDS:
        for found in plugins.components(kind):
            if found.source.name == "core":
                assert found.summary, f"{found.full_name} has no summary"
                assert callable(found.factory())
                found.config_class()


def test_nothing_is_imported_until_it_is_used(write: Write, tmp_path: Path) -> None:
    write(
        "lazy_plugin", "@hookimpl\ndef envharness_layers():\n    yield Component('rain', 'lazy_rain:Rain')\n"
    )
    write("lazy_rain", "class Rain(Layer): pass\n")
    code = (
        "import sys\n"
        "from envharness_core.plugins import Plugins\n"
        "from envharness_core.kinds import BRIDGE, LAYER\n"
        "plugins = Plugins({'lazy': 'lazy_plugin'})\n"
        "names = ('lazy_plugin', 'lazy_rain', 'envharness_core.toy24.bridge')\n"
        "def loaded(): return [name for name in names if name in sys.modules]\n"
        "print(plugins.names() != [], loaded())\n"
        "plugins.find(BRIDGE, 'core/toy24'); print(loaded())\n"
        "found = plugins.find(LAYER, 'lazy/rain'); print(loaded())\n"
        "found.factory(); print(loaded())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert ran.stdout.splitlines() == [
        "True []",
        "[]",
        "['lazy_plugin']",
        "['lazy_plugin', 'lazy_rain']",
    ]
