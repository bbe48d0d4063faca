"""The embedder that asks a service: vectors of whichever model litellm reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import field, frozen, validators

from envharness_core import Embedder
from envharness_core.errors import ConfigError, PluginError
from envharness_core.jsondata import JsonObject
from envharness_llm.asks_model import AsksModel

_MOST = 96  # texts that the client sends in one call
_PROBE = "width"


class VectorModel(Protocol):
    """Makes vectors; the client is one."""

    def embed(self, model: str, texts: Sequence[str]) -> tuple[list[list[float]], JsonObject]:
        """Return a vector for each text, in order, and what they cost.

        Raises:
            ProviderError: the service failed for longer than the operator's patience.
        """


@frozen
class EmbedderConfig:
    """Which model embeds.

    Args:
        model: as litellm names it, such as ``openai/text-embedding-3-small``.
        width: how many numbers its vectors have; a service that answers with another number is refused. None takes
            what the first answer has.
        batch: texts in one call, 1 to 96.
    """

    model: str = field(validator=validators.min_len(1))
    width: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    batch: int = field(default=64, validator=[validators.ge(1), validators.le(_MOST)])


class ModelEmbedder(AsksModel[VectorModel], Embedder[EmbedderConfig]):
    """Asks an embedding model; a blank text, which services refuse, is a vector of zeros and asks nobody.

    Args:
        config: which model.
        service: what answers instead of the client of the session that the embedder is attached to.
    """

    def __init__(self, config: EmbedderConfig, service: VectorModel | None = None) -> None:
        super().__init__(config)
        self.model = config.model
        self._model = service
        self._width = config.width

    @property
    def width(self) -> int:  # type: ignore[override]
        """How many numbers a vector has; where neither the config nor an answer said so, one call asks for it.

        Raises:
            ProviderError: the model couldn't be had.
        """
        return len(self._asked([_PROBE])[0]) if self._width is None else self._width

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        said = [text for text in texts if text.strip()]
        made = [
            vector
            for start in range(0, len(said), self.config.batch)
            for vector in self._asked(said[start : start + self.config.batch])
        ]
        vectors = iter(made)
        return [next(vectors) if text.strip() else [0.0] * self.width for text in texts]

    def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        """Ask once, and learn or check the width."""
        if self._model is None:
            raise PluginError("the embedder has no service yet; attach it to a session, or make it with one")
        vectors, usage = self._model.embed(self.model, texts)
        self._session.charge("embedder", usage)
        if len(vectors) != len(texts):
            raise PluginError(f"{self.model} returned {len(vectors)} vectors for {len(texts)} texts")
        for vector in vectors:
            self._check(len(vector))
        return vectors

    def _check(self, width: int) -> None:
        if self._width is None:
            self._width = width
        if width == self._width:
            return
        if self.config.width is not None:
            raise ConfigError(
                f"embedder.width: {self.model} makes vectors of {width} numbers, not of {self._width}; say {width}, "
                "or leave it out"
            )
        raise PluginError(
            f"{self.model} made vectors of {self._width} numbers and now of {width}: another model answers under its "
            "name, whose vectors can't be compared; name one version of it"
        )
