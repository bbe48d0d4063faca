"""The expert: plays what the bridge says solves a task, and nobody else is told of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from threading import Thread
from typing import Any

import odd_solutions  # type: ignore[import-not-found]
import pytest

from envharness_core import rollout
from envharness_core.campaigns.world import check_fit, look_at
from envharness_core.config import make_config
from envharness_core.data import Action
from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.errors import ConfigError
from envharness_core.jsondata import Json
from envharness_core.outcome import Outcome
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.policy import Policy, check_policy
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.toy24.puzzles import puzzles
from envharness_core.toy24.solver import Solver
from envharness_core.trajectory import Rollout, read_trajectory

MODULES = {
    "testing": "envharness_core.testing.plugin",
    "asking": "asking_policies",
    "solving": "odd_solutions",
}
LINK = ComponentSpec("link", {"next": {"bridge": "toy24", "task": "1-2-3-4"}})


@pytest.fixture
def player() -> Iterator[Player]:
    with Player(Plugins(MODULES)) as player:
        yield player


def played(
    player: Player,
    bridge: str | ComponentSpec = "testing/counter",
    task: str = "three",
    layers: Sequence[ComponentSpec] = (),
    use: str = "expert",
    **config: Json,
) -> Rollout:
    where = ComponentSpec(bridge) if isinstance(bridge, str) else bridge
    design = Design(where, "x 1", task, tuple(layers), ComponentSpec(use, config), Limits(steps=12))
    spec = EpisodeSpec(design, "baseline", 0, Seeds.of(0, task, "baseline", 0, seed_in_task=True))
    record = player.play(spec)
    return Rollout(record.episode, read_trajectory(record.blob))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("bridge", "task"), [("testing/counter", "eight"), ("testing/text_world", "coin"), ("toy24", "3-3-8-8")]
)
def test_it_wins(player: Player, bridge: str, task: str, again: bool) -> None:
    done = played(player, bridge, task, again=again)
    assert (done.episode.outcome, done.episode.success) == (Outcome.COMPLETED, True)
    assert {step.text for step in done.trajectory.steps} == {""}


def test_a_sample_of_puzzles_is_won_by_name_of_the_way() -> None:
    for task in list(puzzles())[:40]:
        (done,) = rollout("toy24", task, {"use": "expert", "way": "search"})
        assert done.episode.success
        assert done.episode.steps == 3


def test_asking_again_wins_where_a_layer_is_in_the_way(player: Player) -> None:
    faults = ComponentSpec("faults", {"rate": 1.0, "streak": 1})
    once = played(player, "toy24", "1-2-3-4", [faults])
    again = played(player, "toy24", "1-2-3-4", [faults], again=True)
    assert (once.episode.success, again.episode.success) == (False, True)


def test_after_a_setup_it_starts_from_where_that_led(player: Player) -> None:
    setup = ComponentSpec("setup", {"actions": [{"name": "add", "kwargs": {"amount": 2}}]})
    done = played(player, layers=[setup])
    assert done.episode.success
    assert done.trajectory.steps[0].action == Action("add", {"amount": 1})


def test_over_a_link_it_asks_the_bridge_of_the_leg_that_is_on(player: Player) -> None:
    done = played(player, "testing/counter", "three", [LINK], again=True)
    assert (done.episode.success, done.episode.steps) == (True, 5)


def test_where_the_way_has_no_more_to_say_the_episode_goes_on_to_its_limit(player: Player) -> None:
    done = played(player, "testing/counter", "three", [LINK])  # asked once: it knows the first leg alone
    assert (done.episode.outcome, done.episode.success) == (Outcome.AGENT_LIMIT, False)
    assert done.episode.steps == 12
    last = done.trajectory.steps[-1]
    assert last.action is None
    assert last.response.info == {"malformed": "the bridge's solution has nothing to do from here"}


@pytest.mark.parametrize(
    ("bridge", "config", "says"),
    [
        ("testing/counter", {"way": "cuont"}, "policy.way: unknown way 'cuont' (did you mean 'count'?)"),
        ("testing/dice", {}, "this bridge knows none"),
    ],
)
def test_a_way_that_isnt_there_is_refused_before_anything_is_played(
    bridge: str, config: dict[str, Json], says: str, player: Player
) -> None:
    plugins = Plugins(MODULES)
    with pytest.raises(ConfigError) as caught:
        rollout(bridge, "three", {"use": "expert", **config}, plugins=plugins)
    assert says in str(caught.value)
    data: Any = {"bridge": bridge, "policy": {"use": "expert", **config}, "designer": "noop"}
    run = make_config({**data, "campaign": {"rollouts": 1}})
    with pytest.raises(ConfigError) as caught:
        check_fit(run, plugins, look_at(run, plugins))
    assert says in str(caught.value)
    done = played(player, bridge, "three", (), "expert", **config).episode  # and where nobody has checked
    assert done.outcome is Outcome.POLICY_ERROR
    assert says in done.error


def test_its_rate_cant_be_brought_into_a_band() -> None:
    run = make_config({"bridge": "toy24", "policy": "expert", "designer": "noop"})
    with pytest.raises(ConfigError, match=r"an expert.*band of rates"):
        check_fit(run, Plugins(), look_at(run, Plugins()))


def test_only_a_privileged_policy_is_told(player: Player) -> None:
    assert not played(player, use="asking/unprivileged").episode.success  # it calls nothing it wasn't told
    assert played(player, use="asking/privileged").episode.success
    check_policy(Solver(), (), ("search",))
    assert not Policy.privileged


@pytest.mark.parametrize("use", ["expert", "asking/careless"])
def test_a_bridge_that_fails_to_say_is_the_environments_error(player: Player, use: str) -> None:
    failing = ComponentSpec("testing/failing", {"call": "solution"})
    done = played(player, failing, use=use).episode
    assert (done.outcome, done.verdict) == (Outcome.ENV_ERROR, None)
    assert "Failing.solution: ConnectionError: the runtime went away during solution" in done.error


def test_a_solution_that_fits_no_tool_is_the_environments_error(player: Player) -> None:
    done = played(player, "solving/malformed").episode
    assert done.outcome is Outcome.ENV_ERROR
    assert "solution returned [1]: add: " in done.error


def test_what_hangs_while_it_is_asked_is_the_environment(player: Player) -> None:
    odd_solutions.GATE.clear()
    design = Design(
        ComponentSpec("solving/hanging"),
        "x 1",
        "three",
        (),
        ComponentSpec("expert"),
        Limits(wall_seconds=0.05),
    )
    spec = EpisodeSpec(design, "baseline", 0, Seeds.of(0, "three", "baseline", 0, seed_in_task=True))
    playing = Thread(target=player.play, args=(spec,))
    playing.start()
    try:
        deadline = time.monotonic() + 20
        while (record := player.overdue()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        odd_solutions.GATE.set()
        playing.join()
    assert record.episode.outcome is Outcome.ENV_ERROR
    assert "the environment hangs" in record.episode.error
