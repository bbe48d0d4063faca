"""Reading a run: nothing is written to its folder, and a damaged store is said in a line."""

from __future__ import annotations

from pathlib import Path

from envharness_core.store import FILE, Store

from .conftest import Copied, envharness


def contents(folder: Path) -> list[tuple[str, bytes]]:
    return sorted((path.name, path.read_bytes()) for path in folder.iterdir())


def test_a_run_folder_is_read_where_nothing_may_be_written(copied: Copied) -> None:
    run = copied("run")
    before = contents(run)
    (run / FILE).chmod(0o444)
    run.chmod(0o555)
    try:
        assert envharness("report", run).returncode == 0
        assert envharness("verify", run).returncode == 0
    finally:
        run.chmod(0o755)
    assert contents(run) == before


def test_a_damaged_store_is_one_line(copied: Copied) -> None:
    run = copied("run")
    with Store.open(run) as store:
        store._connection.execute("UPDATE tasks SET result = '{}'")
    done = envharness("report", run)
    assert done.returncode == 2
    assert "the store is damaged" in done.stderr
    assert done.stderr.count("\n") == 1
