"""A task's history in plain words, and as the page's data."""

from __future__ import annotations

import json
from typing import Any, cast

from attrs import frozen

from envharness_core.jsondata import Json, JsonObject
from envharness_core.page.playback import clipped
from envharness_core.page.streams import TITLES, Stream, attempt_parts, is_unchanged, stream_name
from envharness_core.page.tally import Count
from envharness_core.posterior import wilson_interval

_WAYS = {
    "harden": "make the task harder",
    "scaffold": "make the task easier",
    "leave": "leave the task as it is",
}
_DIAGNOSIS = {
    "flaw": "Weakness",
    "evidence": "What shows it",
    "boundary": "Where the policy still succeeds",
    "headroom": "How far it could go",
    "reliance": "What its wins rest on",
}
_DECISIONS = {
    "accept": "accept",
    "refine": "refine: keep what works, change the magnitude, try again",
    "reject": "reject: start over",
    "more": "more rollouts",
}
_VERDICTS = {"accept": "accepted", "refine": "not accepted", "reject": "rejected", "more": "undecided"}
_WIDE = 400
"""Characters beyond which a value of a layer's config is folded away."""


@frozen
class Told:
    """A task as the page tells it.

    Args:
        task: its id.
        status: ``accepted``, ``kept``, ``abandoned`` or ``unfinished``.
        before, after: successes and graded rollouts of the report streams; None where there are none.
        band: the success rates that are wanted, inclusive; None for another kind of objective.
        result: the task's stored result; None where it has none yet.
        streams: what was counted of its streams.
    """

    task: str
    status: str
    before: tuple[int, int] | None
    after: tuple[int, int] | None
    band: tuple[float, float] | None
    result: Any
    streams: dict[str, Count]

    @property
    def attempts(self) -> list[Any]:
        """What was tried, in order."""
        return cast("list[Any]", self.result["attempts"]) if self.result else []

    @property
    def tried(self) -> int:
        """How many designs were tried, the unchanged task not among them."""
        return sum(not is_unchanged(attempt) for attempt in self.attempts)

    @property
    def layers(self) -> list[str]:
        """The accepted layers in short, innermost first."""
        return [layer_words(layer) for layer in self.result["layers"]] if self.result else []

    def in_band(self, counted: tuple[int, int] | None) -> bool | None:
        """Whether a measured rate is what was wanted; None where that isn't known."""
        if self.band is None or not counted or not counted[1]:
            return None
        return self.band[0] <= counted[0] / counted[1] <= self.band[1]

    def as_json(self) -> JsonObject:
        """Return everything that the task's own view shows but its rollouts."""
        return {
            "task": self.task,
            "status": self.status,
            "story": [*self.story()],
            "diagnosis": self._diagnosis(),
            "attempts": self._attempts(),
            "rates": [
                [name, rate_words(counted)]
                for name, counted in (("before", self.before), ("after", self.after))
                if counted
            ],
            "streams": [_stream(name, count) for name, count in _ordered(self.streams)],
        }

    def story(self) -> list[str]:
        """Return what was done and why, a sentence or two each."""
        if self.result is None:
            return ["The run hasn't finished this task yet; what was played so far is below."]
        told = [self._observed(), *self._designed()]
        if self.after:
            told.append(
                f"Measured afterwards, on fresh rollouts that played no part in the choice, the policy won "
                f"{rate_words(self.after)} on the accepted layers{self._where(self.after)}{self._seen()}. "
                f"On the unchanged task it won {rate_words(self.before)}{self._where(self.before)}."
            )
        elif self.before:
            told.append(
                "Measured afterwards, on fresh rollouts that played no part in the choice, the policy won "
                f"{rate_words(self.before)} on the unchanged task{self._where(self.before)}."
            )
        return told

    def _observed(self) -> str:
        baseline = self.result["baseline"]
        seen = f"Unchanged, the policy won {baseline['successes']} of {baseline['graded']} baseline rollouts."
        diagnosis = self.result["diagnosis"]
        if not diagnosis:
            return seen
        way = _WAYS.get(diagnosis["direction"], diagnosis["direction"])
        return f"{seen} The designer's diagnosis: “{diagnosis['flaw']}”. It set out to {way}."

    def _designed(self) -> list[str]:
        unchanged = [attempt for attempt in self.attempts if is_unchanged(attempt)]
        told = []
        if unchanged and self.status != "kept":
            told.append(
                "The unchanged task was put to the gate first and didn't pass: it won "
                f"{_won(unchanged[0]['validation'])} (the gate: “{unchanged[0]['reason']}”)."
            )
        accepted = [attempt for attempt in self.attempts if attempt["decision"] == "accept"]
        if self.status == "kept" and accepted:
            return [
                *told,
                f"The unchanged task already is what is wanted, so it was kept. {_because(accepted[-1])}",
            ]
        designs = f"{self.tried} design{'' if self.tried == 1 else 's'} {'was' if self.tried == 1 else 'were'} tried"
        if self.status == "accepted" and accepted:
            layers = " on top of ".join(reversed(self.layers))
            return [*told, f"{designs}. Accepted: {layers}. {_because(accepted[-1])}"]
        return [*told, f"{designs}, and none was accepted; the task was given up: {self.result['reason']}."]

    def _where(self, counted: tuple[int, int] | None) -> str:
        inside = self.in_band(counted)
        if inside is None or self.band is None:
            return ""
        return f", {'inside' if inside else 'outside'} the band {self.band[0]:g} to {self.band[1]:g}"

    def _seen(self) -> str:
        """Say how little the gate had to go by, where what was measured then isn't what it expected."""
        accepted = [attempt for attempt in self.attempts if attempt["decision"] == "accept"]
        if self.in_band(self.after) is not False or not accepted:
            return ""
        seen = [accepted[-1]["validation"], accepted[-1]["confirmation"] or {"graded": 0}]
        return f" (the gate, which had {sum(counted['graded'] for counted in seen)} rollouts to go by, can be wrong)"

    def _diagnosis(self) -> list[Json]:
        diagnosis = self.result["diagnosis"] if self.result else None
        if not diagnosis:
            return []
        told: list[Json] = [
            [words, clipped(diagnosis[key])] for key, words in _DIAGNOSIS.items() if diagnosis.get(key)
        ]
        return [*told, ["Direction", _WAYS.get(diagnosis["direction"], diagnosis["direction"])]]

    def _attempts(self) -> list[Json]:
        return [
            _attempt(attempt, part, rounds)
            for attempt, (part, rounds) in zip(self.attempts, attempt_parts(self.attempts), strict=True)
        ]


