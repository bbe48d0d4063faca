"""The scripted model as an extractor: says what the rollouts that it is shown have in common, by simple rules."""

from __future__ import annotations

import json

from attrs import asdict, frozen

from envharness_core.testing.model_said import Said
from envharness_core.testing.toy24_request import Asked, Shown, rollouts

_SEVERAL = 2
"""In how many of the rollouts that are shown a habit must stand to be one."""


@frozen
class _Item:
    title: str
    description: str
    content: str


_GO_ON = _Item(
    "Call again after a failure",
    "When a call has just failed or was refused, and the numbers are as they were.",
    "Read why, and make the call again, mended where that is needed, rather than use `stop`: nothing is lost yet, and "
    "what is stopped now is surely lost.",
)
_UNDO = _Item(
    "Take a move back",
    "When no way to the target is in sight from the numbers that are left.",
    "Use `undo`, and try another pair: a move that is taken back costs a step only.",
)
_SHORT = _Item(
    "Look for the last move first",
    "When a hand of numbers is new.",
    "Ask which two values would make the target, and build one of them from what is there.",
)


def lessons(asked: Asked) -> Said:
    """Return what the rollouts teach, as a call of ``remember``, or as models write it when they forget to call."""
    items = [asdict(item) for item in _found(rollouts(asked.told))]
    written = json.dumps({"items": items}, indent=1)
    form = asked.random("form").randrange(6)
    if form == 0 and items:
        return Said(f"Here is what I would keep:\n\n```json\n{written}\n```\n")
    if form == 1 and items:
        return Said("\n\n".join(f"# Memory Item {n}\n{_headed(item)}" for n, item in enumerate(items, 1)))
    return Said("", (("remember", written),))


def _headed(item: dict[str, str]) -> str:
    return "\n".join(f"## {name.capitalize()} {text}" for name, text in item.items())


def _found(shown: list[Shown]) -> list[_Item]:
    gave_up = sum(rollout.gave_up for rollout in shown)
    backed_out = sum(
        rollout.success and any(step.call == "undo" for step in rollout.steps) for rollout in shown
    )
    straight = sum(rollout.success and len(rollout.steps) == 3 for rollout in shown)
    found = [_GO_ON] if gave_up >= _SEVERAL else []
    found += [_UNDO] if backed_out >= _SEVERAL else []
    return found + ([_SHORT] if straight >= _SEVERAL else [])
