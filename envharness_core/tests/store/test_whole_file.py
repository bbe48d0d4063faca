"""Whole files: what stands there stays until all is written, links are followed, and a run's own files are safe."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from envharness_core.errors import ConfigError
from envharness_core.store import Store
from envharness_core.whole_file import whole_file


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.write(b"half" + "text")  # type: ignore[operator]
    assert path.read_bytes() == b"old"
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208


def test_a_link_is_followed_and_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    with whole_file(pipe) as file:
        file.write(b"through")
    reader.join(timeout=5)
    assert heard == [b"through"]
    assert pipe.is_fifo()


def test_a_runs_own_files_and_folders_are_refused(tmp_path: Path) -> None:
    Store.create(tmp_path / "run", {}).close()
    for name, says in (("run.sqlite", "a run's own file"), ("run.sqlite-wal", "a run's own file")):
        with pytest.raises(ConfigError, match=says), whole_file(tmp_path / "run" / name):
            pass
    with pytest.raises(ConfigError, match="is a folder"), whole_file(tmp_path):
        pass
    with Store.open(tmp_path / "run") as store:
        assert store.meta("store_version") == 1
