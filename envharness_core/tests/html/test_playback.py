"""What the viewer is given is what the trajectory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hostile_texts import NASTY  # type: ignore[import-not-found]

from envharness_core import rollout
from envharness_core.page.choice import Chosen
from envharness_core.page.playback import LONGEST, clipped, playback
from envharness_core.plugins import Plugins
from envharness_core.store import Store


def text(runs: Any) -> str:
    return "".join(piece for piece, _ in runs)


@pytest.mark.parametrize("name", ["toy24", "hostile"])
def test_every_step_of_a_run_is_told_as_it_was(name: str, request: pytest.FixtureRequest) -> None:
    touched = untouched = 0
    with Store.open(request.getfixturevalue(name), read_only=True) as store:
        for episode in list(store.episodes())[::7]:
            trajectory = store.trajectory(episode)
            told: Any = playback(Chosen(episode, "a test"), trajectory)
            assert len(told["steps"]) == episode.steps
            world = told["start"]
            for step, shown in zip(trajectory.steps, told["steps"], strict=True):
                raw = trajectory.raw_observation(step)
                executed = [str(event.action) for event in trajectory.events_of(step) if event.kind == "step"]
                assert shown["proposed"] == (None if step.action is None else str(step.action))
                assert [event["words"] for event in shown["executed"] if event["kind"] == "step"] == executed
                assert text(shown["shown"]) == step.response.observation.text
                assert shown["reached"] == (raw is not None)
                left = shown["shown"] if shown["world"] == "same" else shown["world"]
                expected = (
                    raw.text if raw else text(world["shown"] if world["world"] == "same" else world["world"])
                )
                assert text(left) == expected
                world = shown
                touched += raw is not None
                untouched += raw is None
    assert touched
    assert untouched


def test_a_setup_is_told_as_what_happened_before_the_start() -> None:
    setup = {"use": "setup", "actions": [{"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "+"}}]}
    (played,) = rollout("toy24", "1-2-3-4", "solver", [setup])  # type: ignore[list-item]
    start: Any = playback(Chosen(played.episode, ""), played.trajectory)["start"]
    assert [event["words"] for event in start["executed"] if event["kind"] == "step"] == [
        'combine(i=0, j=1, op="+")'
    ]
    assert "1 + 2 = 3" in text(start["shown"])


def test_a_masked_end_and_a_blocked_action_are_said() -> None:
    plugins = Plugins({"shaping": "shaping_layers", "testing": "envharness_core.testing.plugin"})
    script = {"use": "scripted", "actions": [{"name": "submit", "kwargs": {}}] * 2}
    (played,) = rollout("testing/counter", "three", script, ["shaping/second_chance"], plugins=plugins)  # type: ignore[arg-type]
    first: Any = playback(Chosen(played.episode, ""), played.trajectory)["steps"][0]  # type: ignore[index]
    assert first["masked"]
    assert [event["kind"] for event in first["executed"]] == ["step", "resume"]
    hostile = Plugins({"hostile": "hostile_texts"})
    (played,) = rollout(
        "hostile/words", "two & <b>two</b>", "hostile/talks", ["hostile/loud"], plugins=hostile, seed=3
    )
    steps: Any = playback(Chosen(played.episode, ""), played.trajectory)["steps"]
    assert steps[0]["executed"][0]["words"] != steps[0]["proposed"]
    assert steps[0]["info"] == {NASTY: NASTY}
    assert steps[1]["special"] == [["blocked", f"Don't say no. {NASTY}"]]
    assert steps[2]["special"][0][0] == "malformed"


def test_an_episode_that_never_began_is_told(hostile: Path) -> None:
    with Store.open(hostile, read_only=True) as store:
        failed = next(episode for episode in store.episodes() if not episode.graded)
        told: Any = playback(Chosen(failed, ""), store.trajectory(failed))
    assert told["success"] is None
    assert NASTY in told["error"]
    assert told["steps"] == []


def test_a_long_text_is_cut_and_says_so() -> None:
    assert clipped("a" * LONGEST) == "a" * LONGEST
    assert clipped("a" * (LONGEST + 1234)).endswith("[1,234 more characters are in the run folder]")
