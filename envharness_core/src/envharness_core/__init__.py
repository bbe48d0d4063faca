"""EnvHarness: frozen agent benchmarks under stackable plug-in layers.

Importing this loads nothing; each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envharness_core.api import campaign, compare, evaluate, report_html, rollout, stack
    from envharness_core.clock import waiting
    from envharness_core.component import Component, NoConfig
    from envharness_core.data import (
        Action,
        Blocked,
        Capabilities,
        EnvState,
        Finding,
        Observation,
        ResetResponse,
        StepResponse,
        TaskSummary,
        Verdict,
    )
    from envharness_core.designer import Attempt, Candidate, Designer, Diagnosis, Evidence, Offer
    from envharness_core.env import Bridge, Env
    from envharness_core.episode import Episode, EpisodeSpec, Limits, Record
    from envharness_core.executor import Executor
    from envharness_core.hookspecs import hookimpl
    from envharness_core.layer import Layer
    from envharness_core.layers.rules import Rules
    from envharness_core.objective import Decision, Judgement, Objective
    from envharness_core.outcome import Outcome
    from envharness_core.plugins import Plugins
    from envharness_core.policy import Policy, Reply
    from envharness_core.sandbox.config import SandboxConfig
    from envharness_core.skills.embedder import Embedder
    from envharness_core.skills.extractor import Experience, Extractor
    from envharness_core.skills.skill import Skill
    from envharness_core.spec import ComponentSpec
    from envharness_core.stacks import Stack
    from envharness_core.tools import Tool
    from envharness_core.trajectory import Rollout, Trajectory

__version__ = "0.1.0"

_HOMES = {
    "Action": "data",
    "Attempt": "designer",
    "Blocked": "data",
    "Bridge": "env",
    "Candidate": "designer",
    "Capabilities": "data",
    "Component": "component",
    "ComponentSpec": "spec",
    "Decision": "objective",
    "Designer": "designer",
    "Diagnosis": "designer",
    "Embedder": "skills.embedder",
    "Env": "env",
    "EnvState": "data",
    "Episode": "episode",
    "EpisodeSpec": "episode",
    "Evidence": "designer",
    "Executor": "executor",
    "Experience": "skills.extractor",
    "Extractor": "skills.extractor",
    "Finding": "data",
    "Judgement": "objective",
    "Layer": "layer",
    "Limits": "episode",
    "NoConfig": "component",
    "Objective": "objective",
    "Observation": "data",
    "Offer": "designer",
    "Outcome": "outcome",
    "Plugins": "plugins",
    "Policy": "policy",
    "Record": "episode",
    "Reply": "policy",
    "ResetResponse": "data",
    "Rollout": "trajectory",
    "Rules": "layers.rules",
    "SandboxConfig": "sandbox.config",
    "Skill": "skills.skill",
    "Stack": "stacks",
    "StepResponse": "data",
    "TaskSummary": "data",
    "Tool": "tools",
    "Trajectory": "trajectory",
    "Verdict": "data",
    "campaign": "api",
    "compare": "api",
    "evaluate": "api",
    "hookimpl": "hookspecs",
    "report_html": "api",
    "rollout": "api",
    "stack": "api",
    "waiting": "clock",
}

__all__ = [
    "Action",
    "Attempt",
    "Blocked",
    "Bridge",
    "Candidate",
    "Capabilities",
    "Component",
    "ComponentSpec",
    "Decision",
    "Designer",
    "Diagnosis",
    "Embedder",
    "Env",
    "EnvState",
    "Episode",
    "EpisodeSpec",
    "Evidence",
    "Executor",
    "Experience",
    "Extractor",
    "Finding",
    "Judgement",
    "Layer",
    "Limits",
    "NoConfig",
    "Objective",
    "Observation",
    "Offer",
    "Outcome",
    "Plugins",
    "Policy",
    "Record",
    "Reply",
    "ResetResponse",
    "Rollout",
    "Rules",
    "SandboxConfig",
    "Skill",
    "Stack",
    "StepResponse",
    "TaskSummary",
    "Tool",
    "Trajectory",
    "Verdict",
    "__version__",
    "campaign",
    "compare",
    "evaluate",
    "hookimpl",
    "report_html",
    "rollout",
    "stack",
    "waiting",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
