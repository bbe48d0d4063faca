"""A real model, where there is one, named by two environment variables.

ENVHARNESS_SMOKE_MODEL is its name as litellm has it, such as openai/qwen; ENVHARNESS_SMOKE_BASE its service's base URL,
such as http://localhost:8000/v1, where that isn't the provider's own.
"""

from __future__ import annotations

import os

import pytest

from envharness_core import Plugins, rollout
from envharness_core.jsondata import JsonObject

MODEL = os.environ.get("ENVHARNESS_SMOKE_MODEL", "")
BASE = os.environ.get("ENVHARNESS_SMOKE_BASE")


@pytest.mark.skipif(
    not MODEL, reason="no ENVHARNESS_SMOKE_MODEL is named: this test is for whoever has a model"
)
@pytest.mark.parametrize("way", ["tools", "think_action", "text"])
def test_a_real_model_plays_to_a_verdict(way: str) -> None:
    settings: dict[str, JsonObject] = {"llm": {} if BASE is None else {"api_base": BASE}}
    policy: JsonObject = {"use": "llm", "model": MODEL, "format": way}
    (played,) = rollout("toy24", "1-2-3-4", policy, plugins=Plugins(settings=settings))
    assert played.episode.graded, played.episode.error
    assert played.episode.usage["input_tokens"]
    assert any(step.action is not None for step in played.trajectory.steps)
