"""Components: what a plugin registers, as records that load nothing until they are used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic

from attrs import field, frozen, validators
from typing_extensions import TypeVar

T = TypeVar("T")
ConfigT = TypeVar("ConfigT", default=Any)
"""The config of a component: an attrs class."""
T_co = TypeVar("T_co", covariant=True)

_NAME = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)?")


@frozen
class NoConfig:
    """The config of a component that has none: every key is refused."""


@frozen
class Component(Generic[T]):
    """One thing that a plugin offers.

    Args:
        name: lower_snake; users write ``plugin/name``, or the name alone where plugin and component share it.
        factory: the class or function that makes it, or ``"module:attribute"``, imported on first use. It is called
            with a config; a layer's factory with the inner environment and a config.
        config: the attrs class of the config, or ``"module:attribute"``; None takes no keys.
        summary: one line for listings and designers.
        install: what to run where an import fails, such as ``pip install 'envharness-bridge-x[y]'``.
    """

    name: str = field(validator=[validators.instance_of(str), validators.matches_re(_NAME)])
    factory: Callable[..., T] | str
    config: type[Any] | str | None = None
    summary: str = ""
    install: str = ""


@frozen
class Kind(Generic[T_co]):
    """A kind of component, and the hook through which plugins register it.

    The type parameter is what a factory makes, so that lookups are typed.
    """

    name: str
    hook: str
