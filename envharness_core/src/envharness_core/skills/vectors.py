"""Embeddings of texts: vectors with the model that made them, stored beside skills and compared by their angle."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from operator import mul

from attrs import frozen

from envharness_core.errors import PluginError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.skills.embedder import Embedder

_BATCH = 128
"""Texts in one call of an embedder."""
_DIGITS = 6
"""Significant digits that are kept: finer than any model's own, and a third of a file's size."""


@frozen
class Embedding:
    """A text's direction: a vector of length 1, or of zeros where the text says nothing to the model.

    Args:
        model: which model made it.
        vector: as many numbers as the model is wide.
    """

    model: str
    vector: tuple[float, ...]

    @property
    def width(self) -> int:
        """How many numbers it has."""
        return len(self.vector)

    def is_of(self, embedder: Embedder) -> bool:
        """Say whether it may be compared with what an embedder makes."""
        return self.model == embedder.model and self.width == embedder.width

    def cosine(self, other: Embedding) -> float:
        """Return the cosine of the angle to an embedding of the same model and width, in [-1, 1].

        Raises:
            ValueError: it is of another.
        """
        if (self.model, self.width) != (other.model, other.width):
            raise ValueError(
                f"{self.model} ({self.width}) and {other.model} ({other.width}) can't be compared"
            )
        product: float = sum(map(mul, self.vector, other.vector))
        return max(-1.0, min(1.0, product))

    def as_json(self) -> JsonObject:
        """Return the embedding as plain data."""
        return {"model": self.model, "width": self.width, "vector": list(self.vector)}


def embed(embedder: Embedder, texts: Sequence[str]) -> list[Embedding]:
    """Return the texts' embeddings, in order.

    Raises:
        PluginError: the embedder returned something else than as many vectors of its width.
    """
    made: list[Embedding] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        vectors = embedder.embed(batch)
        if len(vectors) != len(batch):
            raise PluginError(f"embedder {embedder.model}: {len(vectors)} vectors for {len(batch)} texts")
        made += [direction(embedder.model, vector, embedder.width) for vector in vectors]
    return made


def read_embedding(data: Json) -> Embedding:
    """Make an embedding of plain data.

    Raises:
        ValueError: it isn't one; says why.
    """
    if not isinstance(data, dict) or set(data) != {"model", "width", "vector"}:
        raise ValueError("expected null, or an object with model, width and vector")
    model, width, vector = data["model"], data["width"], data["vector"]
    if not isinstance(model, str) or type(width) is not int or not isinstance(vector, list):
        raise ValueError("expected a text as model, an integer as width and a list as vector")
    numbers = [float(number) for number in vector if type(number) in (int, float)]  # type: ignore[arg-type]
    if len(numbers) != len(vector):
        raise ValueError("a vector holds numbers only")
    try:
        return direction(model, numbers, width)
    except PluginError as error:
        raise ValueError(str(error)) from error


def direction(model: str, vector: Sequence[float], width: int) -> Embedding:
    """Return a vector as an embedding of length 1.

    Raises:
        PluginError: it hasn't the width, or holds a number that isn't finite.
    """
    if len(vector) != width or not all(map(isfinite, vector)):
        raise PluginError(f"embedder {model}: expected {width} finite numbers, got {len(vector)}")
    largest = max(map(abs, vector), default=0.0)
    if not largest:
        return Embedding(model, (0.0,) * width)
    scaled = [number / largest for number in vector]  # neither too large nor too small to be squared
    length = sqrt(sum(map(mul, scaled, scaled)))
    return Embedding(model, tuple([float(f"{number / length:.{_DIGITS}g}") for number in scaled]))
