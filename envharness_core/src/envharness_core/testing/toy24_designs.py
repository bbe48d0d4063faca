"""The scripted model as a designer: reads the statistics of its prompt, strikes a flaw, and mends the magnitude."""

from __future__ import annotations

import json
import re
from typing import Any

from envharness_core.jsondata import JsonObject
from envharness_core.testing.model_said import Said
from envharness_core.testing.toy24_request import Asked, rollouts, sections

_CARELESS = 0.12
"""How often it gives a first answer that can't be used."""
_ENOUGH = 5
"""Attempts after which it gives up."""
_LEAST, _MOST = 0.05, 0.6  # rates of faults
_EASIER, _HARDER = 0.6, 1.5
_BAND = re.compile(r"success rate between ([\d.]+) and ([\d.]+)")
_SUCCESS = re.compile(r"Success: (\d+) of (\d+) graded")
_ATTEMPT = re.compile(r"^## Attempt \d+$", re.MULTILINE)
_LAYER = re.compile(r"^- (\{.*\})$", re.MULTILINE)
_CALL = re.compile(r"^(\w+)=(.*)$")


def design(asked: Asked) -> Said:
    """Answer by whichever tool is offered; once in a while with a call that has to be asked for again."""
    told = sections(asked.told)
    if "diagnose" in asked.tools:
        name, arguments = "diagnose", _diagnosis(told)
    elif "propose" in asked.tools:
        name, arguments = _proposal(told)
    else:
        name, arguments = "review", {"reason": "The numbers agree with the idea.", "word": "accept"}
    if not asked.complained and asked.random("care").random() < _CARELESS:
        return _careless(asked, name, arguments)
    return Said("", ((name, json.dumps(arguments)),))


def _careless(asked: Asked, name: str, arguments: JsonObject) -> Said:
    """Return an answer as models give them when they don't look: without a call, without its end, or incomplete."""
    whole = json.dumps(arguments)
    kind = asked.random("carelessness").randrange(3)
    if kind == 0:
        return Said(f"I would say: {next(iter(arguments.values()))}")
    if kind == 1:
        return Said("", ((name, whole[: len(whole) // 2]),), finish="length")
    return Said("", ((name, json.dumps(dict([*arguments.items()][1:]))),))


def _rate(text: str) -> tuple[int, int]:
    found = _SUCCESS.search(text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _band(told: dict[str, str]) -> tuple[float, float]:
    found = _BAND.search(told.get("What is asked for", ""))
    return (float(found[1]), float(found[2].rstrip("."))) if found else (0.4, 0.6)


def _diagnosis(told: dict[str, str]) -> JsonObject:
    numbers = told.get("How the policy plays it now", "")
    shown = rollouts(told.get("Its rollouts, step by step", ""))
    wins, count = _rate(numbers)
    low, high = _band(told)
    gave_up = sum(rollout.gave_up for rollout in shown)
    share = wins / count if count else 0.0
    direction = "scaffold" if share < low else "harden" if share > high else "leave"
    flaw = (
        "It gives up as soon as a call has failed, instead of calling again."
        if gave_up
        else "It hardly ever meets a call that fails, so nothing shows that it knows how to recover."
    )
    return {
        "flaw": flaw,
        "evidence": f"{wins} of {count} succeeded; {gave_up} of {len(shown)} shown end with stop() after a failure.",
        "boundary": "It wins where all of its calls get through.",
        "headroom": "Calls may fail now and then, as long as trying again helps.",
        "reliance": "That each call does what it says.",
        "direction": direction,
    }


def _proposal(told: dict[str, str]) -> tuple[str, JsonObject]:
    tried = _ATTEMPT.split(told.get("What was tried", ""))[1:]
    direction = _direction(told)
    if len(tried) >= _ENOUGH:
        return "give_up", {"reason": "The rate doesn't come into the band, whatever the magnitude."}
    if direction == "scaffold" and not tried:
        return _help(told)
    return "propose", _faults(_next_rate(tried, told.get("Your turn", ""), direction))


def _direction(told: dict[str, str]) -> str:
    found = re.search(r"- Direction: (\w+)", told.get("The diagnosis", ""))
    return found[1] if found else "harden"


def _next_rate(tried: list[str], situation: str, direction: str) -> float:
    """Return the rate of faults to try next: the last one, changed in the direction that is asked for."""
    rates = [float(layer["rate"]) for text in tried for layer in _layers(text) if "rate" in layer]
    if not rates:
        return 0.1 if direction == "scaffold" else 0.25
    easier = "easier" in situation
    rate = round(min(_MOST, max(_LEAST, rates[-1] * (_EASIER if easier else _HARDER))), 3)
    while rate in rates and rate > _LEAST / 2:
        rate = round(rate * 0.9, 3)  # tried before; what is between may fit
    return rate


def _layers(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _LAYER.findall(text)]


def _faults(rate: float) -> JsonObject:
    return {
        "rationale": f"A call fails in {rate:.0%} of cases, which strikes whoever gives up then.",
        "solvable": "A call that failed goes through when it is made again, and the text says so.",
        "layers": [{"use": "core/faults", "rate": rate}],
    }


def _help(told: dict[str, str]) -> tuple[str, JsonObject]:
    """Begin behind the first move of a success, where one is shown."""
    shown = [
        rollout
        for rollout in rollouts("\n".join(told.values()))
        if rollout.success and not rollout.steps[0].failed
    ]
    if not shown:
        return "give_up", {"reason": "No rollout shows a way that a start could be taken from."}
    step = min(shown, key=lambda rollout: len(rollout.steps)).steps[0]
    kwargs = {
        found[1]: json.loads(found[2]) for part in step.arguments.split(", ") if (found := _CALL.match(part))
    }
    return "propose", {
        "rationale": "The first move is where it goes astray, so it is made already.",
        "solvable": "A success began with this move and went on from there.",
        "layers": [{"use": "core/setup", "actions": [{"name": step.call, "kwargs": kwargs}]}],
    }
