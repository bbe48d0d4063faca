"""What an observation of ALFWorld says, read from its text and from the commands that it lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from attrs import Factory, frozen

from envharness_core.data import Observation

_NAME = r"([a-z]+ \d+)"
_LIST = re.compile(r"\s*\bAdmissible commands: ([^\n]*)")
_ITEM = re.compile(rf"\ban? {_NAME}\b")
_ROOM = re.compile(r"Looking quickly around you, you see ([^\n.]*)")
_SIGHT = re.compile(rf"(?:On the {_NAME}|The {_NAME} is open\. In it), you see ([^\n.]*)")
_ARRIVAL = re.compile(rf"You arrive at {_NAME}")
_FACING = re.compile(r"You are facing the ([^\n.]*)")
_SHUT = re.compile(rf"(?:The {_NAME} is closed|You close the {_NAME})")
_OPEN = re.compile(rf"(?:The {_NAME} is open|You open the {_NAME})")
_PICKED = re.compile(rf"You pick up the {_NAME} from the {_NAME}")
_MOVED = re.compile(rf"You move the {_NAME} to the {_NAME}")
_TREATED = re.compile(rf"You (clean|heat|cool) the {_NAME} using the {_NAME}")
_TURNED = re.compile(rf"You turn (?:on|off) the {_NAME}")
_CARRIED = re.compile(rf"You are carrying: an? {_NAME}")
_COMMAND = re.compile(rf"([a-z]+(?: to)?) {_NAME}(?: (?:from|to|with) {_NAME})?")


@frozen
class Deed:
    """A command, taken apart.

    Args:
        verb: such as ``go to`` or ``take``.
        what: what it is done to; empty where there is nothing, as in ``look``.
        where: from, to or with what; often empty.
    """

    verb: str
    what: str = ""
    where: str = ""

    @classmethod
    def of(cls, command: str) -> Deed:
        """Take a command apart."""
        found = _COMMAND.fullmatch(command)
        return cls(found[1], found[2], found[3] or "") if found else cls(command)


@frozen
class Glance:
    """What an observation says; None and empty mean that it doesn't.

    Args:
        room: the receptacles that there are.
        at: the receptacles that the agent stands at.
        sights: all that is seen in or on a receptacle.
        opened: the receptacles that are open.
        shut: the receptacles that are closed.
        held: what the agent holds, empty for nothing.
        put: what was just put down, and where.
        treated: how something was just treated, and what.
        lamps: what can be used here.
        used: what was just turned on or off.
        refused: whether the world said that nothing happened.
    """

    room: tuple[str, ...] = ()
    at: frozenset[str] = frozenset()
    sights: Mapping[str, frozenset[str]] = Factory(dict)
    opened: frozenset[str] = frozenset()
    shut: frozenset[str] = frozenset()
    held: str | None = None
    put: tuple[str, str] | None = None
    treated: tuple[str, str] | None = None
    lamps: frozenset[str] = frozenset()
    used: str | None = None
    refused: bool = False


def kind_of(name: str) -> str:
    """Return what kind of thing a name such as ``mug 1`` means."""
    return name.rpartition(" ")[0]


def split_off_commands(observation: Observation) -> tuple[str, tuple[str, ...]]:
    """Return an observation's text without its list of commands, and that list: from the data, else from the text."""
    listed = observation.data.get("admissible")
    told = _LIST.search(observation.text)
    commands: list[str] = []
    if isinstance(listed, list):
        commands = [command for command in listed if isinstance(command, str)]
    if not commands and told is not None:
        commands = [command.strip() for command in told[1].split(",")]
    return _LIST.sub("", observation.text), tuple(command for command in commands if command)


def said_by(text: str) -> Glance:
    """Read what the engine's own sentences say."""
    arrival, facing = _ARRIVAL.search(text), _FACING.search(text)
    room = _ROOM.search(text)
    moved, treated, used = _MOVED.search(text), _TREATED.search(text), _TURNED.search(text)
    return Glance(
        room=tuple(_ITEM.findall(room[1])) if room else (),
        at=frozenset([arrival[1]] if arrival else re.findall(_NAME, facing[1]) if facing else []),
        sights={found[1] or found[2]: frozenset(_ITEM.findall(found[3])) for found in _SIGHT.finditer(text)},
        opened=_either(_OPEN, text),
        shut=_either(_SHUT, text),
        held=_held(text),
        put=(moved[1], moved[2]) if moved else None,
        treated=(treated[1], treated[2]) if treated else None,
        used=used[1] if used else None,
        refused="Nothing happens." in text,
    )


def _either(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    return frozenset(found[1] or found[2] for found in pattern.finditer(text))


def _held(text: str) -> str | None:
    carried = _PICKED.search(text) or _CARRIED.search(text)
    if carried is not None:
        return carried[1]
    return "" if _MOVED.search(text) or "You are not carrying anything" in text else None


def told_by(commands: Collection[str], receptacles: Collection[str]) -> Glance:
    """Read what the commands that can be done say about the world.

    Args:
        commands: all that can be done.
        receptacles: names that are known for receptacles; what else can be examined is held.
    """
    deeds = [Deed.of(command) for command in commands]
    away = [deed.what for deed in deeds if deed.verb == "go to"]
    here = {deed.what for deed in deeds if deed.verb in ("open", "close")}
    here |= {deed.where for deed in deeds if deed.where and deed.verb != "slice"}
    examined = {deed.what for deed in deeds if deed.verb == "examine"}
    here |= {name for name in examined if name in receptacles}
    shut = frozenset(deed.what for deed in deeds if deed.verb == "open")
    held = {deed.what for deed in deeds if deed.verb in ("move", "clean", "heat", "cool")} | (examined - here)
    taken = {(deed.where, deed.what) for deed in deeds if deed.verb == "take"}
    seen = {
        place: frozenset(what for where, what in taken if where == place) for place in sorted(here - shut)
    }
    return Glance(
        room=(*away, *sorted(here)),
        at=frozenset(here),
        sights={} if held else seen,
        opened=frozenset(deed.what for deed in deeds if deed.verb == "close"),
        shut=shut,
        held=min(held, default="" if taken else None),
        lamps=frozenset(deed.what for deed in deeds if deed.verb == "use"),
    )
