"""Going on: with accepted changes, with what failed played again, with other runs' baselines, and an early stop."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from envharness_core.campaigns.batch import Batch, Play
from envharness_core.campaigns.run import run_campaign
from envharness_core.campaigns.schedule import Scheduler, batch_specs
from envharness_core.config import RunConfig, make_config
from envharness_core.episode import Design, Limits
from envharness_core.errors import ConfigError, RunError
from envharness_core.spec import ComponentSpec
from envharness_core.store import Store

DESIGN = Design(ComponentSpec("core/toy24"), "toy24 1", "3-3-8-8", (), ComponentSpec("core/solver"), Limits())


def config(**changes: Any) -> RunConfig:
    plain: Any = {
        "bridge": "toy24",
        "policy": {"use": "solver", "skill": 0.7},
        "tasks": {"limit": 3},
        "designer": {"use": "scripted", "candidates": [[{"use": "budget", "steps": 6}]]},
        "executor": "inline",
        "report": {"rollouts": 4},
        **changes,
    }
    return make_config(plain)


def rows(folder: Path) -> dict[str, tuple[Any, ...]]:
    with Store.open(folder) as store:
        return {
            episode.key: (episode.stream, episode.outcome, episode.success) for episode in store.episodes()
        }


def test_a_harmless_change_goes_on_when_it_is_accepted(tmp_path: Path) -> None:
    run_campaign(config(), tmp_path / "run")
    before = rows(tmp_path / "run")
    more = config(report={"rollouts": 7})
    with pytest.raises(ConfigError, match=r"or go on with --accept-changes report\.rollouts"):
        run_campaign(more, tmp_path / "run")
    summary = run_campaign(more, tmp_path / "run", accept=["report.rollouts"])
    after = rows(tmp_path / "run")
    assert before.items() <= after.items()
    assert summary == {**run_campaign(more, tmp_path / "whole"), "seconds": summary["seconds"]}
    assert rows(tmp_path / "whole") == after
    assert run_campaign(more, tmp_path / "run") == summary


def test_what_is_not_harmless_cannot_be_accepted(tmp_path: Path) -> None:
    run_campaign(config(), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"unknown harmless key 'policy\.skill'.*known: campaign\.rerolls"):
        run_campaign(
            config(policy={"use": "solver", "skill": 0.8}), tmp_path / "run", accept=["policy.skill"]
        )
    with pytest.raises(ConfigError, match=r"policy\.skill: 0\.7 \(now 0\.8\)") as caught:
        run_campaign(
            config(policy={"use": "solver", "skill": 0.8}), tmp_path / "run", accept=["report.rollouts"]
        )
    assert "accept-changes" not in str(caught.value)


def test_where_and_how_patiently_it_is_played_is_no_change(tmp_path: Path) -> None:
    summary = run_campaign(config(), tmp_path / "run")
    patient = config(campaign={"backoff": 9.0, "max_excluded": 0.9}, cache=str(tmp_path / "cache"))
    assert run_campaign(patient, tmp_path / "run") == summary


def test_runs_share_baselines_and_nothing_else(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    first = config(cache=cache)
    run_campaign(first, tmp_path / "one")
    played: list[int] = []
    other = config(cache=cache, designer={"use": "scripted", "candidates": [[{"use": "faults"}]]})
    summary: Any = run_campaign(
        other, tmp_path / "two", listener=lambda progress: played.append(progress.episodes)
    )
    baselines = [key for key, (stream, _, _) in rows(tmp_path / "two").items() if stream == "baseline"]
    assert len(baselines) == summary["rollouts"]["baseline"] == 15
    assert len(played) == len(rows(tmp_path / "two")) - 15
    one, two = rows(tmp_path / "one"), rows(tmp_path / "two")
    assert {key: one[key] for key in baselines} == {key: two[key] for key in baselines}
    alone = run_campaign(config(designer=first.designer.as_json(), cache=None), tmp_path / "alone")
    assert alone["in_band"] == run_campaign(first, tmp_path / "one")["in_band"]


def test_a_baseline_that_failed_is_not_shared(tmp_path: Path) -> None:
    broken: Any = {
        "bridge": {"use": "testing/failing", "call": "step"},
        "policy": {"use": "scripted", "actions": [{"name": "add"}]},
        "tasks": {"ids": ["three"]},
        "plugins": {"testing": "envharness_core.testing.plugin"},
        "campaign": {"backoff": 0.0, "rerolls": 2},
        "designer": "noop",
        "executor": "inline",
        "cache": str(tmp_path / "cache"),
    }
    run_campaign(make_config(broken), tmp_path / "run")
    assert rows(tmp_path / "run")
    (place,) = (tmp_path / "cache").iterdir()
    assert rows(place) == {}


def failing(tmp_path: Path, **changes: Any) -> RunConfig:
    plain: Any = {
        "bridge": {"use": "testing/failing", "call": "step"},
        "policy": {"use": "scripted", "actions": [{"name": "add"}]},
        "tasks": {"split": "train"},
        "plugins": {"testing": "envharness_core.testing.plugin"},
        "designer": "noop",
        "executor": "inline",
        **changes,
    }
    return make_config(plain)


def test_a_session_in_which_too_much_fails_stops_early_with_the_counts(tmp_path: Path) -> None:
    impatient = failing(tmp_path, campaign={"backoff": 0.0, "rollouts": 30, "rerolls": 100})
    with pytest.raises(
        RunError, match=r"stopped: 20 of this session's 20 episodes failed \(20 env_error\)"
    ) as caught:
        run_campaign(impatient, tmp_path / "run")
    assert "went away during step" in str(caught.value)
    assert len(rows(tmp_path / "run")) == 20


def test_what_the_infrastructure_failed_is_played_again_when_asked(tmp_path: Path) -> None:
    few = failing(tmp_path, campaign={"backoff": 0.0, "rollouts": 2, "rerolls": 1})
    first: Any = run_campaign(few, tmp_path / "run")
    assert first["abandoned"] == first["tasks"]
    played: list[int] = []
    run_campaign(few, tmp_path / "run", listener=lambda progress: played.append(progress.episodes))
    assert played == []
    run_campaign(few, tmp_path / "run", listener=lambda p: played.append(p.episodes), retry_failed=True)
    assert len(played) == len(rows(tmp_path / "run")) > 0


def test_an_attempt_meets_the_worlds_of_its_baseline() -> None:
    def seeds(stream: str, *, seed_in_task: bool) -> list[Any]:
        batch = Batch(DESIGN, stream, (0, 1, 2))
        return [spec.seeds for spec in batch_specs(batch, 5, seed_in_task=seed_in_task)]

    for attempt, baseline in (("attempt 0", "baseline"), ("attempt 2 of round 1", "baseline of round 1")):
        ours, theirs = (seeds(stream, seed_in_task=False) for stream in (attempt, baseline))
        assert [one.env for one in ours] == [two.env for two in theirs]
        assert len({one.env for one in ours}) == 3
        assert not {one.policy for one in ours} & {two.policy for two in theirs}
        assert not {one.layers for one in ours} & {two.layers for two in theirs}
    worlds = [
        seeds(stream, seed_in_task=False)[0].env for stream in ("baseline", "confirm 0", "report before")
    ]
    assert len(set(worlds)) == 3
    assert (
        len({one.env for stream in ("baseline", "attempt 0") for one in seeds(stream, seed_in_task=True)})
        == 1
    )


def test_what_may_wait_is_not_made_before_its_turn(tmp_path: Path) -> None:
    """Ten thousand tasks, each with report rollouts that wait for the designs, keep a batch each and no episode."""
    folder = tmp_path / "run"
    done: list[int] = []

    def later(number: int) -> Play[int]:
        yield Batch(DESIGN, f"report {number}", tuple(range(200)), later=True)
        return number

    with Store.create(folder, {}) as store:
        scheduler = Scheduler(store, 0, seed_in_task=True)
        tracemalloc.start()
        for number in range(10_000):
            scheduler.start(later(number), done.append)
        held = tracemalloc.get_traced_memory()[0]
        jobs = scheduler._jobs()
        assert next(jobs) is not None
        opened = tracemalloc.get_traced_memory()[0] - held
        tracemalloc.stop()
    assert held < 60e6
    assert opened < 1e6
    assert done == []
