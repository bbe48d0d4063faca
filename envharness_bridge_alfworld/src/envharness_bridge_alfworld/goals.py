"""What a task asks for, and the sentences that ask it."""

from __future__ import annotations

import re
from functools import cache

from attrs import frozen

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)

TREATMENTS = {
    "pick_clean_then_place_in_recep": ("clean", "sinkbasin"),
    "pick_heat_then_place_in_recep": ("heat", "microwave"),
    "pick_cool_then_place_in_recep": ("cool", "fridge"),
}
"""What is done to the object first, and the kind of receptacle that does it."""

_FORMS = {
    "pick_and_place_simple": ("put a {object} in {place}", "put some {object} on {place}"),
    "look_at_obj_in_light": ("look at {object} under the {place}", "examine the {object} with the {place}"),
    "pick_clean_then_place_in_recep": (
        "put a clean {object} in {place}",
        "clean some {object} and put it in {place}",
    ),
    "pick_heat_then_place_in_recep": (
        "put a hot {object} in {place}",
        "heat some {object} and put it in {place}",
    ),
    "pick_cool_then_place_in_recep": (
        "put a cool {object} in {place}",
        "cool some {object} and put it in {place}",
    ),
    "pick_two_obj_and_place": (
        "put two {object} in {place}",
        "find two {object} and put them in {place}",
    ),
}
"""How ALFWorld words each type of task: the interface that its agents are trained on."""

_TOLD = re.compile(r"your task is to:[ \t]*([^\n]*)", re.IGNORECASE)


@frozen
class Goal:
    """What a task asks for, in the text's own lower-case words.

    Args:
        kind: one of ``TASK_TYPES``.
        object: what is looked for, such as ``mug``.
        place: the kind of receptacle that it belongs in, or the kind of lamp.
    """

    kind: str
    object: str
    place: str

    @property
    def count(self) -> int:
        """How many objects must be in the same place."""
        return 2 if self.kind == "pick_two_obj_and_place" else 1

    @property
    def lamp(self) -> bool:
        """Whether the object is to be looked at under a lamp."""
        return self.kind == "look_at_obj_in_light"

    @property
    def treatment(self) -> tuple[str, str] | None:
        """The verb that treats the object first and the kind of receptacle that does it."""
        return TREATMENTS.get(self.kind)

    def sentences(self) -> tuple[str, ...]:
        """Return each way to say it, without the full stop."""
        return tuple(form.format(object=self.object, place=self.place) for form in _FORMS[self.kind])


def parse_goal(sentence: str) -> Goal | None:
    """Read a task's sentence, or a text that tells one by "Your task is to: ..."; None for any other wording."""
    told = _TOLD.search(sentence)
    words = " ".join((told[1] if told else sentence).lower().split()).rstrip(" .")
    for kind, pattern in _patterns():
        found = pattern.fullmatch(words)
        if found is not None:
            return Goal(kind, found["object"], found["place"])
    return None


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Take in and on for each other: which one a form has says nothing."""
    return tuple(
        (
            kind,
            re.compile(
                re.sub(r" (in|on) ", " (?:in|on) ", form).format(
                    object=r"(?P<object>\w+)", place=r"(?P<place>\w+)"
                )
            ),
        )
        for kind, forms in _FORMS.items()
        for form in forms
    )
