"""The handcoded agent: wins by what it is shown, bears a world that lies and refuses, errs as often as it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_bridge_alfworld.generated import make_game
from envharness_bridge_alfworld.goals import TASK_TYPES, Goal
from envharness_bridge_alfworld.handcoded import Handcoded, HandcodedConfig
from envharness_bridge_alfworld.testing import House
from envharness_core.data import Observation
from envharness_core.jsondata import Json

View: TypeAlias = Callable[[Observation], Observation]
Fault: TypeAlias = Callable[[int, str], str]
"""Says by a command's turn and itself whether it is done: ``""``, or ``ignored``, ``denied`` or ``blocked``."""


def generated(index: int, seed: int) -> House:
    return House.of(make_game("train", index, seed))


def small(goal: Goal, lies: dict[str, str], *closed: str, places: tuple[str, ...] = ()) -> House:
    """Make a household of the receptacles that are named."""
    named = dict.fromkeys([*lies.values(), *places, *closed])
    return House(
        goal, dict(lies), {place: False if place in closed else None for place in named}, lambda *_: True
    )


def whole(observation: Observation) -> Observation:
    return observation


def data_only(observation: Observation) -> Observation:
    return Observation("", observation.data)


def two_sentences(observation: Observation) -> Observation:
    return Observation(". ".join(observation.text.split(". ")[:2]), observation.data)


def listed_in_text(observation: Observation) -> Observation:
    listed = observation.data["admissible"]
    assert isinstance(listed, list)
    return Observation(f"{observation.text}\n\nAdmissible commands: {', '.join(map(str, listed))}")


def text_only(observation: Observation) -> Observation:
    return Observation(observation.text)


VIEWS = (whole, data_only, two_sentences, listed_in_text, text_only)


def obeys(turn: int, command: str) -> str:
    return ""


def play(
    house: House,
    seed: int = 0,
    *,
    skill: float = 1.0,
    view: View = whole,
    fault: Fault = obeys,
    limit: int = 50,
    first: str = "",
) -> list[str]:
    """Let the agent play; return its commands, one more than the limit's where it didn't win."""
    agent = Handcoded(HandcodedConfig(skill))
    agent.start(f"Your task is to: {house.goal.sentences()[1]}.\nAct by do(command).", (), seed)
    commands: list[str] = []
    last = shown = first or house.start
    while not house.won and len(commands) <= limit:
        reply = agent.act(view(Observation(shown, {"admissible": [*house.admissible()]})))
        (action,) = reply.actions
        assert action.name == "do"
        command = action.kwargs["command"]
        assert isinstance(command, str)
        commands.append(command)
        what = fault(len(commands), command)
        if what in ("", "denied"):
            last = house.do(command)
        shown = {"": last, "blocked": f"You may not.\n\n{last}"}.get(what, "Nothing happens.")
    return commands


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from(VIEWS))
def test_it_wins_by_whatever_it_is_shown(index: int, seed: int, view: View) -> None:
    house = generated(index, seed)
    commands = play(house, seed, view=view)
    assert house.won
    assert not any(command.startswith("examine") for command in commands)


@given(st.integers(0, 500), st.integers(0, 500))
def test_walkthroughs_win_and_not_before(index: int, seed: int) -> None:
    game = make_game("train", index, seed)
    house = House.of(game)
    for command in game.walkthrough:
        assert not house.won
        assert command in house.admissible()
        house.do(command)
    assert house.won
    assert len(play(generated(index, seed), seed)) >= len(game.walkthrough)


@given(st.integers(0, 500), st.sampled_from(VIEWS), st.sampled_from(["ignored", "denied", "blocked"]))
def test_it_tries_again(index: int, view: View, what: str) -> None:
    """Every fifth command isn't heard, done and denied, or blocked."""
    house = generated(index, 1)
    play(house, view=view, fault=lambda turn, command: "" if turn % 5 else what, limit=100)
    assert house.won


@given(st.integers(0, 500), st.sampled_from(VIEWS))
def test_it_hears_late(index: int, view: View) -> None:
    house = generated(index, 2)
    late: list[Observation] = []

    def delayed(observation: Observation) -> Observation:
        late.append(observation)
        return view(late[max(0, len(late) - 2)])

    play(house, view=delayed, limit=150)
    assert house.won


@given(st.integers(0, 500), st.sampled_from(["take", "examine", "use", "open", "move"]))
def test_what_a_list_leaves_out_is_tried_all_the_same(index: int, verb: str) -> None:
    def partly(observation: Observation) -> Observation:
        listed = observation.data["admissible"]
        assert isinstance(listed, list)
        return Observation(
            observation.text, {"admissible": [one for one in listed if not str(one).startswith(verb)]}
        )

    house = generated(index, 3)
    play(house, view=partly, limit=100)
    assert house.won


MUG = Goal("pick_and_place_simple", "mug", "desk")


