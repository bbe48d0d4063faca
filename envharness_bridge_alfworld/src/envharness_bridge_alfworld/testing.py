"""A household that speaks as ALFWorld does, for tests that can do without its engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from envharness_bridge_alfworld.generated import GeneratedGame
from envharness_bridge_alfworld.glance import Deed, kind_of
from envharness_bridge_alfworld.goals import Goal, parse_goal
from envharness_bridge_alfworld.household import shown_names

_APPLIANCES = {"sinkbasin": "clean", "microwave": "heat", "fridge": "cool"}


class House:
    """A double of ALFWorld's engine: simpler, faster, and true to it in what an agent tries.

    Nothing is sliced, and each receptacle stands at a place of its own.

    Args:
        goal: what wins.
        lies: where each thing lies, by the names that the text shows.
        places: whether each receptacle is open; None where it can't be opened.
        fits: whether a thing may be put into a receptacle.
    """

    def __init__(
        self,
        goal: Goal,
        lies: Mapping[str, str],
        places: Mapping[str, bool | None],
        fits: Callable[[str, str], bool] = lambda thing, place: True,
    ) -> None:
        self.goal = goal
        self.lies = dict(lies)
        self.open = dict(places)
        self.here = self.held = ""
        self._fits = fits
        self._treated: dict[str, str] = {}
        self._lit: set[str] = set()

    @classmethod
    def of(cls, game: GeneratedGame) -> House:
        """Read a generated game's problem."""
        facts: dict[str, list[tuple[str, str]]] = {}
        for name, first, second in re.findall(r"^ +\((\w+) (\S+?)(?: (\S+))?\)$", game.problem, re.MULTILINE):
            facts.setdefault(name, []).append((first, second))
        types = dict(facts["receptacleType"] + facts["objectType"])
        shown = shown_names(types)
        ids = {name: one for one, name in shown.items()}
        opened = {one for one, _ in facts.get("opened", [])}
        openable = {one for one, _ in facts["openable"]}
        goal = parse_goal(game.sentence)
        assert goal is not None
        return cls(
            goal,
            {shown[thing]: shown[place] for thing, place in facts["inReceptacle"]},
            {shown[one]: one in opened if one in openable else None for one, _ in facts["receptacleType"]},
            lambda thing, place: (types[ids[place]], types[ids[thing]]) in facts["canContain"],
        )

    @property
    def start(self) -> str:
        """The first text."""
        listed = _listing(sorted(self.open, reverse=True))
        return (
            f"You are in the middle of a room. Looking quickly around you, you see {listed}.\n\n"
            f"Your task is to: {self.goal.sentences()[0]}."
        )

    @property
    def won(self) -> bool:
        """Whether the goal is reached."""
        if self.goal.lamp:
            lamps = {lamp for lamp in self._lit if kind_of(lamp) == self.goal.place}
            here = self.here in [self.lies[lamp] for lamp in lamps]
            return here and kind_of(self.held) == self.goal.object
        verb = self.goal.treatment[0] if self.goal.treatment else None
        put = Counter(
            place
            for thing, place in self.lies.items()
            if kind_of(thing) == self.goal.object and verb in (None, self._treated.get(thing))
        )
        return any(
            kind_of(place) == self.goal.place and number >= self.goal.count for place, number in put.items()
        )

    def admissible(self) -> list[str]:
        """Return the commands that do something now."""
        return sorted(self._admissible())

    def do(self, command: str) -> str:
        """Do a command; return what the engine would say."""
        if command not in self._admissible():
            return "Nothing happens."
        deed = Deed.of(command)
        if deed.verb == "go to":
            self.here = deed.what
            return f"You arrive at {self.here}. {self._sight()}"
        if deed.verb in ("open", "close"):
            self.open[self.here] = deed.verb == "open"
            return f"You {deed.verb} the {self.here}." + (f" {self._sight()}" if deed.verb == "open" else "")
        if deed.verb in ("take", "move"):
            return self._carry(deed)
        if deed.verb in _APPLIANCES.values():
            self._treated[deed.what] = deed.verb
            return f"You {deed.verb} the {deed.what} using the {deed.where}."
        if deed.verb == "use":
            self._lit.add(deed.what)
            return f"You turn on the {deed.what}."
        return self._told(deed)

    def _admissible(self) -> Iterator[str]:
        yield from ("help", "inventory", "look")
        yield from (f"go to {place}" for place in self.open if place != self.here)
        if self.held:
            yield f"examine {self.held}"
        if self.here:
            yield from self._admissible_here()

    def _admissible_here(self) -> Iterator[str]:
        here, inside = self.here, self._inside()
        yield f"examine {here}"
        if self.open[here] is not None:
            yield f"close {here}" if self.open[here] else f"open {here}"
        yield from (f"use {thing}" for thing in inside if kind_of(thing).endswith("lamp"))
        if self.held and kind_of(here) in _APPLIANCES:
            yield f"{_APPLIANCES[kind_of(here)]} {self.held} with {here}"
        if self.open[here] is False:
            return
        if not self.held:
            yield from (
                f"take {thing} from {here}" for thing in inside if not kind_of(thing).endswith("lamp")
            )
        elif self._fits(self.held, here):
            yield f"move {self.held} to {here}"

    def _carry(self, deed: Deed) -> str:
        if deed.verb == "take":
            self.held = deed.what
            del self.lies[deed.what]
            return f"You pick up the {deed.what} from the {deed.where}."
        self.lies[deed.what], self.held = deed.where, ""
        return f"You move the {deed.what} to the {deed.where}."

    def _told(self, deed: Deed) -> str:
        if deed.verb == "inventory":
            return f"You are carrying: a {self.held}." if self.held else "You are not carrying anything."
        if deed.verb == "examine":
            return self._sight() if deed.what == self.here else f"There's nothing special about {deed.what}."
        if deed.verb == "look" and self.here:
            return f"You are facing the {self.here}. Next to it, you see nothing."
        return "You are in the middle of a room. Looking quickly around you, you see nothing."

    def _inside(self) -> list[str]:
        return [thing for thing, place in self.lies.items() if place == self.here]

    def _sight(self) -> str:
        opened = self.open[self.here]
        if opened is False:
            return f"The {self.here} is closed."
        seen = _listing(self._inside())
        return (
            f"The {self.here} is open. In it, you see {seen}."
            if opened
            else f"On the {self.here}, you see {seen}."
        )


def _listing(names: Collection[str]) -> str:
    *others, last = [f"a {name}" for name in names] or ["nothing"]
    return f"{', '.join(others)}, and {last}" if others else last
