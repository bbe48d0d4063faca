"""Noop: changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from envharness_core.component import NoConfig
from envharness_core.designer import Attempt, Candidate, Designer, Diagnosis, Evidence


class Noop(Designer[NoConfig]):
    """Proposes nothing, so that only tasks which are in order as they are remain: the control of any campaign."""

    def diagnose(self, evidence: Evidence) -> Diagnosis:
        return Diagnosis("not looked for", "none", "leave")

    def propose(
        self, evidence: Evidence, diagnosis: Diagnosis, history: Sequence[Attempt]
    ) -> Candidate | None:
        return None
