"""Asking designers and objectives, whose code may raise or answer anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import evolve

from envharness_core.campaigns.batch import Ask, Play
from envharness_core.designer import Candidate, Designer
from envharness_core.episode import Episode
from envharness_core.errors import PLUGIN_FAULTS, ProviderError, RefusedError
from envharness_core.jsondata import Json, copy_json
from envharness_core.objective import Decision, Judgement
from envharness_core.stacks import layer_specs

_MOST_AT_ONCE = 10_000
"""Rollouts of one candidate, beyond which an objective must be broken."""

T = TypeVar("T")


class FaultError(Exception):
    """A designer or an objective raised, or answered what it may not."""


def asked(call: Callable[..., Any], expected: type[T] | tuple[type, ...], *args: object) -> Any:
    """Ask a designer or an objective; whatever goes wrong names it.

    Raises:
        FaultError: it raised, or answered what it may not.
        ProviderError: a service that it needs failed, which says nothing about it.
    """
    name = f"{type(getattr(call, '__self__', None)).__name__}.{call.__name__}"
    try:
        answer = call(*args)
    except RefusedError as error:
        raise FaultError(f"{name}: {error}") from error
    except ProviderError:
        raise
    except PLUGIN_FAULTS as error:
        raise FaultError(f"{name} raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, expected):
        kinds = expected if isinstance(expected, tuple) else (expected,)
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise FaultError(f"{name} must return {wanted}, got {answer!r:.200}")
    return answer


def told(designer: Designer, call: Callable[..., Any], expected: type[T], *args: object) -> Play[T]:
    """Ask a designer, who may take its time."""
    answer: T = yield Ask(partial(asked, call, expected, *args), designer.waits)
    return answer


def judged(call: Callable[..., Any], *args: Sequence[Episode]) -> Judgement:
    """Ask an objective about rollouts, the last of which are those that it judges."""
    judgement: Judgement = asked(call, Judgement, *args)
    if not isinstance(judgement.decision, Decision) or type(judgement.rollouts) is not int:
        problem = f"answers what isn't a judgement: {judgement!r:.200}"
    elif judgement.decision is Decision.MORE and not 1 <= judgement.rollouts <= _MOST_AT_ONCE:
        problem = f"asks for {judgement.rollouts} more rollouts; it may ask for 1 to {_MOST_AT_ONCE}"
    elif judgement.decision is Decision.MORE and len(args[-1]) >= _MOST_AT_ONCE:
        problem = f"hasn't decided after {len(args[-1])} rollouts"
    elif judgement.decision is Decision.ACCEPT and call.__name__ == "judge" and not args[-1]:
        problem = "accepts without a rollout"
    else:
        say_plainly("Judgement", getattr(call, "__self__", None), [judgement.reason, judgement.score])
        return judgement
    raise FaultError(f"{type(getattr(call, '__self__', None)).__name__}.{call.__name__} {problem}")


def sound(designer: Designer, candidate: Candidate) -> Candidate:
    """Return a candidate as plain specs, which can be written down; refuse what can't."""
    name = f"{type(designer).__name__}.propose"
    try:
        layers = layer_specs(candidate.layers)
        copy_json([layer.as_json() for layer in layers])
        copy_json({"rationale": candidate.rationale, "notes": candidate.notes})
    except PLUGIN_FAULTS as error:
        raise FaultError(f"{name} must return layers as data: {type(error).__name__}: {error}") from error
    return evolve(candidate, layers=layers, rationale=str(candidate.rationale))


def say_plainly(what: str, who: object, data: Json) -> None:
    """Refuse what can't be written down or shown."""
    try:
        copy_json(data)
    except PLUGIN_FAULTS as error:
        raise FaultError(f"{type(who).__name__}: its {what} can't be written down: {error}") from error
