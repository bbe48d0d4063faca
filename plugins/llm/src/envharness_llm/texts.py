"""Texts: the prompts of a component, those of the package and those that a config puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from attrs import frozen

from envharness_core.errors import unknown
from envharness_llm.prompts import Template


@frozen
class Texts:
    """Prompts by name.

    Args:
        folder: the folder of the package that holds them, each as ``NAME.md``.
        placeholders: each prompt, and what is filled into it.
        own: those that replace packaged ones.
    """

    folder: str
    placeholders: Mapping[str, tuple[str, ...]]
    own: Mapping[str, str]

    def check(self) -> None:
        """Refuse prompts that there aren't, and placeholders that nothing is filled into.

        Raises:
            ConfigError: names the prompt, and what is allowed.
        """
        for name, text in self.own.items():
            if name not in self.placeholders:
                raise unknown("prompt", name, self.placeholders, where="prompts")
            Template(text).require(self.placeholders[name], f"prompts.{name}")

    def fill(self, name: str, **values: str) -> str:
        """Return a prompt with its values in place."""
        template = Template(self.own[name]) if name in self.own else _packaged(self.folder, name)
        return template.fill(values).strip()


@cache
def _packaged(folder: str, name: str) -> Template:
    return Template((files("envharness_llm") / folder / f"{name}.md").read_text(encoding="utf-8").strip())
