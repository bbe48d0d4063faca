"""The kinds of components, as typed keys for lookups in ``Plugins``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envharness_core.component import Kind

if TYPE_CHECKING:
    from envharness_core.designer import Designer
    from envharness_core.env import Bridge, Env
    from envharness_core.executor import Executor
    from envharness_core.objective import Objective
    from envharness_core.policy import Policy
    from envharness_core.skills.embedder import Embedder
    from envharness_core.skills.extractor import Extractor

BRIDGE: Kind[Bridge] = Kind("bridge", "envharness_bridges")
LAYER: Kind[Env] = Kind("layer", "envharness_layers")
OBJECTIVE: Kind[Objective] = Kind("objective", "envharness_objectives")
DESIGNER: Kind[Designer] = Kind("designer", "envharness_designers")
POLICY: Kind[Policy] = Kind("policy", "envharness_policies")
EXECUTOR: Kind[Executor] = Kind("executor", "envharness_executors")
EXTRACTOR: Kind[Extractor] = Kind("extractor", "envharness_extractors")
EMBEDDER: Kind[Embedder] = Kind("embedder", "envharness_embedders")

KINDS: tuple[Kind[object], ...] = (BRIDGE, LAYER, OBJECTIVE, DESIGNER, POLICY, EXECUTOR, EXTRACTOR, EMBEDDER)
"""Every kind, in the order in which they are listed."""
