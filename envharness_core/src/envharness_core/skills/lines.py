"""A bank's file: a skill a line, as JSON, read tolerantly and written whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from attrs import field, frozen

from envharness_core.converter import structure, unstructure
from envharness_core.errors import ConfigError, DataError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.skills import lexical
from envharness_core.skills.skill import Provenance, Skill
from envharness_core.skills.vectors import Embedding, read_embedding
from envharness_core.whole_file import whole_file

SCHEMA_VERSION = 1


@frozen
class Line:
    """A skill with its embedding, as the bank holds it."""

    skill: Skill
    embedding: Embedding | None = field(default=None, repr=False)

    @cached_property
    def wording(self) -> frozenset[str]:
        """What it says, for comparisons."""
        return lexical.wording(f"{self.skill.title}\n{self.skill.description}\n{self.skill.content}")

    @cached_property
    def advice(self) -> frozenset[str]:
        """The same of title and content alone: what to do, wherever it was learnt."""
        return lexical.wording(f"{self.skill.title}\n{self.skill.content}")

    @cached_property
    def negations(self) -> Mapping[str, int]:
        """Its words that turn advice into its opposite."""
        return lexical.negations(f"{self.skill.title}\n{self.skill.content}")

    def as_json(self) -> JsonObject:
        """Return the line as plain data."""
        return {
            "schema_version": SCHEMA_VERSION,
            "title": self.skill.title,
            "description": self.skill.description,
            "content": self.skill.content,
            "provenance": unstructure(self.skill.provenance),
            "embedding": None if self.embedding is None else self.embedding.as_json(),
        }


@frozen
class _Written:
    """The keys of a line."""

    schema_version: int
    title: str
    description: str
    content: str
    provenance: Provenance
    embedding: JsonObject | None = None


def read_lines(path: Path) -> tuple[list[Line], tuple[str, ...]]:
    """Read a bank's file, and say of each line that couldn't be read where it is and why.

    Raises:
        ConfigError: the file can't be read at all.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror or error}; name a bank's file") from error
    lines: list[Line] = []
    problems: list[str] = []
    for number, written in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not written.strip():
            continue
        try:
            data = _parsed(written)
            skill = _skill(data)
        except (ConfigError, ValueError, RecursionError) as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        embedding, problem = _embedding(data)
        problems += [f"{path}:{number}: embedding: {problem}; left out"] if problem else []
        lines.append(Line(skill, embedding))
    return lines, tuple(problems)


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """Write a bank's file, as a whole.

    Raises:
        ConfigError: nothing can be written there.
    """
    with whole_file(path) as file:
        for line in lines:
            file.write(json.dumps(line.as_json(), ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _parsed(written: bytes) -> JsonObject:
    try:
        data = json.loads(written, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON, or torn: {error}") from error
    except RecursionError:
        raise ValueError("nested too deeply") from None
    try:
        return copy_object(data)
    except DataError as error:
        raise ValueError(str(error)) from error


def _skill(data: JsonObject) -> Skill:
    version = data.get("schema_version")
    if version != SCHEMA_VERSION or type(version) is not int:
        raise ValueError(f"schema_version: expected {SCHEMA_VERSION}, got {version!r:.40}")
    try:
        line = structure({**data, "embedding": None}, _Written, "skill")
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return Skill(line.title, line.description, line.content, line.provenance)


def _embedding(data: JsonObject) -> tuple[Embedding | None, str]:
    given: Json = data.get("embedding")
    try:
        return (None if given is None else read_embedding(given)), ""
    except ValueError as error:
        return None, str(error)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
