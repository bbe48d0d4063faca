"""An embedder that needs no network and no key: word vectors of a small model that comes with its package."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from envharness_core import Embedder, NoConfig
from envharness_core.errors import ConfigError
from envharness_core.session import Session

_WIDTH = 256
_MISSING = "embedder llm/offline: wordllama isn't installed; pip install 'envharness-llm[offline]'"


class OfflineEmbedder(Embedder[NoConfig]):
    """Averages the word vectors of WordLlama's ``l2_supercat``; its data comes from the package, never the network."""

    model = "wordllama-l2_supercat-256"
    width = _WIDTH

    def attach(self, session: Session) -> None:
        if find_spec("wordllama") is None:
            raise ConfigError(_MISSING)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        said = [(number, text) for number, text in enumerate(texts) if text.strip()]
        vectors = [[0.0] * _WIDTH for _ in texts]
        if said:  # the model would divide by the number of words
            for (number, _), vector in zip(said, _model().embed([text for _, text in said]), strict=True):
                vectors[number] = [float(value) for value in vector]
        return vectors


@cache
def _model() -> Any:  # its package says nothing of its types
    """Load the model, once a process.

    Raises:
        ConfigError: wordllama, or the data that should come with it, isn't there.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        package = import_module("wordllama")
    except ImportError as error:
        raise ConfigError(_MISSING) from error
    finally:  # importing it sets logging up for the whole program
        root.handlers[:] = handlers
        root.setLevel(level)
    # as a cache, too: it looks for the tokenizer in a folder of another name
    here = Path(str(package.__file__)).parent
    try:
        return package.WordLlama.load(dim=_WIDTH, cache_dir=here, disable_download=True)
    except (FileNotFoundError, ValueError) as error:
        raise ConfigError(
            f"embedder llm/offline: its model isn't in the package wordllama ({error}); install wordllama>=0.4"
        ) from error
