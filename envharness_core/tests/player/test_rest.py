"""Rest: after a graded episode every leg's bridge is told, and one that can't is made anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import resting_bridges  # type: ignore[import-not-found]

from envharness_core.data import Action
from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.errors import BridgeError
from envharness_core.outcome import Outcome
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack

CALLS = resting_bridges.CALLS
PLUGINS = Plugins({"testing": "envharness_core.testing.plugin", "resting": "resting_bridges"})
RESTING = ComponentSpec("resting/resting")
LINK = ComponentSpec("link", {"next": {"bridge": "resting/second", "task": "three"}})
WINS = ComponentSpec("scripted", {"actions": [{"name": "add", "kwargs": {"amount": 3}}, {"name": "submit"}]})


@pytest.fixture(autouse=True)
def _nothing_called() -> Iterator[None]:
    CALLS.clear()
    yield
    CALLS.clear()


def spec(
    bridge: ComponentSpec = RESTING,
    layers: tuple[ComponentSpec, ...] = (),
    policy: ComponentSpec = WINS,
    steps: int = 9,
) -> EpisodeSpec:
    design = Design(bridge, "counter 1", "three", layers, policy, Limits(steps=steps))
    return EpisodeSpec(design, "baseline", 0, Seeds.of(0, "three", "baseline", 0, seed_in_task=True))


def test_it_comes_after_the_verdict_of_each_graded_episode() -> None:
    with Player(PLUGINS) as player:
        for steps in (9, 1):  # a win, then the step limit
            assert player.play(spec(steps=steps)).episode.graded
            assert CALLS[-2:] == ["resting.evaluate", "resting.rest"]
    assert CALLS.count("resting.rest") == 2
    assert CALLS[-1] == "resting.close"


def test_every_leg_of_a_link_rests_even_one_that_never_began() -> None:
    with Player(PLUGINS) as player:
        player.play(spec(layers=(LINK,), steps=1))
        assert {"resting.rest", "second.rest"} <= set(CALLS)


def test_an_episode_that_broke_is_closed_not_rested() -> None:
    with Player(PLUGINS) as player:
        broken = player.play(spec(policy=ComponentSpec("scripted", {"actions": [{"name": "add"}]}))).episode
        assert broken.outcome is Outcome.POLICY_ERROR
        assert CALLS[-1] == "resting.close"
        assert "resting.rest" not in CALLS


def test_a_bridge_that_cant_rest_is_made_anew_and_its_episode_counts() -> None:
    failing = ComponentSpec("testing/failing", {"call": "rest"})
    with Player(PLUGINS) as player:
        first, second = (player.play(spec(failing)).episode for _ in range(2))
    assert first.success
    assert second.success


def test_what_a_stack_is_told_reaches_the_bridge_through_the_border() -> None:
    with build_stack(PLUGINS, ComponentSpec("testing/failing", {"call": "rest", "after": 1})) as stack:
        stack.reset(0, {"task": "three"})
        stack.step(Action("submit"))
        stack.rest()
        stack.reset(0, {"task": "three"})
        with pytest.raises(BridgeError, match=r"Failing\.rest: ConnectionError"):
            stack.rest()
