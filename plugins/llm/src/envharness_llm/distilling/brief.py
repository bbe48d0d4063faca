"""The brief: everything that a model is told of a task's rollouts before it says what they teach."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import evolve, frozen

from envharness_core import Episode, Experience, Tool
from envharness_core.calls import show_signature
from envharness_core.trajectory import Rollout
from envharness_llm.designing.counted import counted, rate
from envharness_llm.designing.pages import TOKEN, clipped, pages
from envharness_llm.designing.past import layers
from envharness_llm.distilling.modes import Mode, rollouts_for
from envharness_llm.messages import Message
from envharness_llm.texts import Texts

_LONGEST = 4000  # characters of what is shown once
_SENTENCE = 300  # characters of a tool's description
_SHOWN = re.compile(r"^## Rollout (\d+): ", re.MULTILINE)  # observations are indented, so that none reads so

_READING = (
    "Each step is the call that the agent made and, behind `>`, what it saw then. Longer runs of lines that it had "
    "seen a step before are counted, not repeated. In brackets: what went wrong, and what reached the world where that "
    "isn't the call itself."
)


@frozen
class Told:
    """What is said to a model, and the rollouts that it is shown thereby, in rollout order."""

    messages: tuple[Message, ...]
    rollouts: tuple[Rollout, ...]


@frozen
class Brief:
    """Writes the messages of a mode.

    Args:
        texts: the prompts.
        tokens: what rollouts may take, in tokens.
        count: how many items are asked for.
    """

    texts: Texts
    tokens: int
    count: int

    def told(self, mode: Mode, experience: Experience) -> Told | None:
        """Return what a model is told; None where the mode has no rollouts to read."""
        rollouts = rollouts_for(mode, experience)
        if not rollouts:
            return None
        start = _start(rollouts)
        evidence = _evidence(rollouts, experience, self.tokens, start)
        sections = (
            ("The task", _task(experience, start)),
            ("The agent's tools", "\n".join(map(_tool, experience.tools))),
            ("What was changed", self._changed(experience)),
            ("How often it succeeded", _numbers(mode, experience)),
            ("The rollouts, step by step", f"{_READING}\n\n{evidence}"),
            ("Your turn", self.texts.fill(mode)),
        )
        said = "\n\n".join(f"# {title}\n\n{text}" for title, text in sections if text)
        system = self.texts.fill("system", count=str(self.count))
        seen = {int(number) for number in _SHOWN.findall(evidence)}
        shown = tuple(rolled for place, rolled in enumerate(experience.rollouts) if place in seen)
        return Told((Message("system", system), Message("user", said)), shown)

    def _changed(self, experience: Experience) -> str:
        if not experience.layers and experience.condition != "reshaped":
            return ""
        shown = clipped(layers(experience.layers), _LONGEST)
        told = f"These are they, innermost first:\n{shown}" if experience.layers else ""
        return self.texts.fill("reshaped", layers=told)


def _evidence(rollouts: Sequence[Rollout], experience: Experience, tokens: int, start: str) -> str:
    """Return failures, then successes, step by step; each kind has a share of the room, so that both are seen."""
    known = {rolled.episode.key: rolled.trajectory for rolled in rollouts}
    places = {rolled.episode.key: place for place, rolled in enumerate(experience.rollouts)}
    numbered = [
        # Rollouts of several streams may have the same index; their place tells them apart.
        evolve(rolled.episode, stream="", index=places[rolled.episode.key])
        for rolled in rollouts
    ]
    kinds = [[item for item in numbered if item.success is success] for success in (False, True)]
    parts: list[str] = []
    for episodes in (kind for kind in kinds if kind):
        share = tokens // 2 if not parts and all(kinds) else tokens
        parts.append(pages(episodes, lambda episode: known[episode.key], share, start))
        tokens -= min(share, len(parts[-1]) // TOKEN)
    return "\n\n".join(parts)


def _numbers(mode: Mode, experience: Experience) -> str:
    known = {rolled.episode.key: rolled.trajectory for rolled in experience.rollouts}
    episodes: list[Episode] = [rolled.episode for rolled in experience.rollouts]
    if mode == "contrast":
        return counted(episodes, lambda episode: known[episode.key])
    return f"{rate(episodes)}."


def _task(experience: Experience, start: str) -> str:
    lines = [f"The agent is told: {clipped(experience.instruction, _LONGEST)}"]
    if start:
        lines.append(f"It begins with this observation:\n\n```\n{clipped(start, _LONGEST)}\n```")
    return "\n".join(lines)


def _start(rollouts: Sequence[Rollout]) -> str:
    first = rollouts[0].trajectory.start
    return "" if first is None else first.observation.text


def _tool(tool: Tool) -> str:
    return f"- `{show_signature(tool)}`: {clipped(' '.join(tool.description.split()), _SENTENCE)}"
