"""Games that are made up: all six types, the same ones for the same seed, nothing of upstream's needed to make them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from attrs import frozen

from envharness_bridge_alfworld.goals import TASK_TYPES, TREATMENTS, Goal
from envharness_bridge_alfworld.household import Household, Thing
from envharness_bridge_alfworld.problem import problem_text
from envharness_bridge_alfworld.scenes import LAMP, ROOMS, SORTS, Receptacle, Room, Scene, furnished
from envharness_core.jsondata import JsonObject

_FEWEST, _MOST = 8, 20
"""How many things a game has."""
_HIDDEN = 0.5
"""How often a target is put into a closed receptacle where one would do."""
_SPARE = 0.3
"""How often there is one more thing of the target's type than needed."""
_GOAL_MARK = "UNKNOWN GOAL"


@frozen
class GeneratedGame:
    """A game that was made up.

    Args:
        name: the folder that it would lie in, ``type-Object-None-Place-Scene``.
        trial: which game of that name, such as ``generated_0007``.
        kind: the task's type.
        problem: its PDDL text.
        sentence: the task as the game words it, without the full stop.
        walkthrough: commands that win it.
    """

    name: str
    trial: str
    kind: str
    problem: str
    sentence: str
    walkthrough: tuple[str, ...]


def make_game(split: str, index: int, seed: int) -> GeneratedGame:
    """Make up a game.

    Args:
        split: ``train``, ``valid_seen`` (other games in the same scenes) or ``valid_unseen`` (other scenes).
        index: from 0; six in a row are of six types.
        seed: decides everything else.
    """
    kind = TASK_TYPES[index % len(TASK_TYPES)]
    chance = random.Random(f"game/{seed}/{split}/{index}")
    household = _household(kind, split, seed, chance)
    trial = f"generated_{index:04d}"
    return GeneratedGame(
        name=f"{kind}-{household.target}-None-{household.place}-{household.scene.number}",
        trial=trial,
        kind=kind,
        problem=problem_text(household, f"{trial}_{split}_{seed}".replace("-", "minus_")),
        sentence=chance.choice(household.goal.sentences()),
        walkthrough=household.walkthrough(),
    )


def game_json(game: GeneratedGame, domain: str, grammar: str) -> JsonObject:
    """Return what a game's file holds.

    Args:
        game: the game.
        domain: the PDDL domain of ALFWorld's that it is a problem of.
        grammar: ALFWorld's grammar, with a mark where the task's sentence goes.
    """
    return {
        "pddl_domain": domain,
        "grammar": grammar.replace(_GOAL_MARK, game.sentence),
        "pddl_problem": game.problem,
        "solvable": True,
        "walkthrough": list(game.walkthrough),
    }


def _household(kind: str, split: str, seed: int, chance: random.Random) -> Household:
    """Draw a room that has such tasks, one of them, and what lies around."""
    room = chance.choice([room for room in ROOMS if _has_tasks(room, kind)])
    scene = furnished(split, room, chance.randrange(1 << 16), seed)
    target, place = chance.choice(sorted(_tasks(kind, room, scene)))
    placed = [*_targets(kind, target, place, scene, chance)]
    if kind == "look_at_obj_in_light":
        placed.append((LAMP, chance.choice(_where(LAMP, scene))))
    others = sorted(room.sorts - {target, LAMP})
    for _ in range(chance.randint(_FEWEST, _MOST) - len(placed)):
        other = chance.choice(others)
        placed.append((other, chance.choice(_where(other, scene))))
    chance.shuffle(placed)
    return Household(scene, tuple(_numbered(placed)), kind, target, place)


def _has_tasks(room: Room, kind: str) -> bool:
    """Whether each scene of a room has such tasks."""
    always = [Receptacle(name, name, opened=True) for name, few, _ in room.receptacles if few]
    return any(True for _ in _tasks(kind, room, Scene(0, room.name, tuple(always))))


def _tasks(kind: str, room: Room, scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield what may be looked for and where it may be wanted, so that there is somewhere else for it to be."""
    types = {receptacle.type for receptacle in scene.receptacles}
    verb, appliance = TREATMENTS.get(kind, ("", ""))
    if appliance and appliance not in map(str.lower, types):
        return
    for sort in room.sorts - {LAMP}:
        places = SORTS[sort].places & types
        if kind == "look_at_obj_in_light":
            if LAMP in room.sorts and _where(LAMP, scene):
                yield sort, LAMP
        elif len(places) > 1 and (not verb or verb in SORTS[sort].can):
            yield from ((sort, place) for place in places if place.lower() != appliance)


def _where(sort: str, scene: Scene) -> list[Receptacle]:
    return [receptacle for receptacle in scene.receptacles if receptacle.type in SORTS[sort].places]


def _targets(
    kind: str, target: str, place: str, scene: Scene, chance: random.Random
) -> Iterator[tuple[str, Receptacle]]:
    """Place what is looked for where it isn't wanted, often where one has to open something to see it."""
    where = [receptacle for receptacle in _where(target, scene) if receptacle.type != place]
    closed = [receptacle for receptacle in where if not receptacle.opened]
    for _ in range(Goal(kind, target, place).count + (chance.random() < _SPARE)):
        yield target, chance.choice(closed if closed and chance.random() < _HIDDEN else where)


def _numbered(placed: list[tuple[str, Receptacle]]) -> Iterator[Thing]:
    numbers: Counter[str] = Counter()
    for sort, receptacle in placed:
        numbers[sort] += 1
        yield Thing(f"{sort}_bar_{numbers[sort]}", sort, receptacle)
