"""Embedders: turn texts into vectors whose angles say how much the texts have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic

from envharness_core.component import ConfigT
from envharness_core.session import Attachable


class Embedder(Attachable, ABC, Generic[ConfigT]):
    """Embeds texts. Vectors of two embedders are compared only where both ``model`` and ``width`` are the same.

    The smallest one::

        class CountsLetters(Embedder):
            model = "letters"
            width = 26

            def embed(self, texts):
                letters = "abcdefghijklmnopqrstuvwxyz"
                return [[float(text.lower().count(letter)) for letter in letters] for text in texts]
    """

    model: str
    """Which model makes the vectors; stored beside them."""
    width: int
    """How many numbers a vector has; where only the model knows, a property that asks it once."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text, in order; their length as vectors doesn't matter.

        Raises:
            ProviderError: a model that it needs couldn't be had.
        """