def gate_words(objective: Any) -> str:
    """Return what an objective's gate goes by: its rule in words where it has the usual numbers, and its config."""
    numbers = [objective.get(key) for key in ("low", "high", "accept", "reject", "confirm")]
    settings = f"Its settings: {layer_words(objective)}."
    if any(number is None for number in numbers) or objective.get("gate") == "fixed":
        return settings
    low, high, accept, reject, confirm = numbers
    return (
        f"The gate asks how likely it is that a candidate's true success rate lies in [{low:g}, {high:g}], given the "
        f"rollouts so far. At {accept:g} or more the candidate goes on to its confirmation; at {reject:g} or less it "
        f"is given up; in between more is rolled out. After the confirmation it must still be at {confirm:g} or more. "
        f"{settings}"
    )


def layer_words(layer: Any) -> str:
    """Return a layer and its config in one line; long values are only named."""
    name = layer["use"].rpartition("/")[2]
    inside = []
    for key, value in layer.items():
        if key != "use":
            words = json.dumps(value, ensure_ascii=False)
            if len(words) <= 40:
                inside.append(f"{key} = {words}")
            else:
                inside.append(f"{len(value)} {key}" if isinstance(value, list) else f"{key} …")
    return f"{name} ({', '.join(inside)})" if inside else name


def rate_words(counted: tuple[int, int] | None) -> str:
    """Return a rate with its counts and its 95 % interval."""
    if not counted or not counted[1]:
        return "nothing"
    won, graded = counted
    low, high = wilson_interval(won, graded)
    return f"{won} of {graded} ({percent(won / graded)}; 95 % interval {percent(low)} to {percent(high)})"


def percent(share: float) -> str:
    """Return a share in whole per cent; only 0 and 1 themselves are 0 % and 100 %."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def _because(attempt: Any) -> str:
    confirmed = attempt["confirmation"]
    fresh = f", then {_won(confirmed)} fresh confirmation rollouts" if confirmed else ""
    word = f"The gate's word: “{attempt['reason']}”."
    return f"Why: it won {_won(attempt['validation'])} validation rollouts{fresh}. {word}"


def _won(counted: Any) -> str:
    return f"{counted['successes']} of {counted['graded']}"


def _attempt(attempt: Any, part: str, rounds: int) -> Json:
    title = "The unchanged task" if part == "unchanged" else f"Attempt {int(part) + 1}"
    return {
        "title": f"{title} (round {rounds + 1})" if rounds else title,
        "decision": _DECISIONS.get(attempt["decision"], attempt["decision"]),
        "verdict": _VERDICTS.get(attempt["decision"], attempt["decision"]),
        "layers": [_layer(layer) for layer in attempt["layers"]],
        "rationale": clipped(attempt["rationale"]),
        "validation": _share(attempt["validation"]) or "none: it was refused before any rollout",
        "confirmation": _share(attempt["confirmation"]),
        "reason": clipped(attempt["rejected"] or attempt["reason"] or ""),
        "streams": [stream_name(kind, part, rounds) for kind in ("attempt", "confirm")],
    }


def _layer(layer: Any) -> Json:
    config = {key: value for key, value in layer.items() if key != "use"}
    long = [
        [key, clipped(value)]
        for key, value in config.items()
        if isinstance(value, str) and len(value) > _WIDE
    ]
    named = {key for key, _ in long}
    short = {key: value for key, value in config.items() if key not in named}
    return {
        "words": layer_words(layer),
        "use": layer["use"],
        "config": clipped(json.dumps(short, ensure_ascii=False, indent=2)),
        "long": cast("Json", long),
    }


def _share(counted: Any) -> Json:
    if not counted or not counted["played"]:
        return None
    words = f"{_won(counted)} won"
    excluded = counted["played"] - counted["graded"]
    return f"{words}, {excluded} excluded" if excluded else words


def _ordered(streams: dict[str, Count]) -> list[tuple[str, Count]]:
    """Sort streams as a run plays them; the report's come last."""
    kinds = list(TITLES)

    def place(item: tuple[str, Count]) -> tuple[int, int, int, int]:
        stream = Stream.of(item[0])
        kind = kinds.index(stream.kind) if stream.kind in kinds else len(kinds)
        number = int(stream.part) if stream.part.isdecimal() else -1
        return (stream.kind.startswith("report"), stream.round, number if kind > 1 else -2, kind)

    return sorted(streams.items(), key=place)


def _stream(name: str, count: Count) -> Json:
    outcomes: JsonObject = {**count.outcomes}
    return {
        "name": name,
        "title": Stream.of(name).title,
        "purpose": Stream.of(name).purpose,
        "played": count.played,
        "graded": count.graded,
        "won": count.won,
        "outcomes": outcomes,
    }
