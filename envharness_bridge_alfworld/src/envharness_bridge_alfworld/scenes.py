"""The rooms of generated games: which receptacles a room has, and what may lie in them."""

from __future__ import annotations

import random

from attrs import field, frozen

FIRST_SCENE = 901
"""ALFWorld's own scenes end at 430; a generated game's number says that it is none of them."""

_OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "LaundryHamper", "Microwave", "Safe"})
_SEEN, _UNSEEN = 6, 2
"""How many scenes each room has in train and valid_seen, and in valid_unseen."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@frozen
class Sort:
    """A sort of things.

    Args:
        places: the types of receptacles that it may be in.
        can: what may be done to it: of ``clean``, ``heat``, ``cool`` and ``slice``.
    """

    places: frozenset[str] = field(converter=_words)
    can: frozenset[str] = field(default="", converter=_words)


@frozen
class Room:
    """A kind of room.

    Args:
        name: what it is.
        sorts: the sorts of things that one finds there.
        receptacles: for each type, how few and how many of it there are.
    """

    name: str
    sorts: frozenset[str] = field(converter=_words)
    receptacles: tuple[tuple[str, int, int], ...]


@frozen
class Receptacle:
    """A place for things.

    Args:
        id: as the problem calls it, such as ``Drawer_bar_2``.
        type: such as ``Drawer``.
        opened: whether things in it are in reach.
    """

    id: str
    type: str
    opened: bool

    @property
    def openable(self) -> bool:
        """Whether it can be opened and closed."""
        return self.type in _OPENABLE


@frozen
class Scene:
    """A furnished room, the same one in every game that has its number."""

    number: int
    room: str
    receptacles: tuple[Receptacle, ...]


ROOMS = (
    Room(
        "kitchen",
        "Apple Bowl Bread ButterKnife Cup DishSponge Egg Fork Knife Mug Pan PepperShaker Plate Pot Potato "
        "SaltShaker SoapBottle Spatula Spoon Tomato",
        (
            ("Cabinet", 1, 3),
            ("CounterTop", 1, 2),
            ("DiningTable", 0, 1),
            ("Drawer", 1, 2),
            ("Fridge", 1, 1),
            ("GarbageCan", 1, 1),
            ("Microwave", 1, 1),
            ("SinkBasin", 1, 1),
            ("StoveBurner", 0, 2),
        ),
    ),
    Room(
        "bedroom",
        "AlarmClock Book Bowl CD CellPhone CreditCard DeskLamp KeyChain Laptop Mug Pen Pencil Pillow "
        "Statue TissueBox Watch",
        (
            ("Bed", 1, 1),
            ("Desk", 1, 1),
            ("Drawer", 2, 4),
            ("Dresser", 0, 1),
            ("GarbageCan", 1, 1),
            ("LaundryHamper", 0, 1),
            ("Safe", 0, 1),
            ("Shelf", 1, 2),
            ("SideTable", 1, 1),
        ),
    ),
    Room(
        "livingroom",
        "Book CellPhone CreditCard DeskLamp KeyChain Laptop Newspaper Pillow RemoteControl Statue "
        "TissueBox Vase Watch WateringCan",
        (
            ("ArmChair", 0, 1),
            ("CoffeeTable", 1, 1),
            ("DiningTable", 0, 1),
            ("Drawer", 1, 3),
            ("GarbageCan", 1, 1),
            ("Safe", 0, 1),
            ("Shelf", 1, 2),
            ("SideTable", 1, 2),
            ("Sofa", 1, 1),
            ("TVStand", 1, 1),
        ),
    ),
    Room(
        "bathroom",
        "Candle Cloth SoapBar SoapBottle SprayBottle TissueBox ToiletPaper",
        (
            ("BathtubBasin", 0, 1),
            ("Cabinet", 1, 3),
            ("CounterTop", 1, 1),
            ("Drawer", 1, 2),
            ("GarbageCan", 1, 1),
            ("Shelf", 0, 2),
            ("SideTable", 0, 1),
            ("SinkBasin", 1, 1),
            ("Toilet", 1, 1),
        ),
    ),
)

_FURNITURE = "Bed Desk Drawer Dresser Safe Shelf SideTable Sofa ArmChair CoffeeTable DiningTable TVStand"
_FOOD = "CounterTop DiningTable Fridge GarbageCan Microwave SinkBasin"
_TABLEWARE = "Cabinet CounterTop DiningTable SinkBasin Shelf"

SORTS = {
    "AlarmClock": Sort("Desk Dresser Shelf SideTable Drawer"),
    "Apple": Sort(_FOOD, "clean heat cool slice"),
    "Book": Sort(_FURNITURE),
    "Bowl": Sort(f"{_TABLEWARE} Fridge Microwave CoffeeTable Desk", "clean heat cool"),
    "Bread": Sort("CounterTop DiningTable Fridge GarbageCan Microwave", "heat cool slice"),
    "ButterKnife": Sort("CounterTop DiningTable Drawer SinkBasin", "clean"),
    "CD": Sort(f"{_FURNITURE} GarbageCan"),
    "Candle": Sort("BathtubBasin Cabinet CoffeeTable CounterTop Desk Drawer Shelf SideTable Toilet"),
    "CellPhone": Sort(_FURNITURE),
    "Cloth": Sort("BathtubBasin Cabinet CounterTop Drawer GarbageCan LaundryHamper Shelf SinkBasin", "clean"),
    "CreditCard": Sort(_FURNITURE),
    "Cup": Sort(f"{_TABLEWARE} Fridge Microwave", "clean heat cool"),
    "DeskLamp": Sort("Desk Dresser SideTable Shelf"),
    "DishSponge": Sort("Cabinet CounterTop Drawer SinkBasin", "clean"),
    "Egg": Sort(_FOOD, "clean heat cool slice"),
    "Fork": Sort("CounterTop DiningTable Drawer SinkBasin", "clean"),
    "KeyChain": Sort(_FURNITURE),
    "Knife": Sort("CounterTop DiningTable Drawer SinkBasin", "clean"),
    "Laptop": Sort("ArmChair Bed CoffeeTable Desk DiningTable Sofa"),
    "Mug": Sort(f"{_TABLEWARE} Fridge Microwave Desk CoffeeTable SideTable Drawer", "clean heat cool"),
    "Newspaper": Sort("ArmChair CoffeeTable DiningTable Drawer GarbageCan SideTable Sofa TVStand Toilet"),
    "Pan": Sort("Cabinet CounterTop DiningTable Fridge SinkBasin StoveBurner", "clean cool"),
    "Pen": Sort("Bed Desk Drawer Dresser GarbageCan Shelf SideTable"),
    "Pencil": Sort("Bed Desk Drawer Dresser GarbageCan Shelf SideTable"),
    "PepperShaker": Sort("Cabinet CounterTop DiningTable Drawer Shelf"),
    "Pillow": Sort("ArmChair Bed Sofa"),
    "Plate": Sort(f"{_TABLEWARE} Fridge Microwave", "clean heat cool"),
    "Pot": Sort("Cabinet CounterTop DiningTable Fridge SinkBasin StoveBurner", "clean cool"),
    "Potato": Sort(_FOOD, "clean heat cool slice"),
    "RemoteControl": Sort(f"{_FURNITURE} GarbageCan"),
    "SaltShaker": Sort("Cabinet CounterTop DiningTable Drawer Shelf"),
    "SoapBar": Sort(
        "BathtubBasin Cabinet CounterTop Drawer GarbageCan Shelf SideTable SinkBasin Toilet", "clean"
    ),
    "SoapBottle": Sort("BathtubBasin Cabinet CounterTop Drawer GarbageCan Shelf SideTable SinkBasin Toilet"),
    "Spatula": Sort("CounterTop DiningTable Drawer SinkBasin", "clean"),
    "Spoon": Sort("CounterTop DiningTable Drawer SinkBasin", "clean"),
    "SprayBottle": Sort("Cabinet CounterTop Drawer GarbageCan Shelf SideTable Toilet"),
    "Statue": Sort("CoffeeTable Desk DiningTable Dresser Shelf SideTable TVStand Safe"),
    "TissueBox": Sort("Cabinet CoffeeTable CounterTop Desk Drawer Dresser Shelf SideTable Toilet TVStand"),
    "ToiletPaper": Sort("Cabinet CounterTop Drawer GarbageCan Shelf SideTable Toilet"),
    "Tomato": Sort(_FOOD, "clean heat cool slice"),
    "Vase": Sort("CoffeeTable Desk DiningTable Dresser Safe Shelf SideTable TVStand"),
    "Watch": Sort(_FURNITURE),
    "WateringCan": Sort("CoffeeTable DiningTable Drawer SideTable Shelf"),
}
"""What there is in the world."""

LAMP = "DeskLamp"
"""The sort that lights and can't be carried."""


def furnished(split: str, room: Room, which: int, seed: int) -> Scene:
    """Return a scene of a room.

    Args:
        split: valid_seen has the scenes of train, valid_unseen has others.
        room: what kind of room.
        which: any number from 0; picks one of the split's scenes.
        seed: decides how they are furnished.
    """
    first, count = (_SEEN, _UNSEEN) if split == "valid_unseen" else (0, _SEEN)
    number = FIRST_SCENE + ROOMS.index(room) + len(ROOMS) * (first + which % count)
    chance = random.Random(f"scene/{seed}/{number}")
    receptacles = [
        Receptacle(_id(kind, place + 1), kind, opened=kind not in _OPENABLE or chance.random() < 0.1)
        for kind, few, many in room.receptacles
        for place in range(chance.randint(few, many))
    ]
    return Scene(number, room.name, tuple(receptacles))


def _id(kind: str, number: int) -> str:
    """Name a basin as ALFWorld does, after what it is a part of: its names depend on that."""
    if kind.endswith("Basin"):
        return f"{kind.removesuffix('Basin')}_bar_{number}_bar_{kind}"
    return f"{kind}_bar_{number}"
