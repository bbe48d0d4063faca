"""A scripted model that plays, reshapes and learns from Toy24: the brain of a ``ModelServer`` for a whole pipeline.

    python -m envharness_core.testing.model_server --brain envharness_core.testing.toy24_model:brain

It knows nothing but the request: it tells its role from the tools that it is offered, reads its prompts as text, and
takes its chance from the request's seed. Equal requests have equal answers. It has the manners of real models: it talks
beside its calls, calls twice in one reply, and sometimes answers what can't be used.
"""

from __future__ import annotations

from envharness_core.jsondata import JsonObject
from envharness_core.testing.model_said import Said
from envharness_core.testing.toy24_designs import design
from envharness_core.testing.toy24_lessons import lessons
from envharness_core.testing.toy24_player import play
from envharness_core.testing.toy24_request import Asked


def brain(body: JsonObject) -> Said:
    """Answer a chat request as whoever its tools make it: designer, extractor or policy."""
    asked = Asked.of(body)
    if {"diagnose", "propose", "review"} & asked.tools:
        return design(asked)
    if "remember" in asked.tools:
        return lessons(asked)
    if "combine" in asked.tools:
        return play(asked)
    return Said("I can play Toy24, design its layers, and say what its rollouts teach; this is none of it.")
