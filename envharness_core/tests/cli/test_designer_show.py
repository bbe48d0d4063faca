"""``envharness designer show``: the whole prompt, with a baseline as a campaign plays it, and no model asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from envharness_core import campaign
from envharness_core.cli.designer_command import command
from envharness_core.errors import ConfigError
from envharness_core.store import Store

TASK = "1-4-8-11"
SHOWING = """
from envharness_core import Component, Designer, hookimpl


class Showing(Designer):
    def diagnose(self, evidence):
        raise RuntimeError("nobody may ask")

    propose = diagnose

    def attach(self, session):
        raise RuntimeError("nothing is attached to show a prompt")

    def show(self, evidence, stage):
        keys = ",".join(episode.key for episode in evidence.baseline)
        ways = len(evidence.demonstrations)
        return f"{stage} {evidence.task.id} {keys} seed {evidence.seed} budget {evidence.budget} ways {ways}"


@hookimpl
def envharness_designers():
    yield Component("showing", Showing)
"""


def shown(*args: str) -> Result:
    return CliRunner().invoke(command, ["show", *args], standalone_mode=False, catch_exceptions=True)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "showing_designer_of_a_test.py").write_text(SHOWING)
    path = tmp_path / "run.toml"
    path.write_text(
        'bridge = "toy24"\nseed = 5\nexecutor = "inline"\ndesigner = "showing"\n'
        'policy = {use = "solver", skill = 0.5}\n'
        "[plugins]\nshowing = 'showing_designer_of_a_test'\n[campaign]\nrollouts = 3\nbudget = 30\n"
    )
    return path


def test_it_shows_what_a_campaign_would_show_at_first(config: Path, tmp_path: Path) -> None:
    done = shown(TASK, "--config", str(config))
    assert done.exit_code == 0, done.exception
    stage, task, keys, _, seed, _, budget, _, ways = done.stdout.split()
    assert (stage, task, budget, ways) == ("diagnose", TASK, "27", "0")
    assert seed.isdigit()
    told: Any = campaign(config, tmp_path / "run", overrides=['designer="noop"', f'tasks={{ids=["{TASK}"]}}'])
    assert told["rollouts"]["baseline"] == 3
    with Store.open(tmp_path / "run") as store:
        assert all(store.get(key) is not None for key in keys.split(","))


def test_a_task_of_any_split_will_do(config: Path) -> None:
    held_out = shown("4-4-10-10", "--config", str(config), "--rollouts", "1", "--stage", "propose")
    assert held_out.stdout.startswith("propose 4-4-10-10 ")


def test_a_demonstrator_plays_where_the_policy_never_wins(config: Path) -> None:
    done = shown(
        "4-4-10-10",
        "--config",
        str(config),
        "--set",
        'policy={use="scripted", actions=[{name="stop"}]}',
        "--set",
        'demonstrator={use="solver", skill=1.0}',
    )
    assert int(done.stdout.split()[-1]) >= 1, done.exception


def test_json_holds_the_same_prompt(config: Path) -> None:
    plain, packed = shown(TASK, "--config", str(config)), shown(TASK, "--config", str(config), "--json")
    told: Any = json.loads(packed.stdout)
    assert told["prompt"] == plain.stdout.rstrip("\n")
    assert (told["task"], told["stage"], told["characters"]) == (TASK, "diagnose", len(told["prompt"]))


def test_a_designer_without_a_prompt_says_so(config: Path) -> None:
    done = shown(TASK, "--config", str(config), "--set", "designer=noop")
    assert "there is no prompt" in done.stdout


def test_an_unknown_task_is_the_users_mistake() -> None:
    done = shown("9-9-9-9", "--set", "designer=noop")
    assert isinstance(done.exception, ConfigError)
    assert re.search("unknown task '9-9-9-9'.*known: ", str(done.exception))


def test_without_a_graded_rollout_there_is_nothing_to_show() -> None:
    done = shown(TASK, "--set", "designer=noop", "--set", "limits={steps=50, wall_seconds=0.0000001}")
    assert done.return_value == 3
    assert "no rollout of the baseline was graded" in done.output
