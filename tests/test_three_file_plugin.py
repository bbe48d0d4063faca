"""A plugin typed off the documents, in a folder of its own, installs with pip and works; a broken one harms nobody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BROKEN_PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "envharness-broken"
version = "0.3.0"

[project.entry-points.envharness]
broken = "envharness_broken"
"""

CONFIG = """
bridge = "toy24"
executor = "local"

[policy]
use = "solver"
skill = 0.9

[tasks]
limit = 1

[designer]
use = "scripted"
candidates = [[{use = "typed_flaky", rate = 0.4}]]
"""


def typed(folder: Path) -> Path:
    """Type the three files of docs/plugins.md, under names that nothing else has."""
    text = (ROOT / "docs" / "plugins.md").read_text()
    section = text.split("## Three files")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\w+\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    project, module, test = (
        block.replace("flaky_tools", "typed_flaky").replace("flaky-tools", "typed-flaky") for block in blocks
    )
    folder.mkdir()
    (folder / "pyproject.toml").write_text(project)
    (folder / "envharness_typed_flaky.py").write_text(module)
    (folder / "test_typed_flaky.py").write_text(test)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the typed plugin and a broken one into, beside the environment that runs this."""
    work = tmp_path_factory.mktemp("plugins")
    broken = work / "broken"
    broken.mkdir()
    (broken / "pyproject.toml").write_text(BROKEN_PROJECT)
    (broken / "envharness_broken.py").write_text("import a_module_that_is_nowhere\n")
    target = work / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    for project in (typed(work / "typed"), broken):
        subprocess.run([*command, "--target", str(target), str(project)], check=True, capture_output=True)
    return target


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=site.parent / "typed",
    )


def envharness(site: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run(site, "-m", "envharness_core.cli.main", *args)


def test_it_is_listed_and_the_broken_one_with_its_cause(site: Path) -> None:
    rows = {row["name"]: row for row in json.loads(envharness(site, "plugins", "--json").stdout)}
    (component,) = rows["typed_flaky"]["components"]
    assert (component["kind"], component["type"]) == ("layer", "typed_flaky/typed_flaky")
    assert rows["broken"]["components"] == []
    assert "envharness-broken 0.3.0" in rows["broken"]["error"]
    assert "No module named 'a_module_that_is_nowhere'" in rows["broken"]["error"]
    assert "broken: plugin 'broken'" in envharness(site, "plugins").stdout


def test_it_passes_its_one_line_test(site: Path) -> None:
    done = run(site, "-m", "pytest", "-p", "no:cacheprovider", "test_typed_flaky.py")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_it_passes_the_checks_of_the_command_line(site: Path) -> None:
    done = envharness(site, "check", "typed_flaky")
    assert done.returncode == 0, done.stdout
    assert ", 0 failed" in done.stdout


def test_it_runs_in_a_config_in_worker_processes(site: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    done = envharness(site, "run", str(config), "--run-dir", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["candidates"] == {"proposed": 1, "evaluated": 1}
    assert json.loads(envharness(site, "verify", str(tmp_path / "run"), "--json").stdout)["disagreed"] == 0


def test_a_wrong_value_names_plugin_field_and_what_is_allowed(site: Path) -> None:
    layer = '{use = "typed_flaky", rate = 2}'
    done = envharness(site, "rollout", "toy24", "1-2-3-4", "--policy", "solver", "--layer", layer)
    assert done.returncode == 2
    assert "layers[0] (typed_flaky/typed_flaky): 'rate' must be <= 1" in done.stderr


def test_naming_the_broken_one_is_an_error(site: Path) -> None:
    done = envharness(site, "rollout", "toy24", "1-2-3-4", "--policy", "solver", "--layer", "broken")
    assert done.returncode == 2
    assert "plugin 'broken' (envharness-broken 0.3.0) can't be imported" in done.stderr
