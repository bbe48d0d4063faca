"""The designer's prompts, and what is filled into them."""

from __future__ import annotations

from collections.abc import Mapping

from envharness_llm.texts import Texts

PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "autonomous": (),
    "band": ("high", "low", "standing"),
    "diagnose": (),
    "layers": ("example", "offers"),
    "propose": ("situation",),
    "review": (),
    "rules": ("modules", "scope"),
    "system": (),
    "weakness": ("weakness",),
}
"""Each prompt, and what is filled into it."""


def texts_of(own: Mapping[str, str]) -> Texts:
    """Return the designer's prompts, some of which a config replaces."""
    return Texts("designing", PLACEHOLDERS, own)
