"""The kit tests itself: each known-bad layer and bridge is caught by the check that was made for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins
from envharness_core.contract import BRIDGE_CHECKS, LAYER_CHECKS, bridge_bench, layer_bench, run_check
from envharness_core.kinds import BRIDGE, LAYER
from envharness_core.spec import ComponentSpec
from envharness_core.testing import Counter

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))
_BAD = Plugins({"bad_bridges": "known_bad_bridges", "bad_layers": "known_bad_layers"})
_LAYERS = [(it.full_name, it.summary) for it in _BAD.components(LAYER) if it.source.name == "bad_layers"]
_BRIDGES = [(it.full_name, it.summary) for it in _BAD.components(BRIDGE) if it.source.name == "bad_bridges"]


def _named(checks: Sequence[Any], name: str) -> Any:
    return next(check for check in checks if check.__name__ == name)


@pytest.mark.parametrize(("name", "check"), _LAYERS)
def test_a_bad_layer_is_caught_by_its_check(
    name: str, check: str, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "evaluate", Counter.evaluate)  # put back what one of them patches
    with layer_bench(plugins, ComponentSpec(name)) as bench:
        result = run_check(_named(LAYER_CHECKS, check), bench)
    assert not result.passed
    assert result.detail
    assert result.law


@pytest.mark.parametrize(("name", "check"), _BRIDGES)
def test_a_bad_bridge_is_caught_by_its_check(name: str, check: str, plugins: Plugins) -> None:
    with bridge_bench(plugins, ComponentSpec(name)) as bench:
        result = run_check(_named(BRIDGE_CHECKS, check), bench)
    assert not result.passed
    assert result.detail
    assert result.law


def test_every_check_has_something_that_only_it_was_made_for() -> None:
    assert {check for _, check in _LAYERS} == {check.__name__ for check in LAYER_CHECKS}
    assert {check for _, check in _BRIDGES} == {check.__name__ for check in BRIDGE_CHECKS}
