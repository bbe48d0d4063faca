"""Reshaped benchmarks: what was accepted comes back as tasks, and what can't be played is refused with what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, rollout, stack
from envharness_core.campaigns.reshape import reshape
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.jsondata import JsonObject
from envharness_core.reshaped import Reshaped, ReshapedTask, read_reshaped, task_id
from envharness_core.spec import ComponentSpec
from envharness_core.store import Store

from .conftest import Copied, envharness


@pytest.fixture
def file(complete: Path, tmp_path: Path) -> Path:
    path = tmp_path / "stacks.json"
    done = envharness("export", complete, "--stacks", path)
    assert done.returncode == 0, done.stderr
    return path


def changed(file: Path, **changes: object) -> Path:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return file


def test_what_was_accepted_is_what_is_read(complete: Path, file: Path) -> None:
    made = read_reshaped(file, Plugins())
    with Store.open(complete, read_only=True) as store:
        results: list[Any] = [result for result in store.results() if result["status"] != "abandoned"]
        assert made == reshape(store)
        before = store.rates("report before")
    assert [task.task for task in made.tasks] == [result["task"] for result in results]
    assert [[layer.as_json() for layer in task.layers] for task in made.tasks] == [
        r["layers"] for r in results
    ]
    assert any(task.layers for task in made.tasks)
    for task in made.tasks:
        wins, n = before[task.task]
        assert task.metrics["report_before"] == {"successes": wins, "graded": n}
    assert list(json.loads(file.read_text()))[:2] == ["schema_version", "bridge"]


def test_a_task_is_played_under_its_layers(file: Path) -> None:
    made = read_reshaped(file, Plugins())
    task = next(task for task in made.tasks if task.layers)
    for name in (task.id, task.task):
        played = rollout(file, name, "solver", count=3, seed=5)
        plain = rollout("core/toy24", task.task, "solver", task.layers, count=3, seed=5)
        assert [item.episode.key for item in played] == [item.episode.key for item in plain]
    more: JsonObject = {"use": "short_memory", "key": "log", "keep": 1}
    with stack(str(file), [more], task=task.id) as env:
        assert env.layers == (*task.layers, ComponentSpec("core/short_memory", {"key": "log", "keep": 1}))
        env.reset(seed=0, options={"task": task.task})


def test_the_commands_take_the_file_for_a_bridge(file: Path) -> None:
    made = read_reshaped(file, Plugins())
    rows = json.loads(envharness("tasks", file, "--json").stdout)
    assert [row["id"] for row in rows] == [task.id for task in made.tasks]
    told = envharness("tasks", file, "--limit", "1").stdout
    assert made.tasks[0].id in told
    assert "1 tasks" in told
    done = envharness("rollout", file, made.tasks[0].id, "--policy", "solver", "-n", "2", "--json")
    assert json.loads(done.stdout)["graded"] == 2, done.stderr


def test_names_are_of_the_layers() -> None:
    layers = (ComponentSpec("core/budget", {"steps": 5}),)
    assert task_id("a", layers) == task_id("a", layers) != task_id("a", ())
    assert task_id("a", layers).startswith("a@")


def refused(file: Path, words: str, kind: type[Exception] = ConfigError) -> None:
    with pytest.raises(kind) as caught:
        read_reshaped(file, Plugins())
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_plugin_is_named_with_what_to_do(file: Path) -> None:
    task = {"id": "x", "task": "1-2-3-4", "layers": ["absent/layer"], "metrics": {}}
    changed(file, tasks=[task])
    refused(file, "tasks[0].layers[0]: needs the plugin 'absent', which isn't installed here")
    changed(file, versions={"absent": "envharness-absent 0.3"})
    refused(file, "needs the plugin 'absent' (envharness-absent 0.3), which isn't installed here")
    changed(file, modules={"absent": "my_layers"})
    refused(file, "which was the module my_layers; name it with --plugin absent=my_layers")
    leg = {"bridge": "absent/bridge", "task": "1", "layers": []}
    changed(file, tasks=[{**task, "layers": [{"use": "core/link", "next": leg}]}], modules={})
    refused(file, "tasks[0].layers[0].next.bridge: needs the plugin 'absent'")


def test_another_version_of_the_benchmark_is_refused(file: Path) -> None:
    refused(changed(file, upstream="toy24 0"), "made for toy24 0, but toy24 1 is what is installed here")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema_version": 2}, "schema_version: expected 1, got 2; upgrade envharness-core"),
        ({"schema_version": "1"}, "schema_version: expected 1, got '1'"),
        ({"tasks": []}, "Length of 'tasks' must be >= 1"),
        ({"tasks": [{"id": "a", "task": "b"}] * 2}, "the task 'a' is listed twice"),
        ({"unheard": 1}, "unknown key 'unheard'"),
        ({"tasks": [{"id": "a"}]}, "tasks[0].task: missing"),
        ({"bridge": "other.json"}, "can't be reshaped again"),
    ],
)
def test_a_damaged_file_is_refused(file: Path, changes: dict[str, Any], words: str) -> None:
    refused(changed(file, **changes), words, CheckpointError)


def test_what_is_no_such_file_is_refused(file: Path, tmp_path: Path) -> None:
    refused(tmp_path / "nowhere.json", "No such file", CheckpointError)
    file.write_text("{")
    refused(file, "not a reshaped benchmark, which is JSON", CheckpointError)
    file.write_text('{"schema_version": 2, "env": {}, "layers": []}')
    refused(file, "`envharness export RUN --stacks FILE` makes one", CheckpointError)


def test_a_wrong_key_of_a_layer_is_refused(file: Path) -> None:
    task = {"id": "x", "task": "1-2-3-4", "layers": [{"use": "core/budget", "stepps": 3}], "metrics": {}}
    refused(changed(file, tasks=[task]), "tasks[0].layers[0] (core/budget): unknown key 'stepps'")


def test_tasks_are_found_by_either_name() -> None:
    budget = (ComponentSpec("core/budget", {"steps": 5}),)
    stacks = [("a", ()), ("a", budget), ("b", budget)]
    tasks = tuple(ReshapedTask(task_id(name, layers), name, layers) for name, layers in stacks)
    made = Reshaped(ComponentSpec("core/toy24"), "toy24 1", tasks)
    with pytest.raises(ConfigError, match="'a' was reshaped in several ways; name one of a@"):
        made.task("a")
    assert [made.task(task.id) for task in tasks] == list(tasks)
    assert made.task("b") == tasks[2]
    with pytest.raises(ConfigError, match="unknown task 'c'"):
        made.task("c")


def test_a_stack_needs_to_know_which_task(file: Path) -> None:
    with pytest.raises(ConfigError, match="name one with task="):
        stack(file)
    with pytest.raises(ConfigError, match="only a reshaped benchmark's stack is chosen by a task"):
        stack("toy24", task="1-2-3-4")


def test_a_campaign_is_about_a_benchmark_s_own_tasks(file: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f'bridge = "{file}"\npolicy = "solver"\n')
    done = envharness("run", config, "--run-dir", tmp_path / "run")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "a reshaped benchmark is for tasks and rollout" in done.stderr


def test_a_run_that_accepted_nothing_has_nothing_to_export(complete: Path, tmp_path: Path) -> None:
    with Store.create(tmp_path / "empty", {"config": {}}):
        pass
    done = envharness("export", tmp_path / "empty", "--stacks", tmp_path / "s.json")
    assert done.returncode == 2
    assert "no stack was accepted" in done.stderr


def test_keys_of_the_policy_stay_behind(copied: Copied) -> None:
    with Store.open(copied("run")) as store:
        config: Any = store.meta("config")
        policy: JsonObject = {"use": "llm/llm", "model": "m", "api_key": "short"}
        store.set_meta("config", {**config, "policy": policy})
        assert reshape(store).run["policy"] == {**policy, "api_key": "[redacted]"}
