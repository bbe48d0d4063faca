"""Executors: each episode comes back once, with an outcome; what hangs is ended, and what dies is replaced."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envharness_core.episode import Design, EpisodeSpec, Limits, Record
from envharness_core.errors import ConfigError
from envharness_core.executor import Executor
from envharness_core.kinds import EXECUTOR
from envharness_core.outcome import Outcome
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.trajectory import read_trajectory

EVERY = [
    ComponentSpec("inline"),
    ComponentSpec("local", {"workers": 2}),
    ComponentSpec("threads", {"threads": 3}),
]
EVERY_EXECUTOR = pytest.mark.parametrize("executor", EVERY, ids=lambda spec: spec.use)


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins({"testing": "envharness_core.testing.plugin", "troubled": "troubled_policies"})


def spec(index: int, how: dict[str, str], **limits: Any) -> EpisodeSpec:
    design = Design(
        bridge=ComponentSpec("testing/counter"),
        upstream="counter 1",
        task="three",
        layers=(),
        policy=ComponentSpec("troubled/policy", {"how": {**how}}),
        limits=Limits(**limits),
    )
    return EpisodeSpec(design, "rollout", index, Seeds(1, 2, index))


def played(plugins: Plugins, executor: ComponentSpec, jobs: list[EpisodeSpec]) -> dict[int, Record]:
    made: Executor[Any] = plugins.create(EXECUTOR, executor, "executor")
    try:
        records = list(made.run(iter(jobs), plugins))
    finally:
        made.close()
    assert sorted(record.episode.key for record in records) == sorted(job.key for job in jobs)
    return {record.episode.index: record for record in records}


@EVERY_EXECUTOR
def test_each_episode_comes_back_once_and_the_same_from_every_executor(
    plugins: Plugins, executor: ComponentSpec
) -> None:
    records = played(plugins, executor, [spec(index, {}) for index in range(20)])
    reference = played(plugins, ComponentSpec("inline"), [spec(index, {}) for index in range(20)])
    for index, record in records.items():
        assert record.episode.outcome is Outcome.COMPLETED
        assert record.episode.verdict == reference[index].episode.verdict
        assert read_trajectory(record.blob).events == read_trajectory(reference[index].blob).events


@EVERY_EXECUTOR
def test_jobs_are_pulled_as_there_is_room(plugins: Plugins, executor: ComponentSpec) -> None:
    pulled = 0

    def jobs() -> Iterator[EpisodeSpec | None]:
        nonlocal pulled
        for index in range(100):
            pulled += 1
            yield spec(index, {})

    made: Executor[Any] = plugins.create(EXECUTOR, executor, "executor")
    records = made.run(jobs(), plugins)
    next(records)
    assert pulled <= 8
    records.close()  # type: ignore[attr-defined]
    made.close()


@EVERY_EXECUTOR
def test_nothing_to_do_yet_is_waited_out(plugins: Plugins, executor: ComponentSpec) -> None:
    heard: list[int] = []

    def jobs() -> Iterator[EpisodeSpec | None]:
        yield spec(0, {})
        while not heard:
            yield None
        yield spec(1, {})

    made: Executor[Any] = plugins.create(EXECUTOR, executor, "executor")
    for record in made.run(jobs(), plugins):
        heard.append(record.episode.index)
    made.close()
    assert heard == [0, 1]


@EVERY_EXECUTOR
def test_an_episode_that_is_slow_ends_without_a_verdict_and_keeps_its_steps(
    plugins: Plugins, executor: ComponentSpec
) -> None:
    how = {"1": "slow"}
    records = played(plugins, executor, [spec(index, how, wall_seconds=0.3) for index in range(3)])
    slow = records[1].episode
    assert (slow.outcome, slow.verdict, slow.steps) == (Outcome.TIMEOUT, None, 2)
    assert slow.error.startswith("the episode took longer than 0.3 seconds")
    assert len(read_trajectory(records[1].blob).steps) == 2
    assert records[0].episode.outcome is records[2].episode.outcome is Outcome.COMPLETED


@EVERY_EXECUTOR
def test_what_a_policy_waits_for_a_provider_is_not_its_time(
    plugins: Plugins, executor: ComponentSpec
) -> None:
    records = played(plugins, executor, [spec(0, {"all": "wait"}, wall_seconds=0.3, seconds=0.3)])
    episode = records[0].episode
    assert episode.outcome is Outcome.COMPLETED
    assert episode.seconds < 0.3


@pytest.mark.parametrize("how", ["hang", "spin"])
def test_an_episode_that_hangs_is_ended_with_its_steps_and_costs_the_others_nothing(
    plugins: Plugins, how: str
) -> None:
    began = time.monotonic()
    jobs = [spec(index, {"2": how}, wall_seconds=0.3) for index in range(12)]
    records = played(plugins, ComponentSpec("local", {"workers": 2}), jobs)
    hung = records.pop(2)
    assert (hung.episode.outcome, hung.episode.verdict, hung.episode.steps) == (Outcome.TIMEOUT, None, 1)
    assert "the policy hangs" in hung.episode.error
    assert [step.action.name for step in read_trajectory(hung.blob).steps if step.action] == ["add"]
    assert {record.episode.outcome for record in records.values()} == {Outcome.COMPLETED}
    assert time.monotonic() - began < 30


def test_of_256_rollouts_only_the_broken_ones_are_lost(plugins: Plugins) -> None:
    how = {"10": "raise", "70": "hang", "130": "die", "200": "nan", "250": "print"}
    jobs = [spec(index, how, wall_seconds=0.5) for index in range(256)]
    records = played(plugins, ComponentSpec("local", {"workers": 2}), jobs)
    outcomes = Counter(record.episode.outcome for record in records.values())
    assert outcomes == {
        Outcome.COMPLETED: 252,
        Outcome.POLICY_ERROR: 2,
        Outcome.TIMEOUT: 1,
        Outcome.ENV_ERROR: 1,
    }
    assert {index for index, record in records.items() if not record.episode.graded} == {10, 70, 130, 200}
    assert "the worker died (exit code 9), 2 times" in records[130].episode.error


def test_threads_refuse_a_bridge_that_needs_a_process(plugins: Plugins) -> None:
    job = spec(0, {})
    needing = ComponentSpec("troubled/needs_a_process")
    design = Design(needing, "x 1", "three", (), job.design.policy, job.design.limits)
    with pytest.raises(ConfigError, match="needs a process of its own: use the executor local"):
        played(plugins, ComponentSpec("threads"), [EpisodeSpec(design, "rollout", 0, job.seeds)])


def test_threads_end_with_the_run(plugins: Plugins) -> None:
    before = threading.active_count()
    played(plugins, ComponentSpec("threads", {"threads": 8}), [spec(index, {}) for index in range(30)])
    assert threading.active_count() == before


def test_a_worker_whose_runner_was_killed_ends_although_its_policy_hangs(plugins: Plugins) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from envharness_core import rollout, Plugins\n"
        "plugins = Plugins({'testing': 'envharness_core.testing.plugin', 'troubled': 'troubled_policies'})\n"
        "policy = {'use': 'troubled/policy', 'how': {'all': 'hang'}}\n"
        "rollout('testing/counter', 'three', policy, executor={'use': 'local', 'workers': 1}, plugins=plugins)\n"
    )
    fixtures = str(Path(__file__).parent.parent / "fixtures")
    with subprocess.Popen([sys.executable, "-c", script, fixtures]) as runner:
        children = Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
        deadline = time.monotonic() + 20
        while not children.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)  # well into the episode
        workers = [int(pid) for pid in children.read_text().split()]
        runner.kill()
    assert workers
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
