"""The command line: each command does its work, and bad input is one line, exit code 2, with nothing written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from envharness_core.store import Store

CONFIG = """
seed = 3

[bridge]
use = "toy24"

[policy]
use = "solver"
skill = 0.7

[tasks]
limit = 2

[limits]
steps = 20

[objective]
use = "success_band"

[designer]
use = "scripted"
candidates = [[{use = "budget", steps = 6}]]

[executor]
use = "inline"

[report]
rollouts = 4
"""


def envharness(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envharness_core.cli.main", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def answer(*args: str | Path) -> Any:
    done = envharness(*args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    return path


def test_run_report_and_verify(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    summary = answer("run", config, "--run-dir", folder, "--json")
    assert summary["tasks"] == 2
    assert summary["episodes"]["excluded"] == {}
    assert summary["episodes"]["graded"] == sum(summary["rollouts"].values())
    assert summary["accepted"] + summary["abandoned"] == 2
    assert set(summary["in_band"]) == set(summary["success_rate"]) == {"before", "after"}
    assert answer("run", config, "--run-dir", folder, "--json") == summary
    report = answer("report", folder, "--json")
    assert {key: report[key] for key in summary} == summary
    assert len(report["results"]) == 2
    found = answer("verify", folder, "--json")
    assert found["episodes"] == found["agreed"] == summary["episodes"]["graded"]
    assert (found["disagreed"], found["not_comparable"], found["ungraded"]) == (0, 0, 0)
    told = envharness("report", folder, "--tasks").stdout
    assert "success rates before" in told
    assert "budget(steps=6)" in told
    assert "agreed" in envharness("verify", folder).stdout


def test_tasks_are_listed_by_split() -> None:
    assert len(answer("tasks", "toy24", "--json")) == 1362
    rows = answer("tasks", "toy24", "--split", "train", "--limit", "3", "--json")
    assert [row["split"] for row in rows] == ["train"] * 3
    assert rows[0]["metadata"].keys() == {"solutions", "needs_fraction"}


@pytest.mark.parametrize(
    "bridge", ['{use = "testing/text_world", limit = 2}', '{"use": "testing/text_world", "limit": 2}']
)
def test_a_bridge_may_be_a_table_wherever_one_is_named(bridge: str) -> None:
    doubles = ("--plugin", "testing=envharness_core.testing.plugin", "--json")
    assert [row["id"] for row in answer("tasks", bridge, "--split", "test", *doubles)] == ["lamp", "book"]
    played = answer("rollout", bridge, "ring", "--policy", "random", "--steps", "9", *doubles)
    assert [episode["steps"] for episode in played["episodes"]] == [2]
    checked = answer("check", bridge, "--text", "look", *doubles)
    assert checked["component"] == {"use": "testing/text_world", "limit": 2}
    assert checked["failed"] == 0


def test_a_wrong_option_of_a_full_name_is_told() -> None:
    done = envharness("check", '{use = "core/toy24", size = 1}')
    assert (done.returncode, done.stdout) == (2, "")
    assert "(core/toy24): unknown key 'size'; known: none" in done.stderr


def test_plugins_lists_the_core() -> None:
    rows = {row["name"]: row for row in answer("plugins", "--json")}
    types = [component["type"] for component in rows["core"]["components"]]
    assert {"core/toy24", "core/setup", "core/success_band", "core/solver", "core/local"} <= set(types)
    assert rows["core"]["error"] is None


def test_rollout_plays_a_stack() -> None:
    played = answer(
        "rollout", "toy24", "1-2-3-4", "--policy", '{use = "solver", skill = 0.9}',
        "--layer", '{use = "faults", rate = 0.3}', "-n", "3", "--json",
    )  # fmt: skip
    assert played["graded"] == 3
    assert [episode["index"] for episode in played["episodes"]] == [0, 1, 2]
    shown = envharness("rollout", "toy24", "1-2-3-4", "--policy", "solver", "--show").stdout
    assert "Target: 24" in shown
    assert "graded succeeded" in shown


def test_config_prints_what_is_resolved(config: Path) -> None:
    resolved = answer("config", config, "--json")
    assert resolved["bridge"] == {"use": "core/toy24"}
    assert resolved["campaign"]["attempts"] == 5
    changed = answer("config", config, "--set", "policy.skill=0.9", "--set", "tasks.split=test", "--json")
    assert (changed["policy"]["skill"], changed["tasks"]["split"]) == (0.9, "test")
    lines = envharness("config", config).stdout
    assert "policy.skill = 0.7\n" in lines


def test_a_resolved_config_is_a_config(config: Path, tmp_path: Path) -> None:
    lines = [line for line in envharness("config", config).stdout.splitlines() if not line.endswith("= none")]
    path = tmp_path / "resolved.toml"
    path.write_text("\n".join(lines))
    assert tomllib.loads(path.read_text())["policy"]["use"] == "core/solver"
    assert answer("config", path, "--json") == answer("config", config, "--json")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("bridge.use=toy25", "bridge: unknown bridge 'toy25' (did you mean 'toy24'?)"),
        ("policy.use=solve", "policy: unknown policy 'solve' (did you mean 'solver'?); known: "),
        ("policy.skil=0.5", "policy (core/solver): unknown key 'skil' (did you mean 'skill'?); known: skill"),
        ('policy.skill="high"', "policy (core/solver).skill: expected a number, got 'high'"),
        ("policy.skill=2", "policy (core/solver): 'skill' must be <= 1"),
        ('tasks={ids=["9-9-9-9"]}', "tasks.ids: unknown task '9-9-9-9'"),
        ("tasks.split=trian", "tasks.split: unknown split 'trian' (did you mean 'train'?)"),
        ("tasks.limit=many", "tasks.limit: expected an integer, got 'many'"),
        ("tasks.limit=0", "tasks: 'limit' must be >= 1"),
        ("campain.rollouts=3", "unknown key 'campain' (did you mean 'campaign'?)"),
        ("objective.low=0.9", "objective (core/success_band): low must be below high"),
        ('policy={use = "scripted", actions = [{name = "jump"}]}', "policy.actions[0]: unknown tool 'jump'"),
        (
            'designer.candidates=[[{use = "falts"}]]',
            "layers[0]: unknown layer 'falts' (did you mean 'faults'?)",
        ),
        (
            'designer.candidates=[[{use = "closed", tool = "und"}]]',
            "unknown tool 'und' (did you mean 'undo'?)",
        ),
        ("tasks={ids=[]}", "tasks: ids is empty; leave it out to take the whole split"),
        ('tasks={ids=["1-2-3-4"], limit=1}', "tasks: give either ids or limit"),
        ("campaign.budget=1", "campaign: budget must be at least rollouts: 1 < 5"),
        ("campaign.rollouts=1000000000", "'rollouts' must be <= 1000000"),
        ("seed=-1", "'seed' must be >= 0"),
        ('plugins=["a"]', "plugins: expected a table of texts, got ['a']"),
        ('plugins={mine="no_such_module"}', "plugin 'mine' (module no_such_module) can't be imported"),
        ('plugins={mine="json"}', "plugin 'mine' (module json) registers nothing"),
        (
            'designer.candidates=[[{use = "link", next = {bridge = "toy24", task = "9-9-9-9"}}]]',
            "layers[0].next.task: toy24: unknown task '9-9-9-9'",
        ),
        (
            'designer.candidates=[[{use = "closed", tool = "combine", where = {opp = "+"}}]]',
            "closed.where of combine: unknown argument 'opp' (did you mean 'op'?)",
        ),
        ('designer.candidates=[[{use = "budget"}]]', "layers[0] (core/budget).steps: missing"),
        ("objective.accept=0.1", "reject must be below accept"),
        ("version=2", "version: 2 is newer than 1"),
        ("policy.use.deep=1", "--set policy.use.deep=1: use is a name"),
        ("policy", "--set policy: expected a.b=value"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    config: Path, tmp_path: Path, override: str, words: str
) -> None:
    done = envharness("run", config, "--run-dir", tmp_path / "run", "--set", override)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["tasks", "toy25"], "unknown bridge 'toy25'"),
        (["tasks", "toy24", "--split", "trian"], "--split: unknown split 'trian'"),
        (["rollout", "toy24", "9-9-9-9", "--policy", "solver"], "unknown task '9-9-9-9'"),
        (
            ["rollout", "toy24", "1-2-3-4", "--policy", "{use"],
            "neither a name, an inline TOML table nor JSON",
        ),
        (
            [
                "rollout",
                "toy24",
                "1-2-3-4",
                "--policy",
                "solver",
                "--layer",
                '{use="setup",actions=[{name="jump"}]}',
            ],
            "setup action 0, jump(): malformed: unknown tool 'jump'; the tools are: combine, undo, stop",
        ),
        (["run", "nowhere.toml", "--run-dir", "x"], "nowhere.toml: No such file or directory"),
        (["verify", "nowhere"], "not a run folder"),
        (["report", "nowhere"], "not a run folder"),
        (["check", "nothing"], "unknown"),
    ],
)
def test_bad_arguments_are_one_line(args: list[str], words: str) -> None:
    done = envharness(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_that_is_no_run_is_left_alone(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.txt").write_text("dear to somebody")
    done = envharness("run", config, "--run-dir", folder)
    assert done.returncode == 2
    assert "not a run folder, and not empty" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["chapter.txt"]


def test_a_place_that_cannot_be_written_is_one_line(config: Path, tmp_path: Path) -> None:
    for folder in ("/proc/nowhere/run", tmp_path / ("x" * 300)):
        done = envharness("run", config, "--run-dir", folder)
        assert done.returncode == 2
        assert "can't be written" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_module_beside_the_config_is_a_plugin(config: Path, tmp_path: Path) -> None:
    (tmp_path / "beside_the_config.py").write_text(
        "from envharness_core import Component, Layer, hookimpl\n"
        "class Plain(Layer):\n"
        "    'Changes nothing.'\n"
        "@hookimpl\n"
        "def envharness_layers():\n"
        "    yield Component('plain', Plain)\n"
    )
    found = answer(
        "run", config, "--run-dir", tmp_path / "run", "--json",
        "--set", 'plugins={mine="beside_the_config"}', "--set", 'designer.candidates=[[{use="mine/plain"}]]',
        "--set", 'executor={use="local", workers=1}',
    )  # fmt: skip
    assert found["candidates"]["evaluated"] == found["candidates"]["proposed"] > 0


def test_a_run_that_could_grade_nothing_fails(config: Path, tmp_path: Path) -> None:
    script = 'policy={use = "scripted", actions = [{name = "undo"}]}'
    done = envharness("run", config, "--run-dir", tmp_path / "run", "--set", script, "--json")
    assert done.returncode == 3
    assert "no episode was graded" in done.stderr
    assert json.loads(done.stdout)["episodes"]["excluded"] == {"policy_error": 18}


def test_help_lists_every_command() -> None:
    text = envharness("--help").stdout
    for name in ("run", "rollout", "tasks", "plugins", "check", "config", "verify", "report", "export"):
        assert f"  {name} " in text
        assert envharness(name, "--help").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_says_so_and_goes_on(config: Path, tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "envharness_core.cli.main", "run", config, "--run-dir", tmp_path / "run"]
    longer = ["--set", "report.rollouts=2000", "--set", 'executor={use="local", workers=1}']

    def hear_hang_ups() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests themselves run under nohup

    with subprocess.Popen(
        [*map(str, command), *longer], stderr=subprocess.PIPE, text=True, preexec_fn=hear_hang_ups
    ) as process:
        deadline = time.monotonic() + 60
        while not _episodes(tmp_path / "run") and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    *before, last = errors.strip().splitlines()
    assert last == "interrupted; what had ended is kept: run the same command to go on"
    drains = "stopping when what is being played has ended; Ctrl-C again stops at once"
    assert before == ([drains] if number is signal.SIGINT else [])
    kept = _episodes(tmp_path / "run")
    summary = answer("run", config, "--run-dir", tmp_path / "run", "--json", *longer)
    assert sum(summary["rollouts"].values()) > kept > 0


def _episodes(folder: Path) -> int:
    if not Store.exists(folder):
        return 0
    with Store.open(folder) as store:
        return sum(count for _, _, count in store.counts())