@pytest.mark.parametrize("view", [whole, data_only, listed_in_text, text_only])
def test_it_finds_what_is_hidden_in_a_closed_drawer(view: View) -> None:
    house = small(
        MUG, {"mug 1": "drawer 2", "pen 1": "desk 1", "cd 1": "shelf 1"}, "drawer 1", "drawer 2", "drawer 3"
    )
    commands = play(house, view=view)
    assert house.won
    assert "open drawer 2" in commands


@pytest.mark.parametrize("view", [whole, text_only])
def test_it_looks_elsewhere_where_something_keeps_failing(view: View) -> None:
    house = small(MUG, {"mug 1": "fridge 1", "mug 2": "safe 1", "pen 1": "desk 1"}, "fridge 1", "safe 1")
    commands = play(house, view=view, fault=lambda turn, command: "ignored" if "fridge" in command else "")
    assert house.won
    assert commands[-1] == "move mug 2 to desk 1"
    assert sum("fridge" in command for command in commands) < 5


def test_it_comes_back_to_what_failed_for_a_while() -> None:
    house = small(MUG, {"mug 1": "fridge 1", "pen 1": "desk 1"}, "fridge 1")
    play(house, fault=lambda turn, command: "ignored" if "open" in command and turn < 20 else "")
    assert house.won


def test_a_world_that_never_obeys_is_played_to_the_limit_in_many_ways() -> None:
    house = small(MUG, {"mug 1": "fridge 1", "pen 1": "desk 1", "cd 1": "sofa 1"}, "fridge 1")
    commands = play(house, fault=lambda turn, command: "ignored", limit=200)
    assert len(commands) == 201
    assert len(set(commands)) > 4


@pytest.mark.parametrize("view", [whole, text_only])
def test_two_things_join_in_one_place_and_stay_there(view: View) -> None:
    goal = Goal("pick_two_obj_and_place", "cd", "drawer")
    lies = {"cd 1": "desk 1", "cd 2": "bed 1", "cd 3": "drawer 2"}
    house = small(goal, lies, "drawer 1", "drawer 2", places=("shelf 1",))
    commands = play(house, view=view)
    assert house.won
    moved = [command for command in commands if command.startswith("move")]
    taken = [command for command in commands if command.startswith("take")]
    assert len({command.partition(" to ")[2] for command in moved}) == 1
    assert len(taken) == len(set(taken)) <= 2


def test_one_that_is_in_place_already_stays() -> None:
    goal = Goal("pick_two_obj_and_place", "cd", "shelf")
    house = small(goal, {"cd 1": "shelf 2", "cd 2": "bed 1"}, places=("shelf 1",))
    commands = play(house, view=data_only, first=house.do("go to shelf 2"))
    assert [command for command in commands if command.startswith("move")] == ["move cd 2 to shelf 2"]


@pytest.mark.parametrize("view", [whole, data_only, text_only])
@pytest.mark.parametrize("kind", TASK_TYPES[2:5])
def test_a_treatment_that_failed_is_done_again(kind: str, view: View) -> None:
    goal = Goal(kind, "apple", "countertop")
    assert goal.treatment is not None
    verb, place = goal.treatment
    house = small(goal, {"apple 1": "diningtable 1", "pan 1": "countertop 1"}, places=(f"{place} 1",))
    heard: list[str] = []

    def fault(turn: int, command: str) -> str:
        heard.extend([command] if command.startswith(verb) else [])
        return "blocked" if len(heard) in (1, 2) and command.startswith(verb) else ""

    play(house, view=view, fault=fault)
    assert house.won


def test_the_lamp_is_used_while_holding_the_thing() -> None:
    goal = Goal("look_at_obj_in_light", "book", "desklamp")
    house = small(goal, {"book 1": "bed 1", "desklamp 1": "desk 1", "pen 1": "shelf 1"})
    commands = play(house)
    assert house.won
    assert commands[-1] == "use desklamp 1"


@pytest.mark.parametrize("view", [data_only, text_only])
def test_a_lamp_is_looked_for_without_opening_or_examining_anything(view: View) -> None:
    goal = Goal("look_at_obj_in_light", "book", "desklamp")
    house = small(goal, {"book 1": "bed 1", "desklamp 1": "toilet 1"}, "shelf 1", "desk 1", "dresser 1")
    house.do("go to bed 1")
    commands = play(house, view=view, first=f"{house.start}\n{house.do('take book 1 from bed 1')}")
    assert house.won
    assert {command.partition(" ")[0] for command in commands} == {"go", "use"}
    assert len(commands) <= 6


def test_a_wrong_thing_in_hand_is_put_away() -> None:
    for view in (whole, text_only):
        house = small(MUG, {"pen 1": "sofa 1", "mug 1": "shelf 1"}, places=("desk 1",))
        house.do("go to sofa 1")
        play(house, view=view, first=house.do("take pen 1 from sofa 1"))
        assert house.won


def test_it_guesses_places_where_nobody_tells_it_any() -> None:
    house = small(MUG, {"mug 1": "shelf 2", "pen 1": "desk 1", "cd 1": "shelf 1"}, places=("sofa 1",))
    play(house, view=text_only, first="Welcome.", limit=80)
    assert house.won


