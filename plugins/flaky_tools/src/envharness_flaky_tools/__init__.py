"""Tools that fail now and then, so that the agent learns to retry."""

from collections.abc import Iterable

from attrs import field, frozen, validators

from envharness_core import Action, Component, Env, Layer, StepResponse, hookimpl


@frozen
class Config:
    """How often a tool fails: ``rate``, the chance that a step does, in [0, 1]."""

    rate: float = field(default=0.2, validator=[validators.ge(0), validators.le(1)])


class FlakyTools(Layer[Config]):
    """Lets a step fail by chance; the world is untouched, so trying again helps."""

    def step(self, action: Action) -> StepResponse:
        if self.random.random() < self.config.rate:
            return self.transient_error("tool timed out, try again")
        return self.inner.step(action)


@hookimpl
def envharness_layers() -> Iterable[Component[Env]]:
    """Yield the layer."""
    yield Component(name="flaky_tools", factory=FlakyTools, config=Config)
