"""The player: whatever happens is an outcome, and nothing turns an exception into a score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from envharness_core.data import Action
from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.outcome import Outcome
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.trajectory import Trajectory, read_trajectory


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    modules = {
        "testing": "envharness_core.testing.plugin",
        "bad_layers": "known_bad_layers",
        "bad_bridges": "known_bad_bridges",
        "tracked": "tracked_bridges",
        "odd": "odd_policies",
    }
    with Player(Plugins(modules)) as player:
        yield player


def spec(
    replies: str = "two_actions",
    *,
    bridge: ComponentSpec | None = None,
    layers: tuple[ComponentSpec, ...] = (),
    policy: ComponentSpec | None = None,
    task: str = "three",
    steps: int = 50,
) -> EpisodeSpec:
    design = Design(
        bridge=bridge or ComponentSpec("testing/counter"),
        upstream="counter 1",
        task=task,
        layers=layers,
        policy=policy or ComponentSpec("odd", {"replies": replies}),
        limits=Limits(steps=steps),
    )
    return EpisodeSpec(design, "baseline", 0, Seeds.of(0, task, "baseline", 0, seed_in_task=True))


def failing(call: str, after: int = 0) -> ComponentSpec:
    return ComponentSpec("testing/failing", {"call": call, "after": after})


def bad(name: str) -> tuple[ComponentSpec, ...]:
    return (ComponentSpec(f"bad_layers/{name}"),)


@pytest.mark.parametrize(
    ("episode", "outcome", "says"),
    [
        (spec("raises"), Outcome.POLICY_ERROR, "ZeroDivisionError: oh no"),
        (spec("nothing"), Outcome.POLICY_ERROR, "act must return a Reply with a tuple of actions, got None"),
        (spec("list_of_actions"), Outcome.POLICY_ERROR, "act must return a Reply"),
        (spec("no_actions_inside"), Outcome.POLICY_ERROR, "a Reply holds Actions and a text"),
        (spec("no_text"), Outcome.POLICY_ERROR, "a Reply holds Actions and a text"),
        (spec("odd_usage"), Outcome.POLICY_ERROR, "usage.tokens: nan"),
        (spec(policy=ComponentSpec("odd/unmade")), Outcome.POLICY_ERROR, "API_KEY"),
        (spec("provider_fails"), Outcome.PROVIDER_ERROR, "429"),
        (spec(bridge=failing("reset")), Outcome.ENV_ERROR, "ConnectionError"),
        (spec(bridge=failing("step")), Outcome.ENV_ERROR, "went away during step"),
        (spec(bridge=failing("step", 1)), Outcome.ENV_ERROR, "went away during step"),
        (spec(bridge=ComponentSpec("tracked/unmade")), Outcome.ENV_ERROR, "no docker here"),
        (spec(bridge=ComponentSpec("tracked/toolless")), Outcome.ENV_ERROR, "no tools today"),
        (spec(bridge=ComponentSpec("bad_bridges/leaky_info")), Outcome.ENV_ERROR, "info.seen: set"),
        (spec(bridge=failing("evaluate", 2)), Outcome.VERIFIER_ERROR, "went away during evaluate"),
        (spec(bridge=ComponentSpec("bad_bridges/nan_score")), Outcome.VERIFIER_ERROR, "got nan"),
        (spec(layers=bad("leaky")), Outcome.RULES_ERROR, "info.handle"),
        (spec(layers=bad("leaky_reset")), Outcome.RULES_ERROR, "info.handle"),
        (spec(layers=bad("not_a_number")), Outcome.RULES_ERROR, "reward: expected a finite number"),
        (spec(layers=bad("raises")), Outcome.RULES_ERROR, "oh no"),
        (spec("three_actions", layers=bad("masks_without_resuming")), Outcome.RULES_ERROR, "inner.resume()"),
        (
            spec(layers=(ComponentSpec("setup", {"actions": [{"name": "submit"}]}),)),
            Outcome.RULES_ERROR,
            "setup action 0, submit(): ends the episode",
        ),
    ],
)
def test_a_failure_has_an_outcome_a_cause_and_no_verdict(
    player: Player, episode: EpisodeSpec, outcome: Outcome, says: str
) -> None:
    played = player.play(episode).episode
    assert (played.outcome, played.verdict, played.success) == (outcome, None, False)
    assert says in played.error


def test_a_failure_leaves_the_player_able_to_play(player: Player) -> None:
    for episode in (spec("raises"), spec(bridge=failing("step", 1)), spec()):
        player.play(episode)
    again = player.play(spec()).episode
    assert (again.outcome, again.success) == (Outcome.COMPLETED, True)


def test_the_steps_before_a_failure_are_kept(player: Player) -> None:
    record = player.play(spec(bridge=failing("step", 1)))
    trajectory = read_trajectory(record.blob)
    assert record.episode.steps == len(trajectory.steps) == 1
    assert [action.name for action in trajectory.actions()] == ["add"]


def played(player: Player, episode: EpisodeSpec) -> tuple[Any, Trajectory]:
    record = player.play(episode)
    return record.episode, read_trajectory(record.blob)


def test_two_actions_in_one_reply_are_done_in_order(player: Player) -> None:
    episode, trajectory = played(player, spec())
    assert (episode.outcome, episode.success, episode.steps) == (Outcome.COMPLETED, True, 2)
    assert [step.action for step in trajectory.steps] == [Action("add", {"amount": 3}), Action("submit")]
    assert [step.text for step in trajectory.steps] == ["both", ""]
    assert [step.dropped for step in trajectory.steps] == [0, 0]
    assert episode.usage == {"input_tokens": 5}


def test_what_a_reply_asked_for_after_the_end_is_counted_and_not_silently_dropped(player: Player) -> None:
    episode, trajectory = played(player, spec("three_actions"))
    assert episode.outcome is Outcome.COMPLETED
    assert [step.dropped for step in trajectory.steps] == [0, 1]
    episode, trajectory = played(player, spec("three_actions", steps=1))
    assert episode.outcome is Outcome.AGENT_LIMIT
    assert [step.dropped for step in trajectory.steps] == [2]


def test_a_reply_without_an_action_is_a_malformed_call(player: Player) -> None:
    episode, trajectory = played(player, spec("no_action"))
    assert episode.outcome is Outcome.COMPLETED
    first = trajectory.steps[0]
    assert (first.action, first.text) == (None, "I think...")
    assert first.response.info == {"malformed": "the reply holds no tool call"}
    assert trajectory.events_of(first) == []


@pytest.mark.parametrize("replies", ["lone_surrogate", "unprintable", "null_arguments", "huge_number"])
def test_whatever_a_policy_sends_the_episode_lives_and_is_recorded(player: Player, replies: str) -> None:
    episode, trajectory = played(player, spec(replies))
    assert episode.outcome is Outcome.COMPLETED
    first = trajectory.steps[0]
    assert "malformed" in first.response.info
    assert first.action is not None
    assert "malformed" in first.action.kwargs
    assert trajectory.events_of(first) == []


def test_an_empty_text_for_no_arguments_is_a_call(player: Player) -> None:
    episode, trajectory = played(player, spec("empty_text"))
    assert episode.outcome is Outcome.COMPLETED
    assert "malformed" not in trajectory.steps[0].response.info


def test_the_step_limit_is_the_agents_and_is_graded(player: Player) -> None:
    episode, trajectory = played(player, spec("adds", steps=3))
    assert (episode.outcome, episode.graded, episode.success) == (Outcome.AGENT_LIMIT, True, False)
    assert episode.steps == len(trajectory.steps) == 3
    budget = (ComponentSpec("budget", {"steps": 2}),)
    assert played(player, spec("adds", layers=budget))[0].outcome is Outcome.AGENT_LIMIT


def test_a_dense_reward_that_fails_is_recorded_and_not_fatal(player: Player) -> None:
    episode, trajectory = played(player, spec(bridge=failing("step_reward")))
    assert episode.outcome is Outcome.COMPLETED
    assert "ConnectionError" in str(trajectory.steps[0].response.info["step_reward_error"])
    assert trajectory.steps[0].dense is None


def test_the_trajectory_tells_what_was_proposed_from_what_was_done(player: Player) -> None:
    faults = (ComponentSpec("faults", {"rate": 1.0, "streak": 1}),)
    _, trajectory = played(player, spec("adds", layers=faults, steps=2))
    fault, done = trajectory.steps
    assert trajectory.events_of(fault) == []
    assert trajectory.raw_observation(fault) is None
    (event,) = trajectory.events_of(done)
    assert event.action == done.action
    raw = trajectory.raw_observation(done)
    assert raw is not None
    assert raw.text == "The count is 1."


def test_the_same_episode_repeats_on_a_warm_player(player: Player) -> None:
    faults = (ComponentSpec("faults", {"rate": 0.5}),)
    one, two = (played(player, spec("adds", layers=faults, steps=20))[1] for _ in range(2))
    assert [step.response for step in one.steps] == [step.response for step in two.steps]
    assert one.events == two.events
