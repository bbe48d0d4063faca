"""Language models for EnvHarness, through litellm: policy, designer, skill extractor, embedders."""

from __future__ import annotations

from collections.abc import Iterable

from envharness_core import Component, Designer, Embedder, Extractor, Policy, hookimpl


@hookimpl
def envharness_policies() -> Iterable[Component[Policy]]:
    """Yield the policy that asks a model."""
    yield Component(
        "llm",
        "envharness_llm.policy:ModelPolicy",
        "envharness_llm.policy:PolicyConfig",
        "asks a language model",
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


@hookimpl
def envharness_extractors() -> Iterable[Component[Extractor]]:
    """Yield the extractor that asks a model."""
    yield Component(
        "reasoningbank",
        "envharness_llm.reasoningbank:ReasoningBank",
        "envharness_llm.reasoningbank:ReasoningBankConfig",
        "has a language model distil skills from successes, failures and their contrast",
    )


@hookimpl
def envharness_embedders() -> Iterable[Component[Embedder]]:
    """Yield the embedder that asks a service, and the small one that comes with its package."""
    yield Component(
        "embedder",
        "envharness_llm.embedder:ModelEmbedder",
        "envharness_llm.embedder:EmbedderConfig",
        "asks an embedding model",
    )
    yield Component(
        "offline",
        "envharness_llm.offline:OfflineEmbedder",
        None,
        "a small model that comes with its package and needs no network",
        "pip install 'envharness-llm[offline]'",
    )
