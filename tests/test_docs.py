"""The documents are true: their code runs, their configs are configs, and nothing that they list is missing."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import get_args

import attrs
import pytest

import envharness_core
from envharness_core import SandboxConfig, hookspecs, rollout
from envharness_core.account import Budget
from envharness_core.campaigns.world import check_fit, look_at
from envharness_core.config import (
    CampaignConfig,
    EvaluationConfig,
    ReportConfig,
    RunConfig,
    SkillsConfig,
    TaskSelection,
    make_config,
    resolve,
)
from envharness_core.episode import Limits
from envharness_core.errors import FaultKind
from envharness_core.jsondata import JsonObject, copy_object
from envharness_core.kinds import KINDS
from envharness_core.plugins import Plugins, short_name
from envharness_core.sandbox.dialect import MODULES
from envharness_llm.settings import CassetteSettings, ProviderSettings, Settings

ROOT = Path(__file__).parent.parent
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def parameters(language: str) -> list[pytest.param]:  # type: ignore[valid-type]
    return [
        pytest.param(block, id=f"{path.name}-{number}")
        for path in DOCS
        for number, block in enumerate(blocks(path, language))
    ]


@pytest.mark.parametrize("code", parameters("python"))
def test_each_python_block_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "a block of the documents", "exec"), {"__name__": "block"})


@pytest.mark.parametrize(
    "text", [block for path in DOCS for block in blocks(path, "toml") if "[bridge]" in block]
)
def test_each_config_is_a_config(text: str) -> None:
    data = copy_object(tomllib.loads(text))
    config = make_config(data)
    plugins = Plugins(config.plugins)
    world = look_at(resolve(config, plugins), plugins)
    check_fit(config, plugins, world)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_each_example_is_a_config(path: Path) -> None:
    plugins = Plugins()
    config = resolve(make_config(copy_object(tomllib.loads(path.read_text()))), plugins)
    check_fit(config, plugins, look_at(config, plugins))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "rules").glob("*.py")), ids=lambda path: path.name
)
def test_each_example_of_rules_is_played(path: Path) -> None:
    layer: JsonObject = {"use": "rules", "source": path.read_text()}
    played = rollout("toy24", "1-2-3-4", {"use": "solver", "skill": 0.7}, [layer], count=3)
    assert all(item.episode.graded for item in played)


def test_the_modules_of_rules_are_listed() -> None:
    text = " ".join((ROOT / "docs" / "rules.md").read_text().split())
    assert f"These modules can be imported: {', '.join(f'`{name}`' for name in MODULES)}. Anything" in text


def test_each_kind_of_fault_is_documented() -> None:
    text = (ROOT / "docs" / "rules.md").read_text()
    for kind in get_args(FaultKind):
        assert f"| `{kind}` | " in text


def test_each_hook_is_a_heading_with_its_signature() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()
    for kind in KINDS:
        signature = inspect.signature(getattr(hookspecs, kind.hook))
        assert f"### {kind.hook}{str(signature).replace(chr(39), '')}\n" in text


def test_each_key_of_the_config_is_documented() -> None:
    text = (ROOT / "docs" / "config.md").read_text()
    for cls in (
        RunConfig,
        TaskSelection,
        Limits,
        CampaignConfig,
        ReportConfig,
        SkillsConfig,
        EvaluationConfig,
        Budget,
        SandboxConfig,
    ):
        for field in attrs.fields(cls):
            assert f"`{field.name}`" in text, f"{cls.__name__}.{field.name}"


def test_each_component_of_the_core_is_documented_with_its_keys() -> None:
    text = (ROOT / "docs" / "config.md").read_text()
    for kind in KINDS:
        for found in Plugins().components(kind):
            if found.source.name != "core":
                continue
            heading = f"### {kind.name} `{short_name(found.full_name)}`\n"
            assert heading in text
            section = text.split(heading)[1].split("\n### ")[0]
            for field in attrs.fields(found.config_class()):
                assert f"`{field.name}`" in section, f"{kind.name} {found.full_name}: {field.name}"


@pytest.mark.parametrize(("plugin", "page"), [("llm", "models.md"), ("alfworld", "alfworld.md")])
def test_each_component_of_a_plugin_is_documented_with_its_keys(plugin: str, page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    mine = [found for kind in KINDS for found in Plugins().components(kind) if found.source.name == plugin]
    assert mine
    for found in mine:
        assert short_name(found.full_name) in text
        for field in attrs.fields(found.config_class()):
            assert f"`{field.name}`" in text, f"{found.kind.name} {found.full_name}: {field.name}"


def test_each_setting_of_the_language_models_is_documented() -> None:
    text = (ROOT / "docs" / "models.md").read_text()
    for cls in (Settings, CassetteSettings, ProviderSettings):
        for field in attrs.fields(cls):
            assert f"`{field.name}`" in text, f"{cls.__name__}.{field.name}"


def test_each_file_of_the_documents_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for path in DOCS[1:]:
        assert f"docs/{path.name}" in readme


def test_the_package_is_the_real_one() -> None:
    assert envharness_core.__file__ is not None
