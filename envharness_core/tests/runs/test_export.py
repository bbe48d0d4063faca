"""Exported lines: one for each episode, as the schema says, true to what was stored, without secrets."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from envharness_core.data import Action, Observation, ResetResponse, StepResponse, Verdict
from envharness_core.episode import Design, Episode, EpisodeSpec, Limits, Record
from envharness_core.events import EventLog, encoded
from envharness_core.export import Damaged, export_lines, lines_schema, schema_file
from envharness_core.jsondata import JsonObject
from envharness_core.outcome import Outcome
from envharness_core.policy import Reply
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.store import FILE, Store
from envharness_core.trajectory import TrajectoryWriter

SECRET = "sk-Ab3dEf6hIj9kLm2nOp5q"


def lines(folder: Path) -> list[JsonObject]:
    with Store.open(folder, read_only=True) as store:
        exported = list(export_lines(store))
    assert not [line for line in exported if isinstance(line, Damaged)]
    return [json.loads(line) for line in exported if isinstance(line, bytes)]


def test_the_schema_that_is_installed_is_that_of_the_code() -> None:
    assert json.loads(schema_file().read_text()) == lines_schema()
    Draft202012Validator.check_schema(lines_schema())


def test_each_line_is_as_the_schema_says(complete: Path) -> None:
    validator = Draft202012Validator(json.loads(schema_file().read_text()))
    for line in lines(complete):
        validator.validate(line)
        assert not validator.is_valid({**line, "unheard": 1})
        assert not validator.is_valid({key: value for key, value in line.items() if key != "steps"})


def test_lines_tell_what_the_store_holds(complete: Path) -> None:
    exported = lines(complete)
    with Store.open(complete, read_only=True) as store:
        episodes = list(store.episodes())
        assert [line["key"] for line in exported] == [episode.key for episode in episodes]
        for line, episode in zip(exported, episodes, strict=True):
            told: Any = line
            told_episode = {
                **{name: told[name] for name in ("key", "task", "stream", "index", "outcome", "verdict")},
                **{name: told[name] for name in ("seconds", "usage", "error")},
                "steps": len(told["steps"]),
            }
            assert told_episode == episode.as_json()
            trajectory = store.trajectory(episode)
            for step, stored in zip(told["steps"], trajectory.steps, strict=True):
                assert step["shown"]["text"] == stored.response.observation.text
                assert (step["reward"], step["info"]) == (stored.response.reward, stored.response.info)
                raw = trajectory.raw_observation(stored)
                assert step["raw"] == (None if raw is None else {"text": raw.text, "data": raw.data})


def test_proposed_and_executed_are_told_apart(complete: Path) -> None:
    steps: list[Any] = [step for line in lines(complete) for step in line["steps"]]  # type: ignore[union-attr]
    failed = [step for step in steps if step["info"].get("transient_error")]
    assert failed, "the run's faults show"
    assert all(step["executed"] == [] and step["raw"] is None for step in failed)
    done = [step for step in steps if step["executed"]]
    assert all(step["executed"] == [{"leg": 0, "action": step["proposed"]}] for step in done)


def played(key: int, text: str, steps: int = 1) -> tuple[EpisodeSpec, Record]:
    """Make an episode whose every text is the given one, the first action a Setup's."""
    design = Design(
        ComponentSpec("x/y"), "y 1", "t", (), ComponentSpec("p/q", {"api_key": "short"}), Limits(), (text,)
    )
    spec = EpisodeSpec(design, "baseline", key, Seeds(key, 1, 2))
    log = EventLog()
    log.append("reset", seed=key, options={"task": "t"}, response=ResetResponse(Observation(text), text))
    log.append_step(encoded(Action("setup", {"text": text})), StepResponse(Observation(text)))
    writer = TrajectoryWriter([log])
    writer.start(ResetResponse(Observation(text, {"text": text}), text, {"password": "anything"}))
    for _ in range(steps):
        response = StepResponse(Observation(text))
        log.append_step(encoded(Action("act", {"text": text})), response)
        reply = Reply((Action("act", {"text": text}),), text, {"input_tokens": 3})
        writer.step(reply, 0, response, raw=True, dense=None, seconds=(0.1, 0.2), last=False)
    verdict = Verdict(True, 1.0, {"note": text})
    episode = Episode(spec.key, "t", "baseline", key, Outcome.COMPLETED, verdict, steps, 0.3, {}, text)
    return spec, Record(episode, writer.blob())


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "made", {}) as store:
        yield store


