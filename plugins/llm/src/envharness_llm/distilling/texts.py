"""The extractor's prompts, and what is filled into them."""

from __future__ import annotations

from collections.abc import Mapping

from envharness_llm.texts import Texts

PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "contrast": (),
    "failure": (),
    "pair": (),
    "reshaped": ("layers",),
    "success": (),
    "system": ("count",),
}
"""Each prompt, and what is filled into it."""


def texts_of(own: Mapping[str, str]) -> Texts:
    """Return the extractor's prompts, some of which a config replaces."""
    return Texts("distilling", PLACEHOLDERS, own)
