"""The suites as a third-party module uses them, over what the core ships and the doubles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envharness_core import Plugins
from envharness_core.contract import check_bridge, check_layer
from envharness_core.spec import ComponentSpec
from envharness_core.testing import bridge_suite, layer_suite

_DOUBLES = Plugins({"testing": "envharness_core.testing.plugin"})

TestToy24 = bridge_suite("toy24")
TestTextWorld = bridge_suite("testing/text_world", _DOUBLES, ("take ring", "sing"))
TestCounter = bridge_suite("testing/counter", _DOUBLES)
TestDice = bridge_suite("testing/dice", _DOUBLES)

TestFaults = layer_suite("faults", rate=0.5)
TestBudget = layer_suite("budget", steps=3)
TestClosed = layer_suite("closed", tool="undo")
TestShortMemory = layer_suite("short_memory", key="log", keep=1)
TestSetup = layer_suite("setup", actions=[{"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "*"}}])
TestLink = layer_suite(
    "link", _DOUBLES, next={"bridge": "testing/counter", "task": "three", "layers": [{"use": "faults"}]}
)
TestPassThrough = layer_suite("testing/pass_through", _DOUBLES)


def test_without_pytest_the_same_checks_are_a_list_of_results() -> None:
    heard: list[str] = []
    results = check_layer(
        Plugins(), ComponentSpec("budget", {"steps": 2}), heard=lambda r: heard.append(r.name)
    )
    assert all(result.passed for result in results)
    assert heard == [result.name for result in results]
    assert {"name", "law", "passed", "detail"} == results[0].as_json().keys()
    assert all(result.passed for result in check_bridge(_DOUBLES, ComponentSpec("testing/counter")))


def test_a_layer_that_fits_no_world_says_why() -> None:
    results = check_layer(Plugins(), ComponentSpec("budget", {"stepps": 2}))
    assert results[0].name == "builds"
    assert "did you mean 'steps'" in results[0].detail


def test_a_failing_check_fails_its_test_and_names_it(tmp_path: Path) -> None:
    here = Path(__file__).parents[1] / "fixtures"
    (tmp_path / "test_it.py").write_text(
        f"import sys; sys.path.insert(0, {str(here)!r})\n"
        "from envharness_core import Plugins\n"
        "from envharness_core.testing import layer_suite\n"
        "TestSticky = layer_suite('bad_layers/sticky', Plugins({'bad_layers': 'known_bad_layers'}))\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "reset or builds",
        "test_it.py",
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in ran.stdout
    assert "reset_forgets: core/toy24: after" in ran.stdout


@pytest.mark.parametrize("missing", ["hypothesis", "pytest"])
def test_without_the_extra_the_error_names_it(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from envharness_core.testing import TextWorld\n"
        "import envharness_core.testing as kit\n"
        "try: kit.layer_suite\n"
        "except ImportError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"needs {missing}: pip install 'envharness-core[testing]'" in ran.stdout
