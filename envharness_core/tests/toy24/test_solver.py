"""The solver plays like an imperfect person: better with skill, sensible when things go wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from attrs import evolve, field, frozen

from envharness_core.data import Action, Observation
from envharness_core.toy24.bridge import Toy24
from envharness_core.toy24.puzzles import deal, parse
from envharness_core.toy24.solver import Solver, SolverConfig, outlook, ruled_out

TASKS = [task.id for task in Toy24().list_tasks("train", 30)]
Wrong = Callable[[Random, Action], str | None]


@frozen
class Played:
    success: bool
    actions: list[str] = field(factory=list)


def play(task: str, config: SolverConfig, seed: int, wrong: Wrong | None = None, keep: int = 99) -> Played:
    """Play an episode of at most 20 steps; ``wrong`` may refuse an action with a reason."""
    bridge, policy, random = Toy24(), Solver(config), Random(seed)
    start = bridge.reset(0, {"task": task})
    policy.start(start.instruction, bridge.tools(), Random(seed).getrandbits(60))
    observation, actions = start.observation, []
    for _ in range(20):
        action = policy.act(trimmed(observation, keep)).actions[0]
        actions.append(str(action))
        reason = wrong(random, action) if wrong else None
        if reason is not None:
            observation = bridge.observe().preceded_by(reason)
            continue
        response = bridge.step(action)
        assert "error" not in response.info
        observation = response.observation
        if response.ended:
            break
    return Played(bridge.evaluate().success, actions)


def trimmed(observation: Observation, keep: int) -> Observation:
    log = observation.data["log"]
    assert isinstance(log, list)
    return evolve(observation, data={**observation.data, "log": log[max(0, len(log) - keep) :]})


def rate(task: str, skill: float, rollouts: int = 20, wrong: Wrong | None = None, keep: int = 99) -> float:
    config = SolverConfig(skill=skill)
    return sum(play(task, config, seed, wrong, keep).success for seed in range(rollouts)) / rollouts


def mean(rates: list[float]) -> float:
    return sum(rates) / len(rates)


def test_rates_rise_with_skill_and_spread_over_tasks() -> None:
    by_skill = [[rate(task, skill) for task in TASKS] for skill in (0.1, 0.4, 0.7)]
    low, middle, high = map(mean, by_skill)
    assert low + 0.1 < middle < high - 0.1
    assert max(by_skill[1]) - min(by_skill[1]) >= 0.5
    assert sum(value >= 0.9 for value in by_skill[2]) > len(TASKS) / 3


def test_a_needed_fraction_is_hard_to_see() -> None:
    assert rate("3-3-8-8", 0.6) < 0.4 < rate("2-3-4-12", 0.6)


def test_the_same_seed_plays_the_same_episode() -> None:
    config = SolverConfig(skill=0.4)
    policy = [play(task, config, 7) for task in TASKS]
    assert policy == [play(task, config, 7) for task in TASKS]
    assert policy != [play(task, config, 8) for task in TASKS]


def test_recovers_from_transient_faults() -> None:
    def flaky(random: Random, action: Action) -> str | None:
        return "tool timed out, try again" if random.random() < 0.2 else None

    easy = TASKS[:12]
    assert mean([rate(t, 0.7, wrong=flaky) for t in easy]) > mean([rate(t, 0.7) for t in easy]) - 0.15


def test_repeats_what_timed_out_but_not_for_ever() -> None:
    played = play(TASKS[0], SolverConfig(), 1, lambda _, action: "timed out, try again")
    assert len(set(played.actions[:4])) == 1
    assert len(set(played.actions)) > 2


def test_leaves_a_closed_operator_alone() -> None:
    def closed(_: Random, action: Action) -> str | None:
        return "combine with op '*' is closed" if action.kwargs.get("op") == "*" else None

    for task in TASKS:
        actions = play(task, SolverConfig(), 3, closed).actions
        assert sum('"*"' in action for action in actions) <= 1
    assert any(rate(task, 0.9, wrong=closed) > 0.5 for task in TASKS)


def test_learns_from_two_silent_refusals() -> None:
    def silent(_: Random, action: Action) -> str | None:
        return "No." if action.name == "undo" else None

    for task in TASKS:
        assert play(task, SolverConfig(skill=0.2), 5, silent).actions.count("undo()") <= 2


def test_plays_on_where_undo_is_not_offered() -> None:
    bridge, policy = Toy24(), Solver(SolverConfig(skill=0.1))
    for seed in range(30):
        start = bridge.reset(0, {"task": "3-3-8-8"})
        policy.start("", [tool for tool in bridge.tools() if tool.name != "undo"], seed)
        observation, ended = start.observation, False
        while not ended:
            action = policy.act(observation).actions[0]
            assert action.name != "undo"
            response = bridge.step(action)
            observation, ended = response.observation, response.ended


def test_gives_up_when_its_patience_is_spent() -> None:
    played = play("3-3-8-8", SolverConfig(skill=0.0, patience=6), 1, lambda _, action: "try again")
    assert played.actions[6] == "stop()"


def test_a_short_memory_makes_it_repeat_itself() -> None:
    def repeats(keep: int) -> int:
        tries = [
            play(task, SolverConfig(skill=0.1), seed, keep=keep).actions for task in TASKS for seed in (1, 2)
        ]
        return sum(len(actions) - len(set(actions)) for actions in tries)

    assert repeats(0) > repeats(99)


def test_advice_helps_with_what_it_speaks_of() -> None:
    def wins(skills: tuple[str, ...]) -> int:
        bridge, policy, won = Toy24(), Solver(SolverConfig(skill=0.7)), 0
        for seed in range(40):
            observation = bridge.reset(0, {"task": "3-3-8-8"}).observation
            policy.start("", bridge.tools(), seed, skills)
            for _ in range(20):
                response = bridge.step(policy.act(observation).actions[0])
                observation = response.observation
                if response.ended:
                    break
            won += bridge.evaluate().success
        return won

    assert wins(("Try to divide so that a fraction is left.",)) > wins(())


@pytest.mark.parametrize(
    ("log", "tried"),
    [
        ((), 0),
        (("8 / 3 = 8/3", "undo"), 1),
        (("undo",), 0),
        (("8 / 3 = 8/3", "3 - 8/3 = 1/3", "undo", "undo"), 2),
        (("3 - 8/3 = 1/3", "undo", "undo", "3 * 8 = 24", "undo"), 1),
    ],
)
def test_reads_dead_ends_from_the_log_that_is_shown(log: tuple[str, ...], tried: int) -> None:
    assert len(ruled_out(deal((3, 3, 8, 8)), log)) == tried


def test_reads_them_also_in_the_middle_of_a_game() -> None:
    hand = tuple(map(parse, ("3", "8/3", "8")))
    dead = ruled_out(hand, ("3 * 8 = 24", "undo", "8 / 3 = 8/3", "3 * 8 = 24", "undo"))
    assert dead == {tuple(map(parse, ("3", "8", "24"))), tuple(map(parse, ("8/3", "24")))}


def test_an_outlook_leaves_closed_operators_out() -> None:
    hand = deal((2, 3, 4, 12))
    assert {option.operator for option in outlook(hand)} == set("+-*/")
    assert {option.operator for option in outlook(hand, frozenset("*/"))} == set("+-")
    assert all(option.appeal > 0 and 0 <= option.clarity <= 1 for option in outlook(hand))


def test_copes_with_an_observation_that_it_does_not_understand() -> None:
    policy = Solver()
    policy.start("", (), 0)
    assert policy.act(Observation("?")).actions == (Action("stop"),)
    garbled = Observation("?", {"numbers": ["3", "many"], "log": ["a b c d e", "undo"]})
    assert policy.act(garbled).actions == (Action("stop"),)
    assert ruled_out(deal((3, 3, 8, 8)), ("a b c d e", "8 / 3 = 8/3", "undo")) != frozenset()
