"""The whole pipeline on Toy24 against the scripted model, and again from the record of its calls alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner

from envharness_core.campaigns.run import run_campaign
from envharness_core.cli.main import cli
from envharness_core.config import read_config
from envharness_core.evaluation.run import run_evaluation
from envharness_core.testing import ModelServer
from envharness_core.testing.toy24_model import brain

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline.toml"


@frozen
class Ran:
    """What a pipeline came to, and where."""

    folder: Path
    campaign: Any
    evaluation: Any


def pipeline(folder: Path, *settings: str) -> Ran:
    config = read_config(EXAMPLE, settings)
    campaign = run_campaign(config, folder / "campaign")
    evaluation = run_evaluation(config, folder / "evaluation", folder / "campaign")
    return Ran(folder, campaign, evaluation)


def said(*arguments: str) -> str:
    """Return what the command line prints."""
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def timeless(value: Any) -> Any:
    """Return plain data without the seconds that anything took."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if not key.endswith("seconds")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def told(text: str) -> bytes:
    """Return JSON, or lines of it in any order, without seconds and else byte for byte."""
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [json.loads(line) for line in text.splitlines()]
    return b"\n".join(sorted(json.dumps(timeless(document)).encode() for document in documents))


@pytest.mark.usefixtures("quiet_again")
def test_the_pipeline_is_replayed_from_its_cassette_byte_for_byte(tmp_path: Path) -> None:
    cassette = f"settings.llm.cassette.file={tmp_path / 'calls.sqlite3'}"
    with ModelServer(brain) as server:
        first = pipeline(tmp_path / "first", cassette, f"settings.llm.api_base={server.base_url}")
    asked = len(server.requests)
    assert first.campaign["accepted"] >= 3
    assert {"designer", "policy"} <= set(first.campaign["usage"])
    assert {"extractor", "policy"} <= set(first.evaluation["usage"])
    assert all(row["graded"] and not row["missing"] for row in first.evaluation["conditions"])
    assert {asked.status for asked in server.requests} == {200}

    replayed = json.loads(said("replay", str(first.folder / "campaign"), "--json"))
    assert replayed["same"] == replayed["tasks"] > 0  # from the record alone: the server is gone

    again = pipeline(tmp_path / "again", cassette, "settings.llm.cassette.mode=replay")
    assert len(server.requests) == asked
    for name in ("bank-original.jsonl", "bank-reshaped.jsonl"):
        one, other = (ran.folder / "evaluation" / name for ran in (first, again))
        assert one.read_bytes() == other.read_bytes()
        assert one.stat().st_size
    for command in (
        ("report", "campaign", "--json"),
        ("compare", "evaluation", "--json"),
        ("export", "campaign"),
        ("export", "evaluation"),
    ):
        name, run, *rest = command
        one_told, other_told = (said(name, str(ran.folder / run), *rest) for ran in (first, again))
        assert told(one_told) == told(other_told)


def test_the_example_needs_no_key_and_names_no_place_but_this_machine() -> None:
    config = read_config(EXAMPLE)
    assert config.settings["llm"]["api_base"] == "http://127.0.0.1:8765/v1"
    assert "keys" not in config.settings["llm"]
    models = [component.config["model"] for component in (config.policy, config.designer, config.extractor)]
    assert set(models) == {"openai/scripted"}
    assert config.evaluation.conditions == ("none", "original", "reshaped")
