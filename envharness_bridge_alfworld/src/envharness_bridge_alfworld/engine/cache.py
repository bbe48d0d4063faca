"""Compiled games on disk, so that a new process needn't compile them again."""

from __future__ import annotations

import os
import stat
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

_FORMAT = "2"
_DIGEST = 32  # bytes
_LARGEST = 64 << 20  # bytes
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
            kept = _contents(self._path(key))
            told, body = kept[:_DIGEST], kept[_DIGEST:]
            if told != sha256(body).digest():
                return None
            return compiled.decode(zlib.decompressobj().decompress(body, _LARGEST))
        except (OSError, zlib.error, msgspec.MsgspecError):
            return None

    def put(self, key: str, game: CompiledGame) -> None:
        """Keep a game; a folder that can't be written to costs time, and nothing else."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                body = zlib.compress(compiled.encode(game), 1)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(sha256(body).digest() + body)
                Path(name).replace(self._path(key))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise

    def _path(self, key: str) -> Path:
        made_with = "\0".join([key, _FORMAT, *[version(name) for name in _UPSTREAM]])
        return self.folder / f"{sha256(made_with.encode()).hexdigest()}.game"


def _contents(path: Path) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: it isn't there, or it is no file, or none of a game's size.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise OSError("no compiled game")
        return file.read()
