"""What the handcoded agent believes about the household."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve

from envharness_bridge_alfworld.glance import Deed, Glance, kind_of, said_by, told_by
from envharness_bridge_alfworld.scenes import ROOMS

RECEPTACLES = frozenset(kind.lower() for room in ROOMS for kind, _, _ in room.receptacles) | {
    "cart",
    "coffeemachine",
    "handtowelholder",
    "ottoman",
    "paintinghanger",
    "toaster",
    "toiletpaperhanger",
    "towelholder",
}
"""The kinds of receptacles that households have."""


class Memory:
    """What was seen, where, and what was done; a later sight replaces an earlier one.

    Args:
        notices: whether the agent notices a thing, asked once while it stays at a place.
    """

    def __init__(self, notices: Callable[[str], bool]) -> None:
        self.places: dict[str, None] = {}
        self.surveyed = False
        self.at: frozenset[str] = frozenset()
        self.visited: set[str] = set()
        self.searched: set[str] = set()
        self.shut: set[str] = set()
        self.sights: dict[str, frozenset[str]] = {}
        self.lamps: dict[str, str] = {}
        self.held = ""
        self.treated: dict[str, str] = {}
        self._notices = notices
        self._noticed: dict[str, bool] = {}

    def take_in(self, text: str, commands: tuple[str, ...]) -> Glance:
        """Believe an observation, its list of commands more than its text; return what the text says."""
        said = said_by(text)
        self._believe(said)
        if commands:
            names = {Deed.of(command).what for command in commands}
            known = {name for name in names if name in self.places or kind_of(name) in RECEPTACLES}
            told = told_by(commands, known)
            self._believe(evolve(told, sights={}))
            self.visited |= self.at
            for place, things in told.sights.items() if not self.held else ():
                if things or place not in self.shut:
                    self._see(place, things | said.sights.get(place, frozenset()))
        return said

    def at_first(self, places: Iterable[str], best: str | None = None) -> list[str]:
        """Return places with the best one first, if any, then those where the agent stands."""
        return sorted(places, key=lambda place: (place != best, place not in self.at))

    def seen(self, kind: str) -> list[tuple[str, str]]:
        """Return things of a kind and where each is believed to be."""
        return [
            (thing, place)
            for place, things in self.sights.items()
            for thing in sorted(things)
            if kind_of(thing) == kind
        ]

    def of_kind(self, kind: str) -> list[str]:
        """Return the receptacles of a kind."""
        return [place for place in self.places if kind_of(place) == kind]

    def forget(self, place: str) -> None:
        """Forget that a place was visited and searched."""
        self.visited.discard(place)
        self.searched.discard(place)

    def finish(self, place: str) -> None:
        """Remember that there is nothing more to find at a place."""
        self.visited.add(place)
        self.searched.add(place)

    def put(self, thing: str, place: str) -> None:
        """Remember having put something down."""
        self.held = ""
        self.sights[place] = self.sights.get(place, frozenset()) | {thing}

    def _believe(self, glance: Glance) -> None:
        self.surveyed = self.surveyed or bool(glance.room)
        self.places.update(dict.fromkeys((*glance.room, *sorted(glance.at))))
        if glance.at:
            self._stand(glance.at)
        self.shut = (self.shut | glance.shut) - glance.opened
        self.visited |= glance.shut
        if glance.held is not None:
            self._hold(glance.held)
        for place, things in glance.sights.items():
            self._see(place, things)
        if glance.put is not None:
            self.put(*glance.put)
        if glance.treated is not None:
            verb, thing = glance.treated
            self.treated[thing] = verb
        for lamp in filter(self._notice, sorted(glance.lamps) if self.at else ()):
            self.lamps[lamp] = min(self.at)

    def _stand(self, at: frozenset[str]) -> None:
        if not at & self.at:
            self._noticed.clear()
        self.at = at

    def _hold(self, thing: str) -> None:
        self.held = thing
        for place, things in self.sights.items():
            self.sights[place] = things - {thing}

    def _see(self, place: str, things: frozenset[str]) -> None:
        self.finish(place)
        self.shut.discard(place)
        noticed = frozenset(filter(self._notice, sorted(things)))
        self.sights[place] = noticed
        self.lamps.update(
            (thing, place) for thing in sorted(noticed) if thing.partition(" ")[0].endswith("lamp")
        )

    def _notice(self, thing: str) -> bool:
        if thing not in self._noticed:
            self._noticed[thing] = self._notices(thing)
        return self._noticed[thing]
