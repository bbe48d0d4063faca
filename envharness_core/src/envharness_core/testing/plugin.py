"""The doubles as a plugin: ``Plugins({"testing": "envharness_core.testing.plugin"})``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from envharness_core import Component, hookimpl

if TYPE_CHECKING:
    from envharness_core import Bridge, Env, Policy

_DOUBLES = "envharness_core.testing.doubles"
_LEARNER = "envharness_core.testing.learner"
_TEXT_WORLD = "envharness_core.testing.text_world"


@hookimpl
def envharness_bridges() -> Iterable[Component[Bridge]]:
    """Yield the small bridges."""
    yield Component(
        "text_world",
        f"{_TEXT_WORLD}:TextWorld",
        f"{_TEXT_WORLD}:TextWorldConfig",
        "a tiny text world with a hidden key",
    )
    yield Component("counter", f"{_DOUBLES}:Counter", summary="counts to a goal and submits")
    yield Component("dice", f"{_DOUBLES}:Dice", summary="isn't deterministic, and says so")
    yield Component("failing", f"{_DOUBLES}:Failing", f"{_DOUBLES}:FailingConfig", "breaks down")


@hookimpl
def envharness_layers() -> Iterable[Component[Env]]:
    """Yield the layers that change nothing."""
    yield Component("pass_through", f"{_DOUBLES}:PassThrough", summary="changes nothing")
    yield Component("drawing", f"{_DOUBLES}:Drawing", summary="changes nothing, but draws")
    yield Component("watch", f"{_DOUBLES}:Watch", summary="notices what its neighbours write to")


@hookimpl
def envharness_policies() -> Iterable[Component[Policy]]:
    """Yield the learner."""
    yield Component(
        "learner",
        f"{_LEARNER}:Learner",
        f"{_LEARNER}:LearnerConfig",
        "plays Toy24 with bad habits that skills can address",
    )
