"""Lifecycle: closing reaches each bridge once, in every order of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.chain import Chain
from envharness_core.data import Action
from envharness_core.env import Bridge, Env
from envharness_core.errors import BridgeError, ConfigError, EnvHarnessError, PluginError, SetupError
from envharness_core.guard import Guard
from envharness_core.plugins import Plugins
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack, build_stack, wrap
from envharness_core.testing import Counter

COUNTED: list[Tracked] = []


class Tracked(Counter):
    """A counter that says how often each instance was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closes = 0
        COUNTED.append(self)

    def close(self) -> None:
        self.closes += 1


class Breaking(Tracked):
    """Breaks where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name in ("step", "reset", "evaluate", "observe", "tools") and name == self.where:
            raise ConnectionError(name)
        return value

    def close(self) -> None:
        super().close()
        if self.where == "close":
            raise OSError("no")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    COUNTED.clear()
    yield
    COUNTED.clear()


LAYERS = st.lists(
    st.sampled_from(
        [
            ComponentSpec("testing/pass_through"),
            ComponentSpec("faults", {"rate": 0.5}),
            ComponentSpec("bad_layers/unclosed"),
            ComponentSpec("bad_layers/fails_to_close"),
            ComponentSpec("bad_layers/closes_twice"),
            ComponentSpec("bad_layers/leaky"),
        ]
    ),
    max_size=3,
)


@given(
    layers=LAYERS,
    where=st.sampled_from(["", "reset", "step", "evaluate", "observe", "close"]),
    calls=st.lists(st.sampled_from(["reset", "step", "evaluate", "observe", "resume", "close"]), max_size=8),
)
def test_close_reaches_the_bridge_once(
    plugins: Plugins, layers: list[ComponentSpec], where: str, calls: list[str]
) -> None:
    bridge = Breaking(where)
    stack = wrap(plugins, bridge, layers)
    asked: dict[str, Callable[[], object]] = {
        "reset": lambda: stack.reset(0, {"task": "three"}),
        "step": lambda: stack.step(Action("add")),
    }
    for call in calls:
        with suppress(EnvHarnessError, OSError):
            asked.get(call, getattr(stack, call))()
    with suppress(EnvHarnessError, OSError):
        stack.close()
    stack.close()
    assert stack.phase == "closed"
    assert bridge.closes == 1


def test_a_context_manager_closes_also_after_an_error(plugins: Plugins) -> None:
    bridge = Tracked()
    with pytest.raises(ZeroDivisionError), wrap(plugins, bridge, []):
        raise ZeroDivisionError
    assert bridge.closes == 1


def test_a_link_closes_both_legs_also_if_the_first_fails() -> None:
    class Two(Env):
        """Only the recorders matter here."""

        close = lambda self: None  # noqa: E731
        tools = lambda self: ()  # noqa: E731

    Two.__abstractmethods__ = frozenset()
    bridges = [Breaking("close"), Breaking("close"), Tracked()]
    guard = Guard(Two(), [Recorder(bridge) for bridge in bridges])  # type: ignore[abstract]
    with pytest.raises(BridgeError):
        guard.close()
    assert [bridge.closes for bridge in bridges] == [1, 1, 1]


@pytest.mark.parametrize(
    ("layers", "error"),
    [
        (["bad_layers/raises"], PluginError),
        (["testing/pass_through", {"use": "budget", "stepps": 1}], ConfigError),
        (
            [{"use": "link", "next": {"bridge": "tracked/tracked", "task": "three", "layers": ["nothing"]}}],
            ConfigError,
        ),
        ([{"use": "link", "next": {"bridge": "tracked/clashing", "task": "three"}}], ConfigError),
        ([{"use": "setup", "actions": [{"name": "nothing"}]}], SetupError),
    ],
)
def test_a_stack_that_cannot_be_built_leaves_nothing_open(layers: list[Any], error: type[Exception]) -> None:
    from envharness_core.stacks import layer_specs

    plugins = Plugins(
        {
            "testing": "envharness_core.testing.plugin",
            "bad_layers": "known_bad_layers",
            "tracked": "tracked_bridges",
        }
    )
    import tracked_bridges  # type: ignore[import-not-found]

    tracked_bridges.OPEN.clear()
    with pytest.raises(error):
        build_stack(plugins, ComponentSpec("tracked/tracked"), layer_specs(layers))
    assert tracked_bridges.MADE
    assert not tracked_bridges.OPEN


def test_a_bridge_whose_tools_fail_is_closed_and_the_operators_business(plugins: Plugins) -> None:
    import tracked_bridges

    tracked_bridges.OPEN.clear()
    plugins = Plugins({"tracked": "tracked_bridges"})
    with pytest.raises(BridgeError, match=r"Toolless\.tools: RuntimeError: no tools today"):
        build_stack(plugins, ComponentSpec("tracked/toolless"))
    assert not tracked_bridges.OPEN
    with pytest.raises(
        BridgeError, match=r"tracked/unmade: its factory, called with \(config\), raised OSError"
    ):
        build_stack(plugins, ComponentSpec("tracked/unmade"))


def test_wrap_leaves_a_stack_alone_that_it_cannot_wrap(plugins: Plugins) -> None:
    bridge: Bridge = Tracked()
    with Stack(Chain(ComponentSpec("tracked"), Recorder(bridge))) as stack:
        with pytest.raises(ConfigError):
            wrap(plugins, stack, [ComponentSpec("faults"), ComponentSpec("nothing")])
        assert stack.layers == ()
        stack.reset(0, {"task": "three"})
