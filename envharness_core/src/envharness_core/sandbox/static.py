"""The static check: an early and friendly word on a source. The sandbox doesn't rely on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attrs import frozen

from envharness_core.errors import nearest
from envharness_core.hooks import HOOKS
from envharness_core.sandbox.dialect import import_problem

CLASSES = ("_Rules", "_Contract")
BASES = ("Rules", "Contract")

_ARGUMENTS = {
    "filter_action": "(self, action, env_state)",
    "modify_transition": "(self, action, response, env_state)",
    "filter_observation": "(self, observation, env_state)",
}
_NOT_THERE = {
    "open": "files are out of reach",
    "input": "there is nobody to ask",
    "breakpoint": "there is no debugger",
    "eval": "code is given once, as the source",
    "exec": "code is given once, as the source",
    "compile": "code is given once, as the source",
    "__import__": "write an import statement",
}
_HARMLESS = ("__init__", "__name__", "__doc__", "__class__", "__qualname__", "__len__", "__contains__")
_NOT_A_HOOK = {
    "evaluate": "a verdict is the benchmark's own",
    "get_env_state": "the state is the benchmark's own",
    "reset": "there is no environment inside; a Setup layer changes where an episode starts",
    "step": "there is no environment inside; write filter_action and modify_transition",
    "observe": "there is no environment inside; write filter_observation",
    "step_reward": "a reward is the benchmark's own",
}


@frozen
class Problem:
    """Something that won't work: its line, from 1, and what to do instead."""

    line: int
    text: str
    forbidden: bool = False


def problems(source: str) -> list[Problem]:
    """Return what is wrong with a source, by line.

    Raises:
        SyntaxError: it isn't Python.
    """
    tree = ast.parse(source)
    found = [*_class_problems(tree), *_reach_problems(tree)]
    return sorted(dict.fromkeys(found), key=lambda problem: problem.line)


def _class_problems(tree: ast.Module) -> Iterator[Problem]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    named = [node for node in classes if node.name in CLASSES]
    own = named[0] if named else None
    if len(named) > 1:
        yield Problem(
            named[1].lineno, f"{named[1].name} comes after {named[0].name}: there can be only one of them"
        )
    if own is None:
        names = [node.name for node in classes]
        hint = nearest(names[0], CLASSES) if names else ""
        there = f"there is {', '.join(names)}{hint}" if names else "there is no class"
        yield Problem(1, f"it must define class _Rules(Rules): {there}")
        return
    if not any(isinstance(base, ast.Name) and base.id in (*BASES, *_names(classes)) for base in own.bases):
        yield Problem(own.lineno, f"{own.name} must inherit from Rules, as in class {own.name}(Rules)")
    methods = [node for node in own.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if len(own.bases) == 1 and not any(name in HOOKS for name in _defined(own)):
        other = [name for name in _names(classes) if name != own.name]
        if not other and not any(_misspelt(method.name) for method in methods):
            yield Problem(own.lineno, f"{own.name} defines no hook; hooks: {', '.join(HOOKS)}")
    for method in methods:
        yield from _method_problems(method)


def _method_problems(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Problem]:
    name, line = method.name, method.lineno
    if _misspelt(name):
        yield Problem(line, f"there is no hook {name!r}{nearest(name, HOOKS)}; hooks: {', '.join(HOOKS)}")
    if name in _NOT_A_HOOK:
        yield Problem(line, f"{name} isn't a hook: {_NOT_A_HOOK[name]}", forbidden=True)
    if name == "__init__" and len(method.args.args) > 1 + len(method.args.defaults):
        yield Problem(line, "__init__ takes no arguments but self: there is no environment inside")
    if name not in HOOKS:
        return
    if isinstance(method, ast.AsyncFunctionDef) or any(_own(method, ast.Yield | ast.YieldFrom)):
        yield Problem(line, f"{name} must be a plain function that returns")
    elif not any(_answers(node) for node in _own(method, ast.Return | ast.Raise)):
        yield Problem(line, f"{name} never returns anything; return what it was given to change nothing")
    wanted = _ARGUMENTS[name]
    if not _takes(method, wanted.count(",") + 1):
        yield Problem(line, f"{name} takes {wanted}, whatever the names")


def _reach_problems(tree: ast.Module) -> Iterator[Problem]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _import_problem(node.lineno, alias.name, 0)
        elif isinstance(node, ast.ImportFrom):
            yield from _import_problem(node.lineno, node.module or "", node.level)
        elif isinstance(node, ast.Attribute) and _is_dunder(node.attr) and node.attr not in _HARMLESS:
            yield Problem(node.lineno, f"{node.attr}: Python's internals are out of reach", forbidden=True)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NOT_THERE:
            what = f"{node.func.id}() isn't there: {_NOT_THERE[node.func.id]}"
            yield Problem(node.lineno, what, forbidden=True)


def _import_problem(line: int, name: str, level: int) -> Iterator[Problem]:
    problem = import_problem(name, level)
    if problem is not None:
        yield Problem(line, problem, forbidden=True)


def _defined(own: ast.ClassDef) -> Iterator[str]:
    """Yield what a class's body defines: methods, and names that are assigned."""
    for node in own.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _names(classes: list[ast.ClassDef]) -> list[str]:
    return [node.name for node in classes]


def _misspelt(name: str) -> bool:
    return name.startswith(("filter_", "modify_")) and name not in HOOKS


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _own(function: ast.AST, kinds: object) -> Iterator[ast.AST]:
    """Yield a function's own nodes of some kinds, without those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, kinds):  # type: ignore[arg-type]
            yield node
        yield from _own(node, kinds)


def _answers(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Return) and node.value is not None)


def _takes(method: ast.FunctionDef | ast.AsyncFunctionDef, wanted: int) -> bool:
    """Say whether a method can be called with so many arguments, ``self`` included."""
    if any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in method.decorator_list):
        wanted -= 1
    arguments = method.args
    given = len(arguments.posonlyargs) + len(arguments.args)
    fits = given - len(arguments.defaults) <= wanted and (given >= wanted or arguments.vararg is not None)
    return fits and len(arguments.kwonlyargs) == sum(default is not None for default in arguments.kw_defaults)
