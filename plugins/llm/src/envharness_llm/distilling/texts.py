"""The extractor's prompts: the packaged ones, and those that a config puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from attrs import frozen

from envharness_core.errors import unknown
from envharness_llm.prompts import Template

PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "contrast": (),
    "failure": (),
    "pair": (),
    "reshaped": ("layers",),
    "success": (),
    "system": ("count",),
}
"""Each prompt, and what is filled into it."""


@frozen
class Texts:
    """The prompts of an extractor; ``own`` are those that replace packaged ones, by name."""

    own: Mapping[str, str]

    def fill(self, name: str, **values: str) -> str:
        """Return a prompt with its values in place."""
        template = Template(self.own[name]) if name in self.own else _packaged(name)
        return template.fill(values).strip()


def check_texts(own: Mapping[str, str]) -> None:
    """Refuse prompts that there aren't, and placeholders that nothing is filled into.

    Raises:
        ConfigError: names the prompt, and what is allowed.
    """
    for name, text in own.items():
        if name not in PLACEHOLDERS:
            raise unknown("prompt", name, PLACEHOLDERS, where="prompts")
        Template(text).require(PLACEHOLDERS[name], f"prompts.{name}")


@cache
def _packaged(name: str) -> Template:
    folder = files("envharness_llm") / "distilling"
    return Template((folder / f"{name}.md").read_text(encoding="utf-8").strip())