@pytest.mark.parametrize("instruction", ["", "Your task is to: put a mug in desk."])
def test_the_task_is_read_in_the_text_and_another_one_begins_anew(instruction: str) -> None:
    agent = Handcoded()
    agent.start(instruction, (), 0)
    first = small(MUG, {"mug 1": "sofa 1"}, places=("desk 1",))
    agent.act(Observation(first.start, {"admissible": [*first.admissible()]}))
    second = small(Goal("pick_and_place_simple", "cd", "safe"), {"cd 1": "bed 1"}, places=("safe 1",))
    shown = second.start
    for _ in range(8):
        (action,) = agent.act(text_only(Observation(shown))).actions
        shown = second.do(str(action.kwargs["command"]))
    assert second.won


def test_a_sentence_that_it_cannot_read_leaves_it_to_chance() -> None:
    house = small(MUG, {"mug 1": "sofa 1"}, places=("desk 1",))
    agent = Handcoded()
    agent.start("Your task is to: tidy up the room, please", (), 3)
    commands = []
    for _ in range(30):
        (action,) = agent.act(Observation("", {"admissible": [*house.admissible()]})).actions
        commands.append(str(action.kwargs["command"]))
        assert commands[-1] in house.admissible()
        house.do(commands[-1])
    assert len(set(commands)) > 5


SAID = (
    "You arrive at desk 1.",
    "On the desk 1, you see a mug 1, and a pen 1.",
    "Nothing happens.",
    "The drawer 1 is closed.",
    "You are carrying: a mug 1.",
    "You move the mug 1 to the desk 1.",
    "Your task is to: put two mug in desk.",
    "Your task is to: dance.",
    "Admissible commands: a, , go to desk 1",
    "You pick up the mug 1 from the sofa 1.",
    "You are facing the desk 1, and the sofa 2. Next to it",
)
COMMANDS = ("take mug 1 from desk 1", "go to", "use desklamp 1", "open desk 1", "move mug 1 to sofa 1")
texts = st.text() | st.lists(st.sampled_from(SAID)).map("\n".join)
listings: st.SearchStrategy[Json] = (
    st.none() | st.integers() | st.lists(st.text() | st.integers() | st.sampled_from(COMMANDS))
)


@given(st.lists(st.tuples(texts, listings), max_size=12), st.floats(0, 1), st.integers())
def test_nothing_that_it_is_shown_stops_it(shown: list[tuple[str, Json]], skill: float, seed: int) -> None:
    agents = [Handcoded(HandcodedConfig(skill)) for _ in range(2)]
    agents[1].start("Your task is to: find two cd and put them in safe.", (), 1)
    for agent in agents:
        agent.start("Your task is to: put a hot mug in desk.", (), seed)
    for text, listed in shown:
        observation = Observation(text, {"admissible": listed} if listed is not None else {})
        replies = [agent.act(observation) for agent in agents]
        assert replies[0] == replies[1]
        (action,) = replies[0].actions
        assert action.name == "do"
        assert isinstance(action.kwargs["command"], str)
        assert action.kwargs["command"]


def test_skill_decides_how_often_it_wins() -> None:
    rates = []
    for skill in (0.0, 0.25, 0.5, 0.75, 1.0):
        won = 0
        for number in range(60):
            house = generated(number, 4)
            play(house, number, skill=skill)
            won += house.won
        rates.append(won / 60)
    assert rates[0] <= 0.25
    assert 0.3 < rates[2] < 0.8
    assert rates[-1] == 1.0
    assert all(0.0 <= more - less < 0.5 for less, more in pairwise(rates))


def test_seeds_decide() -> None:
    plays = [play(generated(0, 0), seed, skill=0.5) for seed in (1, 1, 2)]
    assert plays[0] == plays[1] != plays[2]


@pytest.mark.parametrize("skill", [-0.1, 1.1, float("nan")])
def test_skill_is_a_share(skill: float) -> None:
    with pytest.raises(ValueError, match="skill"):
        HandcodedConfig(skill)


_PLAYS = """
from envharness_bridge_alfworld.handcoded import Handcoded, HandcodedConfig
from envharness_bridge_alfworld.testing import House
from envharness_core.data import Observation
agent = Handcoded(HandcodedConfig(0.5))
HERE = ["examine desk 1", "examine shelf 1", "look"]
for commands in (
    [],
    [*HERE, "use desklamp 1", "use desklamp 2"],
    [*HERE, "take cd 1 from desk 1", "take cd 2 from shelf 1", "take cd 3 from sofa 1"],
):
    agent.start("Your task is to: look at cd under the desklamp.", (), 3)
    for text in ("you see nothing", "You are facing the desk 1, and the sofa 2.", *["Nothing happens."] * 20):
        print(agent.act(Observation(text, {"admissible": commands})).text)
"""


def test_it_plays_the_same_in_every_process() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", _PLAYS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert told[0] == told[1] == told[2] != b""
