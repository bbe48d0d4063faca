"""The scripted model as a policy: plays Toy24 by the learner's habits, from what the conversation shows."""

from __future__ import annotations

import json
import re

from envharness_core.data import Action, Observation
from envharness_core.jsondata import JsonObject
from envharness_core.testing.learner import Learner, LearnerConfig
from envharness_core.testing.model_said import Said
from envharness_core.testing.toy24_request import Asked
from envharness_core.toy24.puzzles import apply, combined, parse, show

HABITS = LearnerConfig(skill=0.95, slips=0.04, gives_up_on_failure=0.9)
"""How it plays. It is careless at times, and gives up where a call has failed."""

_TALKS, _HURRIES, _MUSES = 0.3, 0.1, 0.01
_ADVICE = "# Advice"
_SKILL = re.compile(r"\n\n(?=[^\n]+\nWhen: )")
_NUMBERS = re.compile(r"^Numbers: (.*)$", re.MULTILINE)
_NUMBER = re.compile(r"\[\d+\] (\S+)")
_ENTRY = re.compile(r"^(?:undo|\S+ [-+*/] \S+ = \S+)$", re.MULTILINE)


def play(asked: Asked) -> Said:
    """Return the next call, sometimes with words beside it, sometimes with the call after it."""
    learner, shown = Learner(HABITS), Observation("")
    learner.start(asked.told, (), asked.seed, skills_in(asked.system))
    said: list[Action] = []
    for message in asked.messages:
        if message.role in ("user", "tool"):
            shown = seen(message.text, shown)
            said = [*learner.act(shown).actions]
    random = asked.random("manners")
    talks, hurries, muses = (random.random() < share for share in (_TALKS, _HURRIES, _MUSES))
    if muses:
        return Said("Let me think about which two of these numbers belong together before I call anything.")
    after = foreseen(shown, said[0]) if hurries else None
    if after is not None:
        said += [action for action in learner.act(after).actions if action.name == "combine"]
    text = f"I {said[0].name} and look what comes of it." if talks else ""
    return Said(text, tuple((action.name, json.dumps(action.kwargs)) for action in said))


def skills_in(system: str) -> list[str]:
    """Return the advice that a system prompt holds, one text a skill."""
    _, found, advice = system.partition(_ADVICE)
    return [part.strip() for part in _SKILL.split(advice)[1:] or [advice]] if found else []


def seen(text: str, before: Observation) -> Observation:
    """Read an observation from its text; where it shows no numbers, those that were shown before still lie there."""
    mark = _NUMBERS.search(text)
    if mark is None:
        return Observation(text, before.data)
    numbers, log = _NUMBER.findall(mark[1]), _ENTRY.findall(text[mark.end() :])
    data: JsonObject = {"numbers": [*numbers], "log": [*log]}
    return Observation(text, data)


def foreseen(shown: Observation, action: Action) -> Observation | None:
    """Return what a move should lead to, as far as can be reckoned; None where it ends the game, or is none."""
    numbers, log = shown.data.get("numbers"), shown.data.get("log")
    if action.name != "combine" or not isinstance(numbers, list) or not isinstance(log, list):
        return None
    hand = tuple(parse(str(number)) for number in numbers)
    i, j, operator = (action.kwargs[name] for name in ("i", "j", "op"))
    if not (isinstance(i, int) and isinstance(j, int) and isinstance(operator, str)) or max(i, j) >= len(
        hand
    ):
        return None
    made = apply(hand[i], operator, hand[j])
    if made is None or len(hand) < 3:
        return None
    entry = f"{show(hand[i])} {operator} {show(hand[j])} = {show(made)}"
    left = [show(number) for number in combined(hand, i, j, made)]
    return Observation("", {"numbers": [*left], "log": [*log, entry]})
