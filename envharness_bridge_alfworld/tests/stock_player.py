"""Plays games on stock ALFWorld, as upstream's own code starts them and without a line of ours.

A program, because upstream writes over the process that it runs in: reads a JSON list of ``{"game": path, "commands":
[...]}``, or ``{"game": path, "walk": number, "seed": number}`` for a random walk, and writes a transcript for each: a
list of ``[command, text, admissible commands, won]``, the first with None for the reset.
"""

import json
import random
import sys
from typing import Any

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

_NONSENSE = ("dance", "Go to desk 1", "")


def play(job: dict[str, Any]) -> list[list[Any]]:
    infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
    env = textworld.start(job["game"], infos, wrappers=[AlfredDemangler(shuffle=False), AlfredInfos])
    state = env.reset()
    tape = [[None, state["feedback"], state["admissible_commands"], state["won"]]]
    chance = random.Random(job.get("seed"))
    todo = iter(job["commands"]) if "commands" in job else iter(range(job["walk"]))
    for item in todo:
        if tape[-1][3]:
            break
        command = item if isinstance(item, str) else _drawn(chance, state["admissible_commands"])
        state, _, _ = env.step(command)
        tape.append([command, state["feedback"], state["admissible_commands"], state["won"]])
    return tape


def _drawn(chance: random.Random, admissible: list[str]) -> str:
    return chance.choice(_NONSENSE) if chance.random() < 0.1 else chance.choice(admissible)


if __name__ == "__main__":
    out = sys.stdout  # upstream swaps it while it translates
    json.dump([play(job) for job in json.load(sys.stdin)], out)
