"""Language models for EnvHarness, through litellm: policy, designer, skill extractor, embedders."""

from __future__ import annotations

from collections.abc import Iterable

from envharness_core import Component, Designer, Policy, hookimpl


@hookimpl
def envharness_policies() -> Iterable[Component[Policy]]:
    """Yield the policy that asks a model."""
    yield Component(
        "llm", "envharness_llm.policy:ModelPolicy", "envharness_llm.policy:PolicyConfig", "asks a language model"
    )


@hookimpl
def envharness_designers() -> Iterable[Component[Designer]]:
    """Yield the designer that asks a model."""
    yield Component(
        "llm",
        "envharness_llm.designer:ModelDesigner",
        "envharness_llm.designer:DesignerConfig",
        "has a language model diagnose and write layers",
    )