def test_secrets_are_nowhere_in_a_line(made: Store) -> None:
    made.put(*played(0, f"key {SECRET} end"))
    (line,) = lines(made.folder)
    told: Any = line
    assert SECRET not in json.dumps(line)
    assert told["design"]["policy"]["api_key"] == "[redacted]"
    assert told["start"]["info"] == {"password": "[redacted]"}
    assert told["steps"][0]["proposed"]["kwargs"]["text"] == "key [redacted] end"
    assert told["steps"][0]["usage"] == {"input_tokens": 3}


def test_what_a_setup_did_stands_at_the_start(made: Store) -> None:
    made.put(*played(0, "plain"))
    told: Any = lines(made.folder)[0]
    assert [item["action"]["name"] for item in told["start"]["executed"]] == ["setup"]
    assert [item["action"]["name"] for item in told["steps"][0]["executed"]] == ["act"]


def test_a_damaged_episode_is_told_and_the_others_follow(made: Store) -> None:
    for index in range(3):
        made.put(*played(index, "plain"))
    with sqlite3.connect(made.folder / FILE) as connection:
        connection.execute("UPDATE episodes SET trajectory = x'00ff' WHERE idx = 1")
    connection.close()
    exported = list(export_lines(made))
    assert [isinstance(line, Damaged) for line in exported] == [False, True, False]
    done = exported_by_command(made.folder)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2
    assert "left out episode" in done.stderr


@pytest.mark.slow
def test_memory_stays_flat(made: Store) -> None:
    def peak() -> int:
        tracemalloc.start()
        assert sum(len(line) for line in export_lines(made) if isinstance(line, bytes)) > 0
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    for index in range(50):
        made.put(*played(index, "x" * 20_000, steps=2))
    peak()
    few = peak()
    for index in range(50, 500):
        made.put(*played(index, "x" * 20_000, steps=2))
    assert peak() < few + 200_000


def exported_by_command(folder: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envharness_core.cli.main", "export", folder, *args]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)


def test_the_command_writes_to_stdout_or_a_file(complete: Path, tmp_path: Path) -> None:
    told = exported_by_command(complete).stdout
    assert [json.loads(line) for line in told.splitlines()] == lines(complete)
    out = tmp_path / "episodes.jsonl"
    done = exported_by_command(complete, "--out", out)
    assert done.stdout == f"{out}: {len(lines(complete))} episodes\n"
    assert out.read_text() == told
    assert [path.name for path in tmp_path.iterdir()] == ["episodes.jsonl"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--out", "/nowhere/x.jsonl"], "/nowhere/x.jsonl: can't be written"),
        (["--stacks", "stacks"], "--stacks stacks: its name must end in .json"),
        (["--stacks", "s.json", "--out", "x"], "--out: --stacks names its file itself"),
    ],
)
def test_bad_arguments_are_one_line(complete: Path, args: list[str], words: str) -> None:
    done = exported_by_command(complete, *args)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_a_pruned_trajectory_is_null(made: Store) -> None:
    made.put(*played(0, "plain"))
    made._connection.execute("UPDATE episodes SET trajectory = x''")
    told: Any = lines(made.folder)[0]
    assert (told["start"], told["steps"]) == (None, None)
    assert Draft202012Validator(lines_schema()).is_valid(told)
