"""Texts that a config takes from files: by the config's folder, into its identity, with errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from envharness_core import campaign
from envharness_core.config import read_config
from envharness_core.errors import ConfigError

RULES = """
class _Rules(Rules):
    def filter_action(self, action, env_state):
        return action
"""
CONFIG = """
bridge = "toy24"
policy = "solver"
executor = "inline"
[tasks]
limit = 1
[campaign]
rollouts = 2
[designer]
use = "scripted"
candidates = [[{use = "rules", source = {from_file = "rules/pass.py"}}]]
"""


def written(folder: Path, rules: str = RULES) -> Path:
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    (folder / "rules" / "pass.py").write_text(rules)
    path = folder / "config.toml"
    path.write_text(CONFIG)
    return path


def test_the_text_stands_in_the_tables_place(tmp_path: Path) -> None:
    config = read_config(written(tmp_path))
    assert config.designer.config == {"candidates": [[{"use": "rules", "source": RULES}]]}


def test_a_changed_file_is_another_run(tmp_path: Path) -> None:
    campaign(written(tmp_path), tmp_path / "run")
    campaign(written(tmp_path), tmp_path / "run")
    with pytest.raises(ConfigError, match="another config"):
        campaign(written(tmp_path, RULES.replace("return action", "return Blocked('no')")), tmp_path / "run")


def test_an_override_may_name_a_file(tmp_path: Path) -> None:
    (tmp_path / "sentence.txt").write_text("It never checks.")
    overrides = ["objective={use = 'weakness', sentence = {from_file = 'sentence.txt'}}"]
    assert read_config(written(tmp_path), overrides).objective.config == {"sentence": "It never checks."}


@pytest.mark.parametrize(("content", "problem"), [(None, "No such file"), (b"\xff\xfe", "not UTF-8")])
def test_a_file_that_cant_be_read_is_named_with_its_place(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = written(tmp_path)
    (tmp_path / "rules" / "pass.py").unlink()
    if content is not None:
        (tmp_path / "rules" / "pass.py").write_bytes(content)
    with pytest.raises(
        ConfigError, match=rf"designer\.candidates\[0\]\[0\]\.source\.from_file: .*pass\.py.*{problem}"
    ):
        read_config(path)
