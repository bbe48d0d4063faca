"""Scripted: proposes what its config lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import field, frozen, validators

from envharness_core.designer import Attempt, Candidate, Designer, Diagnosis, Evidence
from envharness_core.errors import ConfigError, EnvHarnessError
from envharness_core.spec import ComponentSpec


@frozen
class ScriptedConfig:
    """The candidates to propose, in order; each is a list of layers, innermost first."""

    candidates: tuple[tuple[ComponentSpec, ...], ...] = field(validator=validators.min_len(1))


class Scripted(Designer[ScriptedConfig]):
    """Proposes the same list of candidates for each task: for tests, and for layers chosen by hand."""

    def check(self, build: Callable[[Sequence[ComponentSpec]], None]) -> None:
        for index, layers in enumerate(self.config.candidates):
            try:
                build(layers)
            except EnvHarnessError as error:
                raise ConfigError(f"designer.candidates[{index}]: {error}") from error

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        return Diagnosis("not looked for", "none", "harden")

    def propose(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]
    ) -> Candidate | None:
        if len(history) >= len(self.config.candidates):
            return None
        return Candidate(self.config.candidates[len(history)], "from the script")
