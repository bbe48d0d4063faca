"""Engine processes: what they survive, what they share, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.engine.cache import Cache
from envharness_bridge_alfworld.engines import Engines, Setting
from envharness_core import Action
from envharness_core.errors import BridgeError

LOOK = Action("do", {"command": "look"})


@pytest.fixture
def engines() -> Iterator[Engines]:
    made = Engines()
    yield made
    made.close()


def world(engines: Engines, cache: str, **options: object) -> ALFWorld:
    return ALFWorld(ALFWorldConfig(data="generated", cache=cache, **options), engines)  # type: ignore[arg-type]


def start(made: ALFWorld, number: int = 0) -> int:
    """Reset, and return the engine's process id."""
    made.reset(0, {"task": made.list_tasks("train")[number].id})
    assert made.engine is not None
    return made.engine.pid


def test_an_engine_is_used_again_by_the_next_bridge(engines: Engines, cache_folder: str) -> None:
    with world(engines, cache_folder) as one:
        first = start(one)
    with world(engines, cache_folder) as two:
        assert start(two, 1) == first
        with world(engines, cache_folder) as three:  # at the same time it needs one of its own
            assert start(three) != first


def test_an_engine_that_knows_the_game_is_preferred(engines: Engines, cache_folder: str) -> None:
    worlds = [world(engines, cache_folder) for _ in range(3)]
    pids = [start(made, number) for number, made in enumerate(worlds)]
    for made in worlds:
        made.rest()
    assert start(worlds[0], 1) == pids[1]


def test_engines_of_another_kind_are_not_taken(engines: Engines, cache_folder: str) -> None:
    with world(engines, cache_folder) as fast:
        first = start(fast)
    with world(engines, cache_folder, engine="stock") as stock:
        assert start(stock) != first


def test_a_killed_engine_fails_its_episode_and_no_other(engines: Engines, cache_folder: str) -> None:
    with world(engines, cache_folder) as made:
        pid = start(made)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(BridgeError, match=r"its process ended \(SIGKILL\)"):
            made.step(LOOK)
        with pytest.raises(BridgeError):
            made.step(LOOK)
        assert start(made) != pid
        assert made.step(LOOK).info == {"understood": True}


def test_one_that_dies_while_it_is_idle_is_not_handed_out(engines: Engines, cache_folder: str) -> None:
    with world(engines, cache_folder) as made:
        pid = start(made)
        made.rest()
        os.kill(pid, signal.SIGKILL)
        assert start(made) != pid
        made.step(LOOK)


def test_a_slow_answer_is_an_error_and_ends_the_engine(engines: Engines) -> None:
    with (
        world(engines, "off", seconds=0.001) as made,
        pytest.raises(BridgeError, match=r"no answer within 0\.001 seconds"),
    ):
        start(made)


def test_threads_play_side_by_side(engines: Engines, cache_folder: str) -> None:
    told: dict[int, list[str]] = {}

    def play(number: int) -> None:
        with world(engines, cache_folder) as made:
            start(made, number % 2)
            told[number] = [made.step(LOOK).observation.text for _ in range(5)]

    threads = [threading.Thread(target=play, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told[0] == told[2]
    assert told[1] == told[3]
    assert told[0] != told[1]


def test_closing_leaves_no_process(cache_folder: str) -> None:
    engines = Engines()
    pids = []
    for _ in range(2):
        with world(engines, cache_folder) as made:
            pids.append(start(made))
    engines.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_compiled_game_is_kept_for_other_processes(engines: Engines, tmp_path: Path) -> None:
    with world(engines, str(tmp_path / "games")) as made:
        first = made.reset(0, {"task": made.list_tasks("train")[0].id})
    (kept,) = (tmp_path / "games").iterdir()
    engines.close()
    with world(engines, str(tmp_path / "games")) as made:
        assert made.reset(0, {"task": made.list_tasks("train")[0].id}) == first
    written = kept.stat().st_mtime_ns
    assert [*(tmp_path / "games").iterdir()] == [kept]
    assert kept.stat().st_mtime_ns == written


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_compiled_game_counts_as_none(engines: Engines, tmp_path: Path, damage: bytes) -> None:
    with world(engines, str(tmp_path)) as made:
        first = made.reset(0, {"task": made.list_tasks("train")[0].id})
    engines.close()
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(damage)
    with world(engines, str(tmp_path)) as made:
        assert made.reset(0, {"task": made.list_tasks("train")[0].id}) == first
    assert (
        Cache(tmp_path).get(made.games.read(made.games.require(made.list_tasks("train")[0].id)).key)
        is not None
    )


def test_what_is_no_file_counts_as_none(engines: Engines, tmp_path: Path) -> None:
    with world(engines, str(tmp_path)) as made:
        first = made.reset(0, {"task": made.list_tasks("train")[0].id})
    (kept,) = tmp_path.iterdir()
    for put in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")):
        engines.close()
        kept.rmdir() if kept.is_dir() else kept.unlink()
        put(kept)
        with world(engines, str(tmp_path)) as made:
            assert made.reset(0, {"task": made.list_tasks("train")[0].id}) == first


def test_a_forked_process_has_engines_of_its_own(cache_folder: str) -> None:
    with ALFWorld(ALFWorldConfig(data="generated", cache=cache_folder)) as made:
        pid = start(made)
        made.rest()
        child = os.fork()
        if child == 0:
            with ALFWorld(made.config) as other:
                os._exit(1 if start(other) == pid or not other.step(LOOK).info["understood"] else 0)
        assert os.waitpid(child, 0)[1] == 0
        start(made)
        assert made.step(LOOK).info == {"understood": True}


def test_a_cache_that_can_not_be_written_costs_time_alone(engines: Engines, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with world(engines, str(tmp_path / "file" / "games")) as made:
        start(made)
        made.step(LOOK)


def test_stock_and_uncached_engines_keep_nothing() -> None:
    assert ALFWorldConfig(engine="stock", cache="x").setting == Setting("stock", None)
    assert ALFWorldConfig(cache="off").setting == Setting("fast", None)
    assert ALFWorldConfig(cache="x").setting == Setting("fast", "x")


def test_the_usual_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ALFWorldConfig().setting.cache == str(tmp_path / "envharness" / "alfworld")
