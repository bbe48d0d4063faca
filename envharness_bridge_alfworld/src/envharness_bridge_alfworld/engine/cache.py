"""Compiled games on disk, so that a new process needn't compile them again."""

from __future__ import annotations

import os
import tempfile
import zlib
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import msgspec
from attrs import frozen

from envharness_bridge_alfworld.engine import compiled
from envharness_bridge_alfworld.engine.compiled import CompiledGame

_FORMAT = "1"
_UPSTREAM = ("alfworld", "textworld", "fast-downward-textworld")


@frozen
class Cache:
    """A folder of compiled games, by what they were compiled from and with. A damaged file counts as none.

    Args:
        folder: where; made on first use.
    """

    folder: Path

    def get(self, key: str) -> CompiledGame | None:
        """Return a game, or None where it isn't there."""
        try:
            return compiled.decode(zlib.decompress(self._path(key).read_bytes()))
        except (OSError, zlib.error, msgspec.MsgspecError):
            return None

    def put(self, key: str, game: CompiledGame) -> None:
        """Keep a game; a folder that can't be written to costs time, and nothing else."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(zlib.compress(compiled.encode(game), 1))
                Path(name).replace(self._path(key))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise

    def _path(self, key: str) -> Path:
        made_with = "\0".join([key, _FORMAT, *[version(name) for name in _UPSTREAM]])
        return self.folder / f"{sha256(made_with.encode()).hexdigest()}.game"
