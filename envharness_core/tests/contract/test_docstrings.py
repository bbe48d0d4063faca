"""The smallest examples in the interfaces' docstrings run."""

from __future__ import annotations

import doctest
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import frozen

import envharness_core
from envharness_core import campaign, contract, hookspecs, tools
from envharness_core.checks.bridge import BRIDGE_CHECKS
from envharness_core.checks.layer import LAYER_CHECKS
from envharness_core.component import NoConfig
from envharness_core.contract import World, bridge_bench, layer_bench, run_check
from envharness_core.data import Action
from envharness_core.designer import Designer
from envharness_core.env import Bridge
from envharness_core.kinds import KINDS
from envharness_core.layer import Layer
from envharness_core.layers.rules import Rules
from envharness_core.objective import Objective
from envharness_core.plugins import Plugins
from envharness_core.policy import Policy
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.store import Store


def example(thing: object) -> dict[str, Any]:
    """Run the indented block of a docstring with the public names in scope, and return what it defined."""
    doc = textwrap.dedent(f"    {(thing.__doc__ or '')}")
    block = doc[doc.index("::\n") + 3 :]
    code = textwrap.dedent(
        "\n".join(line for line in block.splitlines() if line.startswith("    ") or not line)
    )
    names = [name for name in envharness_core.__all__ if name not in ("campaign", "rollout", "stack")]
    scope: dict[str, Any] = {name: getattr(envharness_core, name) for name in names}
    exec(code, scope)
    return scope


@pytest.fixture
def plugins() -> Iterator[Plugins]:
    """The docstrings' classes as a plugin."""

    @frozen
    class Config:
        rate: float = 0.5

    module = ModuleType("documented_plugin")
    hookimpl, component = envharness_core.hookimpl, envharness_core.Component

    def envharness_bridges() -> Any:
        yield component("guess", example(Bridge)["Guess"])

    def envharness_layers() -> Any:
        yield component("flaky_tools", example(Layer)["FlakyTools"], Config)
        yield component("no_shouting", example(Rules)["NoShouting"])

    def envharness_objectives() -> Any:
        yield component("at_most_half", example(Objective)["AtMostHalf"])

    def envharness_designers() -> Any:
        yield component("always_flaky", example(Designer)["AlwaysFlaky"])

    def envharness_policies() -> Any:
        yield component("gives_up", example(Policy)["GivesUp"])

    hooks = (
        envharness_bridges,
        envharness_layers,
        envharness_objectives,
        envharness_designers,
        envharness_policies,
    )
    vars(module).update({hook.__name__: hookimpl(hook) for hook in hooks})
    sys.modules[module.__name__] = module
    yield Plugins({"documented": module.__name__})
    del sys.modules[module.__name__]


def test_the_smallest_bridge_plays_and_keeps_the_contract(plugins: Plugins) -> None:
    with build_stack(plugins, ComponentSpec("documented/guess")) as stack:
        stack.reset(0, {"task": "seven"})
        assert not stack.evaluate().success
        assert stack.step(Action("guess", {"number": 7})).terminated
        assert stack.evaluate().success
    with bridge_bench(plugins, ComponentSpec("documented/guess")) as bench:
        results = [run_check(check, bench) for check in BRIDGE_CHECKS]
    assert [result.name for result in results if not result.passed] == []


def test_the_smallest_policy_objective_and_designer_run_a_campaign(plugins: Plugins, tmp_path: Path) -> None:
    summary = campaign(
        {
            "bridge": "toy24",
            "policy": "documented/gives_up",
            "objective": "documented/at_most_half",
            "designer": "documented/always_flaky",
            "tasks": {"limit": 2},
            "executor": "inline",
        },
        tmp_path / "run",
        plugins=plugins,
    )
    assert (summary["accepted"], summary["faults"]) == (2, 0)
    with Store.open(tmp_path / "run") as store:
        assert [result["layers"] for result in store.results()] == [[{"use": "core/faults", "rate": 0.1}]] * 2


@pytest.mark.parametrize("name", ["flaky_tools", "no_shouting"])
def test_the_smallest_layers_keep_the_contract(plugins: Plugins, name: str) -> None:
    with layer_bench(plugins, ComponentSpec(f"documented/{name}")) as bench:
        results = [run_check(check, bench) for check in LAYER_CHECKS]
    assert [(result.name, result.detail) for result in results if not result.passed] == []


def test_the_smallest_rules_do_what_they_say(plugins: Plugins) -> None:
    world = World(ComponentSpec("testing/text_world"), "ring")
    both = Plugins({**plugins.modules, "testing": "envharness_core.testing.plugin"})
    with build_stack(both, world.bridge, [ComponentSpec("documented/no_shouting")]) as stack:
        stack.reset(0, {"task": world.task})
        assert stack.step(Action("do", {"text": "LOOK"})).info == {"blocked": "Please don't shout."}
        assert stack.step(Action("do", {"text": "look"})).info == {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_hooks_example_registers_a_component(kind: Any) -> None:
    class FlakyTools(Layer[NoConfig]):
        """Stand in for the class of the example."""

    hook = getattr(hookspecs, kind.hook)
    doc = textwrap.dedent(f"    {hook.__doc__}")
    block = textwrap.dedent("\n".join(doc[doc.index("::\n") + 3 :].splitlines()))
    scope: dict[str, Any] = {
        "hookimpl": envharness_core.hookimpl,
        "Component": envharness_core.Component,
        "FlakyTools": FlakyTools,
        "Config": NoConfig,
    }
    exec(block, scope)
    (component,) = scope[kind.hook]()
    assert component.name
    assert hasattr(scope[kind.hook], "envharness_impl")


@pytest.mark.parametrize("module", [contract])
def test_doctests_run(module: ModuleType) -> None:
    failed, run = doctest.testmod(module)
    assert run > 0
    assert failed == 0


def test_the_tools_doctest_runs() -> None:
    scope = {**vars(tools), "Literal": __import__("typing").Literal}
    failed, run = doctest.testmod(tools, extraglobs=scope)
    assert run == 2
    assert failed == 0
