"""The static check: each mistake has a line and a word on what to do; what is well written passes."""

from __future__ import annotations

import pytest

from envharness_core.sandbox.dialect import MODULES
from envharness_core.sandbox.static import problems


def rules(body: str, head: str = "class _Rules(Rules):") -> str:
    return "\n".join([head, *(f"    {line}" for line in body.split("\n"))])


PASS = "def filter_action(self, action, env_state):\n    return action"

GOOD = [
    "def f(self, a, s):\n    return a\n" + rules("filter_action = f"),
    rules(PASS),
    rules(PASS, "class _Contract(Contract):"),
    rules("@staticmethod\ndef filter_action(a, s): return a"),
    rules("def filter_action(self, *args): return args[0]"),
    rules("def filter_action(self, a, s, extra=1): return a"),
    rules("def __init__(self, start=0):\n    super().__init__()\n" + PASS),
    rules("def filter_action(self, a, s): raise ValueError(a.name)"),
    "class Base(Rules):\n    " + PASS.replace("\n", "\n    ") + "\nclass _Rules(Base):\n    pass",
    "import re\nimport collections.abc\nfrom urllib.parse import urlparse\n" + rules(PASS),
    rules("def filter_observation(self, o, s):\n    def inner():\n        yield 1\n    return o"),
    rules("def filter_action(self, a, s):\n    return Blocked(type(a).__name__)"),
    rules("def helper_open(self): pass\n" + PASS),
]

BAD = [
    ("", 1, "it must define class _Rules(Rules): there is no class", False),
    ("class Rule(Rules):\n    pass", 1, "there is Rule (did you mean '_Rules'?)", False),
    (rules(PASS, "class _Rules:"), 1, "_Rules must inherit from Rules", False),
    (rules("pass"), 1, "_Rules defines no hook; hooks: filter_action, modify_transition, filter_observation", False),
    (rules("def filter_actions(self, a, s): return a"), 2, "'filter_actions' (did you mean 'filter_action'?)", False),
    (rules("def filter_action(self, a, s):\n    a.name"), 2, "filter_action never returns anything", False),
    (rules("def filter_action(self, a, s):\n    return"), 2, "filter_action never returns anything", False),
    (rules("def filter_action(self, a, s):\n    def f(): return 1"), 2, "filter_action never returns anything", False),
    (rules("def filter_action(self, a, s):\n    yield a"), 2, "must be a plain function that returns", False),
    (rules("async def filter_action(self, a, s): return a"), 2, "must be a plain function that returns", False),
    (rules("def filter_action(self, a): return a"), 2, "takes (self, action, env_state), whatever", False),
    (rules("def modify_transition(self, a, s): return a"), 2, "takes (self, action, response, env_state)", False),
    (rules("def filter_action(self, a, s, *, x): return a"), 2, "filter_action takes (self, action, env_state)", False),
    (rules("def __init__(self, inner): pass\n" + PASS), 2, "__init__ takes no arguments but self", False),
    (rules(PASS + "\ndef evaluate(self): return True"), 4, "isn't a hook: a verdict is the benchmark's own", True),
    (rules(PASS + "\ndef step(self, a): return a"), 4, "step isn't a hook: there is no environment inside", True),
    ("import os\n" + rules(PASS), 1, "os: not importable in the rules sandbox; these are: abc, base64", True),
    ("import urllib.request\n" + rules(PASS), 1, "urllib.request: not importable", True),
    ("from . import x\n" + rules(PASS), 1, ".: not importable", True),
    ("from envharness.rules import Rules\n" + rules(PASS), 1, "leave the import of 'envharness.rules' out", True),
    (rules("x = type.__subclasses__(object)\n" + PASS), 2, "Python's internals are out of reach", True),
    (rules("x = open('f')\n" + PASS), 2, "open() isn't there: files are out of reach", True),
    (rules("x = eval('1')\n" + PASS), 2, "eval() isn't there: code is given once", True),
]  # fmt: skip


@pytest.mark.parametrize("source", GOOD)
def test_what_is_well_written_passes(source: str) -> None:
    assert problems(source) == []


@pytest.mark.parametrize(("source", "line", "says", "forbidden"), BAD)
def test_a_mistake_has_its_line_and_a_word(source: str, line: int, says: str, forbidden: bool) -> None:
    found = problems(source)
    assert [problem.line for problem in found] == sorted(problem.line for problem in found)
    (problem,) = [problem for problem in found if says in problem.text]
    assert (problem.line, problem.forbidden) == (line, forbidden)


def test_all_mistakes_are_told_at_once() -> None:
    source = "import os\n" + rules("def filter_actoin(self, a, s): return a\ndef evaluate(self): open('x')")
    assert [problem.line for problem in problems(source)] == [1, 3, 4, 4]


def test_python_that_is_none_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        problems("class _Rules(Rules)")


def test_the_modules_are_a_sorted_list() -> None:
    assert list(MODULES) == sorted(set(MODULES))
