"""The engine: the layers of one run, with their hooks called in the order of a stack.

It runs in a sandboxed worker; what it does is what a stack of trusted Rules layers does.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType

from attrs import define, field
from msgspec import Raw

from envharness_core.data import Action, Blocked, Observation, StepResponse
from envharness_core.errors import RulesError
from envharness_core.hooks import HOOKS, Hooks, unless_same
from envharness_core.jsondata import JsonObject
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.dialect import FILENAME, Rules, Scope

_SMALL = 1024  # bytes of a state, up to which decoding costs nothing to speak of


@define
class Layer:
    """One layer of the run: its code, and what it keeps within an episode."""

    source: p.Source
    code: CodeType
    scope: Scope
    hooks: Hooks
    action: Action = field(factory=lambda: Action(""))
    """What its filter let through in this step."""
    shown: Observation | None = None
    """What it last showed; None where that was what it was given."""


class States:
    """Copies of a state for one layer after the other.

    A large one is decoded again only where a hook has written to it, which is told by encoding it: that is quicker.
    """

    def __init__(self, state: Raw) -> None:
        self._encoded = bytes(state)
        self._last: JsonObject | None = None

    def next(self) -> JsonObject:
        """Return the state as the runner sent it; what the caller writes at its top stays with the caller."""
        if self._last is None or len(self._encoded) <= _SMALL or p.encode(self._last) != self._encoded:
            self._last = p.decode_state(self._encoded)
        return self._last


class Engine:
    """The layers of a run, innermost first.

    Args:
        sources: their code and seeds.
        resumable: whether an end may be masked.
    """

    def __init__(self, sources: Sequence[p.Source], *, resumable: bool) -> None:
        self.at = (0, "source")
        """The layer and the hook that run, or ran last."""
        self.sources = tuple(sources)
        self.layers: list[Layer] = []
        self._resumable = resumable
        self._resumed = False

    def begin(self) -> p.Loaded:
        """Compile and make every layer; say which hooks each defines."""
        for index, source in enumerate(self.sources):
            self.at = (index, "source")
            code = compile(source.code, FILENAME, "exec", dont_inherit=True)
            scope, hooks = self._made(index, code, source.seed)
            self.layers.append(Layer(source, code, scope, hooks))
        return p.Loaded([list(layer.hooks.defined) for layer in self.layers])

    def renew(self) -> None:
        """Make every layer anew, its module and its stream included."""
        for index, layer in enumerate(self.layers):
            layer.scope, layer.hooks = self._made(index, layer.code, layer.source.seed)

    def show(self, shown: Sequence[Observation | None]) -> None:
        """Take what each layer last showed."""
        for layer, observation in zip(self.layers, shown, strict=True):
            layer.shown = observation

    def shown(self) -> list[p.Seen | None]:
        """Return what each layer last showed; None where that was what is inside."""
        return [None if layer.shown is None else p.seen(layer.shown) for layer in self.layers]

    def reset(self, observation: Observation, state: Raw) -> p.Filtered:
        """Filter the first observation."""
        states, given = States(state), observation
        for index, layer in enumerate(self.layers):
            layer.shown = None
            if layer.hooks.filters_observations:
                self.at = (index, "filter_observation")
                shown = layer.hooks.observation(observation, states.next())
                layer.shown = unless_same(observation, shown)
                observation = shown
        changed = self._observed(len(self.layers)) is not None
        return p.Filtered(None if observation == given else p.seen(observation), changed)

    def before(self, action: Action, state: Raw) -> p.Passed | p.Stopped:
        """Filter an action, outermost layer first."""
        states, given = States(state), action
        for index in reversed(range(len(self.layers))):
            layer = self.layers[index]
            if layer.hooks.filters_actions:
                self.at = (index, "filter_action")
                answer = layer.hooks.action(action, states.next())
                if isinstance(answer, Blocked):
                    shown = self._observed(index + 1)
                    return p.Stopped(index, answer.reason, None if shown is None else p.seen(shown))
                action = answer
            layer.action = action
        same = p.encode(action) == p.encode(given)  # True and 1 are equal, and aren't the same
        return p.Passed(None, None) if same else p.Passed(action.name, p.as_text(action.kwargs))

    def after(self, request: p.After) -> p.Reshaped:
        """Reshape a response, innermost layer first."""
        if request.action is not None:
            for layer in self.layers:
                layer.action = request.action
        states, response, changed = States(request.state), request.response, False
        self._resumed = False
        for index in range(request.start, len(self.layers)):
            layer = self.layers[index]
            if layer.hooks.reshapes:
                reshaped = self._reshaped(index, layer, response, states.next())
                layer.shown = unless_same(response.observation, reshaped.observation)
                changed |= layer.shown is not None
                response = reshaped
        given = request.response
        return p.Reshaped(
            None if response.observation is given.observation else p.seen(response.observation),
            response.terminated,
            response.truncated,
            None if response.info is given.info else p.as_text(response.info),
            changed,
            self._resumed,
            sorted(set().union(*(layer.hooks.clamped for layer in self.layers))),
        )

    def _observed(self, count: int) -> Observation | None:
        """Return what the innermost so many layers show; None where that is what is inside of them."""
        return next((layer.shown for layer in reversed(self.layers[:count]) if layer.shown is not None), None)

    def _reshaped(self, index: int, layer: Layer, response: StepResponse, state: JsonObject) -> StepResponse:
        self.at = (index, "modify_transition" if layer.hooks.modifies else "filter_observation")
        layer.scope.response = response
        reshaped = layer.hooks.response(layer.action, response, state, resumable=self._resumable)
        layer.scope.response = None
        if response.ended and not reshaped.ended:
            self._resumed = True
        return reshaped

    def _made(self, index: int, code: CodeType, seed: int) -> tuple[Scope, Hooks]:
        self.at = (index, "source")
        scope = Scope(seed)
        found = scope.run(code)
        if not (isinstance(found, type) and issubclass(found, Rules)):
            raise RulesError("source", "compile", "it must define class _Rules(Rules) with at least one hook")
        self.at = (index, "__init__")
        hooks = Hooks(found())
        if not hooks.defined:
            raise RulesError("source", "compile", f"_Rules defines no hook; hooks: {', '.join(HOOKS)}")
        return scope, hooks
