"""The dialect: what a designer's source code finds in scope."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import CodeType, ModuleType
from typing import Any

from attrs import evolve

from envharness_core.data import Action, Blocked, EnvState, Observation, StepResponse
from envharness_core.hooks import PassThrough

MODULES: tuple[str, ...] = (
    "abc", "base64", "bisect", "calendar", "cmath", "collections", "collections.abc", "contextlib", "copy",
    "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq",
    "html", "itertools", "json", "keyword", "math", "numbers", "operator", "pprint", "random", "re", "shlex",
    "statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib.parse", "zlib",
)  # fmt: skip
"""The modules that hooks may import: pure ones. ``random`` is the layer's own seeded stream."""

IN_SCOPE: tuple[str, ...] = (
    "Action", "Blocked", "Contract", "EnvResponse", "EnvState", "Observation", "Rules", "StepResponse", "action_str",
    "bash_command", "evolve", "failed", "fake_response", "is_submission",
)  # fmt: skip
"""The names that a source finds in scope beside Python's own."""

SHELLS: tuple[str, ...] = ("bash", "shell", "sh", "terminal", "execute_bash", "run_command", "run_shell")
"""The names by which tools that take a shell command go."""

SUBMISSION = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The command that submits, where a benchmark has no ``submit`` tool. Source: mini-swe-agent."""

FILENAME = "<rules>"
"""What tracebacks call a designer's source."""

BEHIND = ("_strptime", "locale", "time", "warnings")
"""Modules that C code imports in the name of who calls it, such as ``datetime.strptime``."""

_SENTINEL = re.compile(r"^[^\S\n]*echo[^\S\n]+[\"']?COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\b", re.MULTILINE)
_TEXT_ARGUMENTS = ("action", "command")


class Rules(PassThrough):
    """The base of ``class _Rules(Rules)``: three hooks that pass everything through.

    ``self.random`` is the layer's own seeded stream, the one behind ``import random``.
    """

    random: Random


class ForbiddenImportError(ImportError):
    """An import that the sandbox doesn't have."""


class Scope:
    """The names of one layer, made anew with the layer."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.base = type("Rules", (Rules,), {"random": self.random, "__module__": "rules"})
        self.response: StepResponse | None = None
        """The response at hand, while ``modify_transition`` runs."""
        self._module = random_module(self.random)
        self.names: dict[str, Any] = {
            "__builtins__": {**vars(builtins), "__import__": self._import},
            "__name__": "rules",
            "Action": Action,
            "Blocked": Blocked,
            "Contract": self.base,
            "EnvResponse": StepResponse,
            "EnvState": EnvState,
            "Observation": Observation,
            "Rules": self.base,
            "StepResponse": StepResponse,
            "action_str": action_str,
            "bash_command": bash_command,
            "evolve": evolve,
            "failed": failed,
            "fake_response": self.fake_response,
            "is_submission": is_submission,
        }

    def run(self, code: CodeType) -> Any:
        """Execute compiled source in this scope and return what it calls ``_Rules`` or ``_Contract``."""
        exec(code, self.names)  # noqa: S102 - in the sandbox, which is what all this is for
        return self.names.get("_Rules", self.names.get("_Contract"))

    def fake_response(self, text: str, exit_code: int = 0) -> StepResponse:
        """Return the response at hand with another text and exit code; reward, flags and info are inherited."""
        if self.response is None:
            raise RuntimeError(
                "fake_response works in modify_transition only: there is no response elsewhere"
            )
        return evolve(self.response, observation=_said(self.response, text, exit_code))

    def _import(
        self,
        name: str,
        variables: Mapping[str, object] | None = None,
        own: Mapping[str, object] | None = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        refusal = import_problem(name, level)
        if refusal is not None and name not in BEHIND:
            raise ForbiddenImportError(refusal)
        if name == "random":
            return self._module
        return __import__(name, None, None, list(wanted or ()), 0)


def import_problem(name: str, level: int = 0) -> str | None:
    """Say why a module can't be imported, or return None."""
    if level == 0 and (name in MODULES or name == "__future__"):
        return None
    if name.partition(".")[0].startswith("envharness"):
        return f"leave the import of {name!r} out: Rules, Action, Observation and the rest are in scope"
    return f"{'.' * level}{name}: not importable in the rules sandbox; these are: {', '.join(MODULES)}"


def bash_command(action: Action) -> str:
    """Return the command text of a shell tool's call; for a ``submit`` tool the command that submits; else ``""``."""
    if action.name == "submit":
        return SUBMISSION
    if action.name not in SHELLS:
        return ""
    texts = [value for value in action.kwargs.values() if isinstance(value, str)]
    command = action.kwargs.get("command", texts[0] if texts else "")
    return command if isinstance(command, str) else ""


def is_submission(cmd: str) -> bool:
    """Say whether a command submits."""
    return bool(_SENTINEL.search(cmd))


def failed(response: StepResponse, text: str) -> StepResponse:
    """Return the response with that text instead, not terminated, with exit code 1."""
    return evolve(response, observation=_said(response, text, 1), terminated=False)


def action_str(action: Action) -> str:
    """Return a call as ``name(argument="text")``, or the text alone where the call is one text.

    A call is one text where its only argument is called ``action`` or ``command``: ``do``, ``bash``.
    """
    if len(action.kwargs) == 1:
        ((key, value),) = action.kwargs.items()
        if key in _TEXT_ARGUMENTS and isinstance(value, str):
            return value
    return str(action)


def random_module(stream: Random) -> ModuleType:
    """Return a module like ``random`` whose functions draw from a stream."""

    class Seeded(Random):
        """A stream that is seeded from the layer's, where no seed is given."""

        def __init__(self, seed: Any = None) -> None:
            super().__init__(stream.getrandbits(64) if seed is None else seed)

    module = ModuleType("random", "The layer's own seeded stream.")
    for name in dir(Random):
        if not name.startswith("_"):
            function: Callable[..., object] = getattr(stream, name)
            setattr(module, name, function)
    Seeded.__name__ = Seeded.__qualname__ = "Random"
    vars(module)["Random"] = Seeded
    return module


def _said(response: StepResponse, text: str, exit_code: int) -> Observation:
    return Observation(text, {**response.observation.data, "exit_code": exit_code})
