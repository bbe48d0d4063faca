"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from envharness_core.errors import ConfigError

_OWN = ("run.sqlite", "lock", "heartbeat")  # how the names of a run folder's own files begin


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its place when all is written; until then an old one stays.

    A link is followed. What isn't a regular file, such as a pipe or a device, is written to and stays what it is.

    Raises:
        ConfigError: nothing can be written there, or a run's own file would be lost.
    """
    target = Path(os.path.realpath(path))
    if target.name.startswith(_OWN) and (target.parent / "run.sqlite").exists():
        raise ConfigError(f"{path}: is a run's own file; name another")
    try:
        if target.is_dir():
            raise ConfigError(f"{path}: is a folder; name a file")
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise ConfigError(f"{path}: can't be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
