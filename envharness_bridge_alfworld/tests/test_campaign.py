"""A campaign on generated games: confirmed stacks, verdicts that hold, the same on any executor."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from envharness_bridge_alfworld.engines import shared
from envharness_core import Plugins, campaign
from envharness_core.store import Store
from envharness_core.verify import verify_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "alfworld.toml"


def config(cache: str, **executor: Any) -> dict[str, Any]:
    """The example, on fewer generated games with fewer rollouts."""
    made: dict[str, Any] = tomllib.loads(EXAMPLE.read_text())
    made["bridge"] |= {"data": "generated", "cache": cache}
    made["tasks"]["limit"] = 6
    made["report"] |= {"rollouts": 10, "sensitivity": 2}
    return {**made, "executor": executor}


@pytest.mark.slow
def test_it_ends_with_confirmed_stacks_and_verdicts_that_hold(tmp_path: Path, cache_folder: str) -> None:
    ended: Any = campaign(config(cache_folder, use="inline"), tmp_path / "inline")
    assert ended["accepted"] >= 2
    assert ended["rollouts"]["confirm"] > 0
    assert ended["episodes"]["excluded"] == {}
    assert ended["sensitivity"]["margin"] > 0
    with Store.open(tmp_path / "inline") as store:
        found = verify_run(store, Plugins())
    assert (found.agreed, found.disagreed) == (ended["episodes"]["graded"], 0)
    local: Any = campaign(config(cache_folder, use="local", workers=2), tmp_path / "local")
    threads: Any = campaign(config(cache_folder, use="threads", threads=3), tmp_path / "threads")
    for other in (local, threads):
        assert {**other, "seconds": 0} == {**ended, "seconds": 0}
    shared().close()
