"""A run whose service limits it, refuses it, or fails: no episode is lost, and no verdict is another one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from envharness_core import campaign
from envharness_core.errors import RunError
from envharness_core.jsondata import JsonObject
from envharness_core.outcome import Outcome
from envharness_core.store import Store
from envharness_core.testing import Fault, Limit, ModelServer
from envharness_core.testing.toy24_model import brain

Verdicts = dict[str, tuple[Outcome, bool, int]]


def config(server: ModelServer, executor: JsonObject, **settings: Any) -> JsonObject:
    told: JsonObject = {
        "api_base": server.base_url,
        "keys": ["TEST_MODEL_KEY"],
        "in_flight": 64,
        "timeout": 20,
    }
    return {
        "seed": 4,
        "bridge": "toy24",
        "policy": {"use": "llm", "model": "openai/scripted"},
        "designer": "noop",
        "tasks": {"limit": 8},
        "limits": {"steps": 12},
        "campaign": {"rollouts": 8, "backoff": 0.1, "max_excluded": 1.0, "rerolls": 12},
        "executor": executor,
        "settings": {"llm": told | settings},
    }


def verdicts(folder: Path) -> Verdicts:
    with Store.open(folder, read_only=True) as store:
        return {item.key: (item.outcome, item.success, item.steps) for item in store.episodes()}


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """What the run comes to where nothing goes wrong."""
    folder = tmp_path_factory.mktemp("unlimited") / "run"
    with ModelServer(brain) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_MODEL_KEY", "sk-test-0123456789abcdef")
        campaign(config(server, {"use": "threads", "threads": 16}), folder)
    assert len(verdicts(folder)) >= 64
    assert all(
        outcome in (Outcome.COMPLETED, Outcome.AGENT_LIMIT) for outcome, _, _ in verdicts(folder).values()
    )
    return verdicts(folder)


@pytest.mark.parametrize("executor", [{"use": "threads", "threads": 64}, {"use": "local", "workers": 2}])
def test_a_limited_service_loses_no_episode_and_changes_no_verdict(
    unlimited: Verdicts, tmp_path: Path, executor: JsonObject
) -> None:
    """Workers on one key: after a 429 none of them arrives before its time, and every window is used."""
    with ModelServer(brain, limit=Limit(80, 1.0, precise=True)) as server:
        campaign(config(server, executor), tmp_path)
        statuses = Counter(asked.status for asked in server.requests)
        answered = sorted(asked.arrived for asked in server.requests if asked.status == 200)
    assert verdicts(tmp_path) == unlimited
    if executor["use"] == "threads":
        assert statuses[429] > 0
        windows = {int(arrived - answered[0]) for arrived in answered}
        assert len(windows) <= len(answered) / 80 + 3  # no window goes by unused


def test_a_service_that_fails_now_and_then_changes_no_verdict(unlimited: Verdicts, tmp_path: Path) -> None:
    faults = [
        Fault(500, times=3, after=10),
        Fault(503, times=3, after=40),
        Fault(kind="garbage", times=3, after=60),
        Fault(kind="cut", times=2, after=80),
        Fault(kind="reset", times=2, after=100),
    ]
    with ModelServer(brain, faults) as server:
        campaign(config(server, {"use": "threads", "threads": 16}), tmp_path)
        assert Counter(asked.status for asked in server.requests)[500] == 3
    assert verdicts(tmp_path) == unlimited


def test_a_service_that_is_down_is_excluded_and_made_up_for(unlimited: Verdicts, tmp_path: Path) -> None:
    """An episode that can't be had says nothing about the policy; another rollout takes its place."""
    with ModelServer(brain, [Fault(500, times=12, after=30)]) as server:
        campaign(config(server, {"use": "threads", "threads": 8}, retries=0), tmp_path)
    found = verdicts(tmp_path)
    failed = [
        outcome for outcome, success, _ in found.values() if outcome is Outcome.PROVIDER_ERROR and not success
    ]
    assert len(failed) == 12
    graded = {key: item for key, item in found.items() if item[0] is not Outcome.PROVIDER_ERROR}
    assert len(graded) >= 64
    assert {key: unlimited[key] for key in graded if key in unlimited} == {
        key: item for key, item in graded.items() if key in unlimited
    }


def test_a_refused_key_stops_the_run_and_a_good_one_goes_on(unlimited: Verdicts, tmp_path: Path) -> None:
    with ModelServer(brain, [Fault(401, times=None, after=60)]) as server:
        with pytest.raises(RunError, match=r"stopped: .*TEST_MODEL_KEY"):
            campaign(config(server, {"use": "threads", "threads": 4}), tmp_path)
        assert Counter(asked.status for asked in server.requests)[401] <= 4  # those that were on their way
    before = verdicts(tmp_path)
    assert 0 < len(before) < len(unlimited)
    with ModelServer(brain) as server:
        campaign(config(server, {"use": "threads", "threads": 4}), tmp_path)
        calls = len(server.requests)
    assert verdicts(tmp_path) == unlimited
    steps = sum(count for _, _, count in unlimited.values())
    assert calls < steps  # what was answered before isn't asked again


def test_what_a_run_leaves_behind_holds_no_key(tmp_path: Path) -> None:
    with ModelServer(brain, [Fault.rate_limited(retry_after=0.1, after=5)]) as server:
        campaign(config(server, {"use": "threads", "threads": 4}), tmp_path)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "calls.sqlite3" for path in left)
    assert not any(b"sk-test" in path.read_bytes() for path in left)
