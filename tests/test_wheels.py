"""Each distribution builds a wheel that holds its package and nothing else, and the wheels alone run a campaign."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = {
    "envharness_bridge_alfworld": "envharness_bridge_alfworld",
    "envharness_core": "envharness_core",
    "plugins/flaky_tools": "envharness_flaky_tools",
    "plugins/llm": "envharness_llm",
}
ENOUGH = ("envharness_core", "envharness_flaky_tools")
"""What a campaign on the embedded benchmark needs."""

CONFIG = """
bridge = "toy24"
policy = "solver"

[tasks]
limit = 2

[designer]
use = "scripted"
candidates = [[{use = "flaky_tools", rate = 0.4}]]

[report]
rollouts = 5
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("wheels")
    for folder in DISTRIBUTIONS:
        command = [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(out),
            str(ROOT / folder),
        ]
        subprocess.run(command, check=True, capture_output=True)
    return sorted(out.glob("*.whl"))


def test_each_wheel_holds_its_package_alone(wheels: list[Path]) -> None:
    assert len(wheels) == len(DISTRIBUTIONS)
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        tops = {name.split("/")[0] for name in names}
        package = next(package for package in DISTRIBUTIONS.values() if wheel.name.startswith(package))
        assert {top for top in tops if not top.endswith(".dist-info")} == {package}
        assert f"{package}/py.typed" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheels_alone_run_a_campaign(wheels: list[Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / "bin"
    needed = [wheel for wheel in wheels if wheel.name.startswith(ENOUGH)]
    install = [binaries / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *needed]
    subprocess.run(list(map(str, install)), check=True, capture_output=True)
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    command = [binaries / "envharness", "run", config, "--run-dir", tmp_path / "run", "--json"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert summary["tasks"] == 2
    assert summary["candidates"]["evaluated"] == 2
    assert summary["episodes"]["excluded"] == {}
