"""Person: whoever sits at the terminal plays."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from envharness_core.calls import CallError, parse_call, show_signature
from envharness_core.component import NoConfig
from envharness_core.data import Action, Observation
from envharness_core.errors import CancelledError
from envharness_core.jsondata import JsonObject
from envharness_core.policy import Policy, Reply
from envharness_core.text import printable
from envharness_core.tools import Tool, Toolbox

_HELP = """\
A line is a call of a tool, in any of these ways:
  name(1, key="text")    with values of JSON or Python
  name 1 key=text        in words
  name                   where nothing is needed
A tool of one text takes the rest of the line as it is, and needs no name where it is the only tool.
  :tools     what can be called
  :observe   what is there to be seen, with its data
  :task      the task again
  :quit      stop playing, without a verdict; so does the end of the input"""


class Person(Policy[NoConfig]):
    """Asks a person for each action; a line that is no call is asked for again and costs no step.

    Args:
        config: nothing.
        source: where lines come from; None for the terminal, or whatever stdin is when a line is asked for.
        sink: where everything is written; None for what stdout is then.
    """

    def __init__(
        self, config: NoConfig | None = None, source: TextIO | None = None, sink: TextIO | None = None
    ) -> None:
        super().__init__(config or NoConfig())
        self._source = source
        self._sink = sink

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        self._instruction = instruction
        self._tools = tuple(tools)
        self._toolbox = Toolbox(self._tools)
        self._skills = tuple(skills)
        self._seen = Observation("")
        self._base: str | None = None
        self._number = 0
        self._say(f"{self._task()}\n\n{_described(self._tools)}\n\nWrite a call, or :help.")

    def act(self, observation: Observation) -> Reply:
        """Show what has changed and ask until there is a well-formed call.

        Raises:
            CancelledError: the person has stopped.
        """
        self._seen = observation
        self._number += 1
        self._say(f"\n{self._news(observation.text)}")
        while True:
            line = self._line(f"{self._number}> ").strip()
            action = self._answered(line)
            if action is not None:
                return Reply((action,), line)

    def _answered(self, line: str) -> Action | None:
        """Return the call that a line is; to all else say something."""
        if line.startswith(":"):
            self._say(self._told(line[1:].strip()))
        elif line:
            try:
                action = parse_call(line, self._tools)
            except CallError as error:
                self._say(f"Not done: {error}")
            else:
                problem = self._toolbox.problem_with(action)
                if problem is None:
                    return action
                self._say(f"Not done: {problem}")
        return None

    def _told(self, command: str) -> str:
        match command:
            case "help" | "h" | "?":
                return _HELP
            case "tools" | "t":
                return _described(self._tools)
            case "observe" | "o":
                data = json.dumps(self._seen.data, ensure_ascii=False, indent=1)
                return f"{self._seen.text}\n{data}" if self._seen.data else self._seen.text
            case "task":
                return self._task()
            case "quit" | "q":
                raise CancelledError("the person has stopped playing")
        return f"Not done: there is no :{command[:80]}; there are :help, :tools, :observe, :task and :quit"

    def _task(self) -> str:
        skills = "".join(f"\n\n{skill}" for skill in self._skills)
        return f"Task: {self._instruction}{skills and f'{chr(10)}{chr(10)}Advice:{skills}'}"

    def _news(self, text: str) -> str:
        """Return what is new in a text: what was put in front of the last one, as a refusal is, or all of it."""
        base = self._base
        if base is None or not base:
            self._base = text
            return text
        if text == base:
            return "(What is shown hasn't changed; :observe shows it.)"
        if text.endswith(f"\n\n{base}"):
            return f"{text[: -len(base) - 2]}\n(The rest is as before; :observe shows it.)"
        self._base = text
        return text

    def _line(self, prompt: str) -> str:
        """Ask for a line.

        Raises:
            CancelledError: there is none any more.
        """
        if self._source is None and self._sink is None and sys.stdin is not None and sys.stdin.isatty():
            with suppress(ImportError):  # a line can be edited where the platform has it
                import readline  # noqa: F401
            try:
                return input(prompt)
            except EOFError:
                line = ""
        else:
            self._say(prompt, end="")
            source = self._source or sys.stdin
            line = source.readline() if source is not None else ""
        if not line:
            self._say("")
            raise CancelledError("the input has ended")
        return line

    def _say(self, text: str, end: str = "\n") -> None:
        sink = self._sink or sys.stdout
        sink.write(f"{printable(text)}{end}")
        sink.flush()


def _described(tools: Sequence[Tool]) -> str:
    return "Tools:\n" + "\n".join(line for tool in tools for line in _lines(tool))


def _lines(tool: Tool) -> list[str]:
    properties: Any = tool.schema.get("properties", {})
    described = [f"      {line}" for line in tool.description.splitlines()]
    arguments = [f"      {name}: {_kind(schema)}{_meaning(schema)}" for name, schema in properties.items()]
    return [f"  {show_signature(tool)}", *described, *arguments]


def _kind(schema: Any) -> str:
    """Say in words what a schema allows."""
    if "enum" in schema:
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    kind = {"string": "text", "array": "list"}.get(schema.get("type"), schema.get("type", "anything"))
    if kind == "list" and "items" in schema:
        kind = f"list of {_kind(schema['items'])}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = [f"from {low}"] * (low is not None) + [f"to {high}"] * (high is not None)
    return " ".join([str(kind), *bounds])


def _meaning(schema: JsonObject) -> str:
    default = (
        f", {json.dumps(schema['default'], ensure_ascii=False)} if left out" if "default" in schema else ""
    )
    return f"{default}; {schema['description']}" if "description" in schema else default
