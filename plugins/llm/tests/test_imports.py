"""What has no model to ask doesn't pay for models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from envharness_core.cli.main import main
sys.argv = ["envharness", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
dear = [name for name in ("litellm", "openai", "pydantic", "wordllama", "numpy") if name in sys.modules]
assert not dear, dear
"""
RUN = """
bridge = "toy24"
policy = "solver"
executor = "inline"
[tasks]
limit = 2
[campaign]
rollouts = 2
attempts = 1
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["plugins"],
        ["rollout", "toy24", "1-2-3-4", "--policy", "solver"],
        ["run", "config.toml", "--run-dir", "run"],
        ["config", "asking.toml"],
        ["designer", "show", "1-2-3-4", "--rollouts", "2"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_litellm_isnt_imported(tmp_path: Path, arguments: list[str]) -> None:
    """Not by listings, nor by runs without models, nor by a config that names a model which isn't asked."""
    (tmp_path / "config.toml").write_text(RUN)
    (tmp_path / "asking.toml").write_text(RUN.replace('"solver"', '{use = "llm", model = "openai/x"}'))
    script = SCRIPT.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
