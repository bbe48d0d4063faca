"""Skills: a piece of advice, when to use it, and where it was learnt."""

from __future__ import annotations

from functools import cached_property
from typing import cast

from attrs import Attribute, field, frozen, validators

from envharness_core.jsondata import Json, copy_json, digest


def _one_line(text: str) -> str:
    return " ".join(text.split()) if isinstance(text, str) else text


def _stripped(text: str) -> str:
    return text.strip() if isinstance(text, str) else text


def _said(instance: object, attribute: Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"a skill's {attribute.name} must be a text that isn't blank, got {value!r:.80}")
    copy_json(value, attribute.name)


_TEXTS = validators.deep_iterable(validators.instance_of(str), validators.instance_of(tuple))


@frozen
class Provenance:
    """Where a skill was learnt.

    Args:
        task: the benchmark's own id of the task that was played.
        condition: what kind of environments it was learnt in, such as ``original`` or ``reshaped``.
        stack: the digest of the layers; empty for the bare bridge.
        trajectories: the keys of the episodes that speak for it.
        extractor: who distilled it.
        linked: further tasks that were played in the same episodes, as a Link's second leg is.
    """

    task: str = field(validator=validators.instance_of(str))
    condition: str = field(default="original", validator=validators.instance_of(str))
    stack: str = field(default="", validator=validators.instance_of(str))
    trajectories: tuple[str, ...] = field(default=(), validator=_TEXTS)
    extractor: str = field(default="", validator=validators.instance_of(str))
    linked: tuple[str, ...] = field(default=(), validator=_TEXTS)

    def came_from(self, task: str) -> bool:
        """Say whether anything of it was learnt on a task, which it then must not be used for."""
        return task == self.task or task in self.linked


@frozen
class Skill:
    """A piece of advice.

    Args:
        title: what it is called, in one line.
        description: when to use it, in one line.
        content: what to do.
        provenance: where it was learnt.
    """

    title: str = field(converter=_one_line, validator=_said)
    description: str = field(converter=_one_line, validator=_said)
    content: str = field(converter=_stripped, validator=_said)
    provenance: Provenance

    @property
    def text(self) -> str:
        """The skill as a policy is given it: title, when, what."""
        return f"{self.title}\nWhen: {self.description}\nWhat to do: {self.content}"

    @cached_property
    def id(self) -> str:
        """The content hash of what it says and where it was learnt, 32 hexadecimal characters."""
        origin = self.provenance
        learnt = [origin.task, origin.condition, origin.stack, *origin.linked]
        return digest(cast("Json", [self.title, self.description, self.content, *learnt]))

    @property
    def support(self) -> int:
        """How many episodes speak for it."""
        return len(self.provenance.trajectories)
