"""The brief: everything that a designer is told of a task, from the evidence alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import frozen

from envharness_core import Attempt, Diagnosis, Evidence
from envharness_core.jsondata import Json
from envharness_core.sandbox.dialect import IN_SCOPE, MODULES
from envharness_llm.designing import past
from envharness_llm.designing.counted import counted
from envharness_llm.designing.offering import RULES, described, summaries
from envharness_llm.designing.pages import clipped, pages
from envharness_llm.messages import Message
from envharness_llm.texts import Texts

_LONGEST = 8000  # characters of what is shown once
_UNLIMITED = 1_000_000  # rollouts of a budget, beyond which there is none

_SCOPE = {
    "Rules": "`Rules`: the base class",
    "Contract": "`Contract`: the same under another name, for `class _Contract(Contract)`",
    "Action": "`Action(name, kwargs)`: a call",
    "Blocked": "`Blocked(reason)`: a refusal",
    "Observation": "`Observation(text, data={})`: what the agent sees",
    "StepResponse": "`StepResponse(observation, reward, terminated, truncated, info)`; and `.ended`",
    "EnvResponse": "`EnvResponse`: the same as `StepResponse`",
    "EnvState": "`EnvState`: the class of `env_state`",
    "evolve": "`evolve(data, field=value)`: a copy with other fields",
    "action_str": '`action_str(action)`: `name(argument="text")`, or the text alone where the only argument is called '
    "`action` or `command`",
    "bash_command": "`bash_command(action)`: the command text of a shell tool's call, else an empty text",
    "is_submission": "`is_submission(cmd)`: whether a command submits",
    "failed": "`failed(response, text)`: the response with that text, not terminated, `exit_code` 1 in its data",
    "fake_response": "`fake_response(text, exit_code=0)`: in `modify_transition`, the response with another text",
}

_EXAMPLE = """{"layers": [
  {"use": "core/setup", "actions": [{"name": "a_tool", "kwargs": {"argument": 1}}]},
  {"use": "core/faults", "rate": 0.15, "streak": 1, "text": "The service is busy. Try again."}
]}"""


@frozen
class Brief:
    """Writes the messages for each stage.

    Args:
        texts: the prompts.
        tokens: what rollouts may take, in tokens.
        weakness: what to design against on demand; empty for nothing.
    """

    texts: Texts
    tokens: int
    weakness: str = ""

    def diagnose(self, evidence: Evidence) -> tuple[Message, ...]:
        """Return what is told before a diagnosis."""
        return self._messages(
            *self._situation(evidence),
            ("Layers on offer", summaries(evidence.layers)),
            *self._baseline(evidence, self.tokens),
            ("Your turn", self.texts.fill("diagnose")),
        )

    def propose(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]
    ) -> tuple[Message, ...]:
        """Return what is told before a proposal; rollouts of the latest attempt that has any get half of the room."""
        played = [(number, attempt) for number, attempt in enumerate(history, 1) if attempt.episodes]
        room = self.tokens // 2 if played else self.tokens
        return self._messages(
            *self._situation(evidence),
            *self._layers(evidence),
            *self._baseline(evidence, room),
            ("The diagnosis", past.diagnosed(diagnosis)),
            ("What was tried", past.attempts(history)),
            *(
                (self._rollouts(evidence, f"of attempt {number}", attempt, room))
                for number, attempt in played[-1:]
            ),
            ("Your turn", self.texts.fill("propose", situation=past.situation(history))),
        )

    def review(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt], attempt: Attempt
    ) -> tuple[Message, ...]:
        """Return what is told before a review."""
        room = self.tokens // 2
        return self._messages(
            *self._situation(evidence),
            *self._baseline(evidence, room),
            ("The diagnosis", past.diagnosed(diagnosis)),
            ("What was tried before", past.attempts(history)),
            ("The candidate", past.tried(attempt)),
            self._rollouts(evidence, "of the candidate", attempt, room),
            ("Your turn", self.texts.fill("review")),
        )

    def _messages(self, *sections: tuple[str, str]) -> tuple[Message, ...]:
        told = "\n\n".join(f"# {title}\n\n{text}" for title, text in sections if text)
        return Message("system", self.texts.fill("system")), Message("user", told)

    def _situation(self, evidence: Evidence) -> list[tuple[str, str]]:
        return [
            ("The task", _task(evidence)),
            ("The agent's tools", _tools(evidence)),
            ("The state that hooks can read", evidence.env_state_schema),
            ("What to know of this world", evidence.designer_notes.strip()),
            ("What is asked for", self._objective(evidence)),
            ("What earlier tasks taught", past.taught(evidence.earlier)),
        ]

    def _layers(self, evidence: Evidence) -> list[tuple[str, str]]:
        told = [
            (
                "How layers work",
                self.texts.fill("layers", example=_EXAMPLE, offers=described(evidence.layers)),
            )
        ]
        if any(offer.type == RULES for offer in evidence.layers):
            scope = "\n".join(f"- {_SCOPE.get(name, f'`{name}`')}" for name in IN_SCOPE)
            told.append(
                (f"How {RULES} is written", self.texts.fill("rules", scope=scope, modules=", ".join(MODULES)))
            )
        return told

    def _objective(self, evidence: Evidence) -> str:
        parts = [f"{evidence.objective[:1].upper()}{evidence.objective[1:]}.", self._aim(evidence)]
        if self.weakness:
            parts.append(self.texts.fill("weakness", weakness=self.weakness.strip()))
        if evidence.budget < _UNLIMITED:
            parts.append(
                f"At most {evidence.budget} more rollouts may be played for this task, of which confirming a candidate "
                f"takes up to {evidence.reserve}."
            )
        return "\n\n".join(parts)

    def _aim(self, evidence: Evidence) -> str:
        if evidence.band is None:
            return self.texts.fill("autonomous")
        low, high = evidence.band
        return self.texts.fill("band", low=f"{low:g}", high=f"{high:g}", standing=_standing(evidence))

    def _baseline(self, evidence: Evidence, room: int) -> list[tuple[str, str]]:
        known = _start(evidence)
        shown = self.tokens // 4 if evidence.demonstrations else 0
        played = pages(evidence.baseline, evidence.trajectory, room - min(shown, room // 2), known)
        told = [
            ("How the policy plays it now", counted(evidence.baseline, evidence.trajectory)),
            ("Its rollouts, step by step", f"{_READING}\n\n{played}"),
        ]
        if evidence.demonstrations:
            ways = pages(evidence.demonstrations, evidence.trajectory, min(shown, room // 2), known)
            told.append(("Rollouts of a demonstrator, another player", ways))
        return told

    def _rollouts(self, evidence: Evidence, whose: str, attempt: Attempt, room: int) -> tuple[str, str]:
        episodes = (*attempt.episodes, *attempt.confirmation)
        numbers = counted(episodes, evidence.trajectory)
        return (
            f"Rollouts {whose}",
            f"{numbers}\n\n{pages(episodes, evidence.trajectory, room, _start(evidence))}",
        )


_READING = (
    "Each step is the call that the policy made and, behind `>`, what it saw then. Longer runs of lines that it had "
    "seen a step before are counted, not repeated. In brackets: what went wrong, and what reached the world where that "
    "isn't the call itself."
)


def as_text(messages: Sequence[Message], tools: Sequence[Json]) -> str:
    """Return a whole request for a person to read."""
    parts = [f"===== {message.role} =====\n\n{message.text}" for message in messages]
    parts.append(f"===== tools, one of which has to be called =====\n\n{json.dumps(list(tools), indent=1)}")
    return "\n\n".join(parts)


def _task(evidence: Evidence) -> str:
    task, limits = evidence.task, evidence.limits
    lines = [f"{task.id}: {task.summary}"]
    if task.metadata:
        lines.append(f"The benchmark says of it: {json.dumps(task.metadata, ensure_ascii=False)}")
    lines.append(f"The agent is told: {clipped(evidence.instruction, _LONGEST)}")
    lines.append(f"The benchmark's bridge is `{json.dumps(evidence.bridge.as_json(), ensure_ascii=False)}`.")
    if evidence.below:
        below = json.dumps([layer.as_json() for layer in evidence.below], ensure_ascii=False)
        lines.append(
            f"These layers are in place already, innermost first; yours come on top of them:\n`{below}`"
        )
    lines.append(
        "A hook may take back an end of the benchmark's (`terminated` from true to false): the episode goes on then."
        if evidence.resumable
        else "What the benchmark has ended can't go on: a hook may not set `terminated` to false."
    )
    lines.append(f"An episode takes at most {limits.steps} actions, those that fail or are refused included.")
    first = evidence.trajectory(evidence.baseline[0]).start if evidence.baseline else None
    if first is not None:
        seen = clipped(first.observation.text, _LONGEST)
        lines.append(f"It begins with this observation:\n\n```\n{seen}\n```")
        if first.observation.data:
            data = clipped(json.dumps(first.observation.data, ensure_ascii=False), _LONGEST // 4)
            lines.append(f"The same as `observation.data`: `{data}`")
    return "\n".join(lines)


def _start(evidence: Evidence) -> str:
    first = evidence.trajectory(evidence.baseline[0]).start if evidence.baseline else None
    return "" if first is None else first.observation.text


def _tools(evidence: Evidence) -> str:
    lines = []
    for tool in evidence.tools:
        schema = json.dumps(
            {"properties": tool.schema.get("properties", {}), "required": tool.schema.get("required", [])},
            ensure_ascii=False,
        )
        lines.append(f"- `{tool.name}`: {tool.description}\n  Arguments: `{schema}`")
    return "\n".join(lines)


def _standing(evidence: Evidence) -> str:
    """Say where the unchanged task stands beside the band, by its few rollouts."""
    if evidence.band is None or not evidence.baseline:
        return ""
    wins, count = sum(episode.success for episode in evidence.baseline), len(evidence.baseline)
    low, high = evidence.band
    share = wins / count
    place = "below it" if share < low else "above it" if share > high else "inside it"
    return f"The unchanged task, with {wins} of {count}, seems to be {place}."
