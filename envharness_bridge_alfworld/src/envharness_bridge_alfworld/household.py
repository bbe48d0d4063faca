"""A generated game's world: what lies where, what it is called, and how a task in it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import permutations, product

from attrs import frozen

from envharness_bridge_alfworld.goals import Goal
from envharness_bridge_alfworld.scenes import LAMP, Receptacle, Scene


@frozen
class Thing:
    """Something that lies in a receptacle.

    Args:
        id: as the problem calls it, such as ``Mug_bar_1``.
        type: such as ``Mug``.
        place: where it lies.
    """

    id: str
    type: str
    place: Receptacle


@frozen
class Household:
    """A scene, what lies in it, and what is to be done.

    Args:
        scene: the furnished room.
        things: what lies in it.
        kind: the task's type.
        target: the type of what is looked for.
        place: the type of the receptacle that it belongs in, or of the lamp.
    """

    scene: Scene
    things: tuple[Thing, ...]
    kind: str
    target: str
    place: str

    @property
    def goal(self) -> Goal:
        """The task as the text words it."""
        return Goal(self.kind, self.target.lower(), self.place.lower())

    @cached_property
    def names(self) -> dict[str, str]:
        """What the game calls each thing and receptacle, by its id."""
        receptacles, things = self.scene.receptacles, self.things
        return shown_names([*(place.id for place in receptacles), *(thing.id for thing in things)])

    @property
    def targets(self) -> list[Thing]:
        """The things that would do."""
        return [thing for thing in self.things if thing.type == self.target]

    def of_type(self, kind: str) -> list[Receptacle]:
        """Return the receptacles of a type."""
        return [receptacle for receptacle in self.scene.receptacles if receptacle.type == kind]

    def walkthrough(self) -> tuple[str, ...]:
        """Return the shortest commands that do the task, as far as choosing what to use goes."""
        return min((tuple(way) for way in self._ways()), key=len)

    def _ways(self) -> Iterator[list[str]]:
        if self.goal.lamp:
            lamps = [thing for thing in self.things if thing.type == LAMP]
            for thing, lamp in product(self.targets, lamps):
                yield _Walk(self).take(thing).go(lamp.place).do(f"use {self.names[lamp.id]}").commands
            return
        for things in permutations(self.targets, self.goal.count):
            for receptacle in self.of_type(self.place):
                walk = _Walk(self)
                for thing in things:
                    walk.take(thing).treat(thing).put(thing, receptacle)
                yield walk.commands


class _Walk:
    """Commands in the making: goes only where it isn't, and opens only what is closed."""

    def __init__(self, household: Household) -> None:
        self._household = household
        self._names = household.names
        self._here: Receptacle | None = None
        self._opened = {receptacle.id for receptacle in household.scene.receptacles if receptacle.opened}
        self.commands: list[str] = []

    def do(self, command: str) -> _Walk:
        self.commands.append(command)
        return self

    def go(self, place: Receptacle) -> _Walk:
        if place != self._here:
            self._here = place
            self.do(f"go to {self._names[place.id]}")
        return self

    def take(self, thing: Thing) -> _Walk:
        self._reach(thing.place)
        return self.do(f"take {self._names[thing.id]} from {self._names[thing.place.id]}")

    def treat(self, thing: Thing) -> _Walk:
        treatment = self._household.goal.treatment
        if treatment is not None:
            verb, kind = treatment
            receptacle = next(
                place for place in self._household.scene.receptacles if place.type.lower() == kind
            )
            self.go(receptacle).do(f"{verb} {self._names[thing.id]} with {self._names[receptacle.id]}")
        return self

    def put(self, thing: Thing, place: Receptacle) -> _Walk:
        self._reach(place)
        return self.do(f"move {self._names[thing.id]} to {self._names[place.id]}")

    def _reach(self, place: Receptacle) -> None:
        self.go(place)
        if place.id not in self._opened:
            self._opened.add(place.id)
            self.do(f"open {self._names[place.id]}")


def shown_names(ids: Iterable[str]) -> dict[str, str]:
    """Return what the game calls things, by their ids, which are made of a type, ``_bar_`` and whatever follows.

    Source: ALFWorld sorts the ids in lower case and hands each type's numbers out from the largest down; a part of
    something is called after both.
    """
    ordered = sorted(ids, key=str.lower)
    left = Counter(map(_type_shown, ordered))
    names = {}
    for one in ordered:
        kind = _type_shown(one)
        names[one] = f"{kind} {left[kind]}"
        left[kind] -= 1
    return names


def _type_shown(one: str) -> str:
    lower = one.lower()
    return lower.partition("_bar_")[0] + ("basin" if "basin" in lower else "")
