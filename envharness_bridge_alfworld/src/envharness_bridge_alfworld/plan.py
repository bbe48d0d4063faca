"""What would bring a task of ALFWorld's forward, by what is believed: ideas, the best one first."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from envharness_bridge_alfworld.glance import kind_of
from envharness_bridge_alfworld.goals import Goal
from envharness_bridge_alfworld.memory import RECEPTACLES, Memory
from envharness_bridge_alfworld.scenes import SORTS

_BROAD = frozenset(
    {
        "armchair",
        "bed",
        "coffeetable",
        "countertop",
        "desk",
        "diningtable",
        "dresser",
        "shelf",
        "sidetable",
        "sofa",
    }
)
_CLOSED = frozenset({"cabinet", "drawer", "fridge", "laundryhamper", "microwave", "safe"})
_LIKELY = {name.lower(): frozenset(map(str.lower, sort.places)) for name, sort in SORTS.items()}


class Plan:
    """Finds, carries, treats and puts; every idea is one command that can be done from here.

    Args:
        goal: what is to be done.
        memory: what is believed.
        chance: decides between places that are as likely.
    """

    def __init__(self, goal: Goal, memory: Memory, chance: random.Random) -> None:
        self._goal = goal
        self._memory = memory
        self._chance = chance
        self._leanings: dict[tuple[str, str], float] = {}

    def ideas(self, listed: Sequence[str]) -> Iterator[str]:
        """Yield commands, the best first; whoever asks leaves out those that don't work.

        Args:
            listed: the commands that can be done; empty where that isn't known.
        """
        held = self._memory.held
        if not held:
            yield from self._fetch()
        elif kind_of(held) != self._goal.object:
            yield from self._get_rid(held, listed)
        else:
            yield from self._bring(held)
        yield from self._search()
        if not listed and not self._memory.surveyed:
            yield from self._guess()
        self._search_anew()
        yield from self._search()

    def _wanted_in(self, things: Iterable[str]) -> int:
        return sum(kind_of(thing) == self._goal.object for thing in things)

    def _destination(self) -> str | None:
        """Return the place that holds most of what is wanted there, and that the others must join."""
        sights = self._memory.sights
        places = [
            place
            for place in self._memory.of_kind(self._goal.place)
            if self._wanted_in(sights.get(place, ()))
        ]
        return max(places, key=lambda place: self._wanted_in(sights[place]), default=None)

    def _fetch(self) -> Iterator[str]:
        done = self._destination() if self._goal.count > 1 else None
        if done is not None and self._wanted_in(self._memory.sights[done]) >= self._goal.count:
            done = None
        seen = [(thing, place) for thing, place in self._memory.seen(self._goal.object) if place != done]
        for thing, place in sorted(seen, key=lambda one: one[1] not in self._memory.at):
            yield self._reach(place, f"take {thing} from {place}")

    def _bring(self, held: str) -> Iterator[str]:
        memory, goal = self._memory, self._goal
        if goal.lamp:
            for lamp, place in memory.lamps.items():
                if kind_of(lamp) == goal.place:
                    yield self._reach(place, f"use {lamp}", shut=False)
        elif goal.treatment and memory.treated.get(held) != goal.treatment[0]:
            verb, kind = goal.treatment
            for place in memory.at_first(memory.of_kind(kind)):
                yield self._reach(place, f"{verb} {held} with {place}", shut=False)
        else:
            best = self._destination()
            for place in memory.at_first(memory.of_kind(goal.place), best if goal.count > 1 else None):
                yield self._reach(place, f"move {held} to {place}")

    def _get_rid(self, held: str, listed: Sequence[str]) -> Iterator[str]:
        yield from (command for command in listed if command.startswith(f"move {held} to "))
        for place in self._by_likelihood(self._memory.places, kind_of(held)):
            command = self._reach(place, f"move {held} to {place}")
            if not listed or not command.startswith("move"):
                yield command

    def _search(self) -> Iterator[str]:
        memory = self._memory
        lamp = self._goal.lamp and kind_of(memory.held) == self._goal.object
        known = memory.visited if lamp else memory.searched
        left = [place for place in memory.places if place not in known]
        for place in self._by_likelihood(left, self._goal.place if lamp else self._goal.object):
            yield self._reach(place, f"examine {place}", shut=not lamp)

    def _search_anew(self) -> None:
        self._leanings.clear()
        for place in self._memory.places:
            self._memory.forget(place)

    def _guess(self) -> Iterator[str]:
        """Name places that nobody has told of, the next ones of each kind."""
        needed = {self._goal.place, self._goal.treatment[1] if self._goal.treatment else ""}
        kinds = self._by_likelihood(sorted(RECEPTACLES), self._goal.object)
        for kind in sorted(kinds, key=lambda kind: bool(self._memory.held) and kind not in needed):
            number = 1
            while f"{kind} {number}" in self._memory.places:
                number += 1
            yield f"go to {kind} {number}"

    def _reach(self, place: str, command: str, *, shut: bool = True) -> str:
        """Return the first of what a command at a place needs: to be there, the place open, itself."""
        if place not in self._memory.at:
            return f"go to {place}"
        return f"open {place}" if shut and place in self._memory.shut else command

    def _by_likelihood(self, places: Iterable[str], kind: str) -> list[str]:
        """Return places with those first where the agent stands, then by how likely a kind of thing is there."""
        ordered = sorted(places, key=lambda place: self._leaning(place, kind), reverse=True)
        return self._memory.at_first(ordered)

    def _leaning(self, place: str, kind: str) -> float:
        if (place, kind) not in self._leanings:
            where = kind_of(place) or place
            likely = where in _LIKELY.get(kind, _BROAD)
            wanted = where == self._goal.place and kind == self._goal.object and not self._goal.treatment
            looks = 2.0 * likely + 1.0 * (where in _BROAD) - 0.7 * (where in _CLOSED) - 1.5 * wanted
            self._leanings[place, kind] = looks + 0.8 * self._chance.random()
        return self._leanings[place, kind]
