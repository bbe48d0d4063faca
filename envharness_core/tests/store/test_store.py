"""The store: what was put is there, what isn't a store is refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.store import FILE, Store, locked
from envharness_core.trajectory import read_trajectory


def spec(index: int, stream: str = "baseline") -> EpisodeSpec:
    design = Design(
        ComponentSpec("core/toy24"),
        "toy24 1",
        "3-3-8-8",
        (ComponentSpec("core/faults", {"rate": 0.5}),),
        ComponentSpec("core/solver"),
        Limits(),
    )
    return EpisodeSpec(design, stream, index, Seeds.of(1, "3-3-8-8", stream, index, seed_in_task=True))


def test_an_episode_comes_back_as_it_was_put(tmp_path: Path) -> None:
    with Store.create(tmp_path / "run", {"config": {"a": 1}}) as store, Player(Plugins()) as player:
        records = [player.play(spec(index)) for index in range(5)]
        for index, record in enumerate(records):
            store.put(spec(index), record)
    with Store.open(tmp_path / "run") as store:
        assert store.meta("config") == {"a": 1}
        assert [store.get(record.episode.key) for record in records] == [record.episode for record in records]
        assert store.get("0" * 32) is None
        assert list(store.episodes()) == [record.episode for record in records]
        assert store.trajectory(records[2].episode) == read_trajectory(records[2].blob)
        assert store.counts() == [("baseline", "completed", 5)]
        wins, n = store.rates("baseline")["3-3-8-8"]
        assert (wins, n) == (sum(record.episode.success for record in records), 5)


def test_identity_tells_designs_streams_and_indices_apart() -> None:
    keys = {spec(0).key, spec(1).key, spec(0, "attempt 0").key}
    assert len(keys) == 3
    assert spec(0).key == spec(0).key


@pytest.mark.parametrize("content", ["", "no database at all, and long enough to be read as one" * 10])
def test_what_is_no_store_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(CheckpointError, match="not a store"):
        Store.open(tmp_path)


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a run folder"):
        Store.open(tmp_path)
    with pytest.raises(CheckpointError, match="not a run folder"):
        Store.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    Store.create(tmp_path, {}).close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'store_version'")
    connection.close()
    with pytest.raises(CheckpointError, match="upgrade envharness-core"):
        Store.open(tmp_path)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear to somebody")
    with pytest.raises(ConfigError, match="not empty"):
        Store.create(tmp_path, {})
    with pytest.raises(ConfigError, match="a file stands there"):
        Store.create(tmp_path / "thesis.txt", {})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(ConfigError, match="another process is running in this folder"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass
