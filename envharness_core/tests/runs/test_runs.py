"""Run folders: listed as they are, pruned only of what may go, merged only where that is one run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from envharness_core import Plugins, campaign
from envharness_core.campaigns.merge import merge_runs
from envharness_core.campaigns.replay import replay_run
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.export import export_lines
from envharness_core.folders import find_runs, prune_trajectories, remove_run
from envharness_core.jsondata import JsonObject
from envharness_core.store import FILE, Store, locked
from envharness_core.verify import verify_run

from .conftest import CONFIG, Copied, envharness


def aged(folder: Path, days: float) -> None:
    then = time.time() - 86_400 * days
    os.utime(folder / FILE, (then, then))


def test_runs_are_found_at_and_below(complete: Path, copied: Copied, tmp_path: Path) -> None:
    copied("a/one")
    copied("two")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / FILE).write_text("no database at all, and long enough to be one" * 20)
    rows = json.loads(envharness("runs", tmp_path, tmp_path / "two", "--json").stdout)
    assert [Path(row["folder"]).name for row in rows] == ["one", "damaged", "two"]
    one, damaged, two = rows
    with Store.open(complete, read_only=True) as store:
        summary: Any = store.meta("summary")
    assert one["config"] == {
        "bridge": "core/toy24",
        "policy": "core/solver",
        "objective": "core/success_band",
        "designer": "core/scripted",
    }
    assert (one["state"], one["tasks"], one["designed"], one["pruned"]) == ("complete", 4, 4, False)
    assert one["accepted"] == summary["accepted"]
    assert one["episodes"] == sum(summary["rollouts"].values())
    assert one["size"] == two["size"] == sum(path.stat().st_size for path in complete.iterdir())
    assert (damaged["state"], damaged["config"]) == ("damaged", {})
    assert "not a store" in damaged["problem"]
    told = envharness("runs", tmp_path)
    assert "3 runs" in told.stdout
    assert "success_band" in told.stdout
    assert "damaged/run.sqlite: not a store" in told.stderr


def test_pruned_trajectories_are_gone_and_results_stay(copied: Copied) -> None:
    folder = copied("run")
    with Store.open(folder) as store:
        before = (list(store.episodes()), store.results(), store.meta("summary"))
    (run,) = find_runs([folder])
    freed = prune_trajectories(run)
    (after,) = find_runs([folder])
    assert after.pruned
    assert freed == run.size - after.size > run.size / 4
    with Store.open(folder, read_only=True) as store:
        assert (list(store.episodes()), store.results(), store.meta("summary")) == before
        lines = [json.loads(line) for line in export_lines(store) if isinstance(line, bytes)]
        assert [line["steps"] for line in lines] == [None] * len(before[0])
        with pytest.raises(CheckpointError, match="was pruned"):
            store.trajectory(before[0][0])
        with pytest.raises(CheckpointError, match="were pruned"):
            verify_run(store, Plugins())
        with pytest.raises(CheckpointError, match="were pruned"):
            replay_run(store, Plugins())
    assert campaign(CONFIG, folder) == before[2]


def test_an_unfinished_run_keeps_its_trajectories(copied: Copied) -> None:
    folder = copied("run")
    with Store.open(folder) as store:
        store.set_meta("summary", None)
    (run,) = find_runs([folder])
    with pytest.raises(ConfigError, match="a run needs its trajectories until it is complete"):
        prune_trajectories(run)


def test_only_what_runs_make_is_removed(copied: Copied) -> None:
    folder = copied("run")
    (folder / "chapter.txt").write_text("dear to somebody")
    (run,) = find_runs([folder])
    with pytest.raises(ConfigError, match=r"it holds what no run makes: chapter\.txt"):
        remove_run(run)
    assert (folder / FILE).exists()
    (folder / "chapter.txt").unlink()
    with locked(folder), pytest.raises(ConfigError, match="another process"):
        remove_run(run)
    beat = {"pid": 1, "host": "else" + socket.gethostname(), "time": time.time(), "progress": {}}
    (folder / "heartbeat.json").write_text(json.dumps(beat))
    (running,) = find_runs([folder])
    with pytest.raises(ConfigError, match="it is running"):
        remove_run(running)
    assert remove_run(run) == run.size
    assert not folder.exists()


def test_prune_asks_and_takes_the_chosen_only(copied: Copied, tmp_path: Path) -> None:
    for name, days in (("try-1", 10), ("try-2", 1), ("dear", 10)):
        aged(copied(name), days)
    chosen: list[str | Path] = [
        "runs",
        "prune",
        tmp_path,
        "--older-than",
        "1w",
        "--match",
        "try-*",
        "--folders",
    ]
    dry = envharness(*chosen, "--dry-run")
    assert dry.returncode == 0
    assert f"would delete {tmp_path / 'try-1'}: complete" in dry.stdout
    assert "try-2" not in dry.stdout
    assert "dear" not in dry.stdout
    refused = envharness(*chosen, said="n\n")
    assert refused.returncode != 0
    assert {path.name for path in tmp_path.iterdir()} == {"try-1", "try-2", "dear"}
    done = envharness(*chosen, said="y\n")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"try-2", "dear"}
    pruned = envharness("runs", "prune", tmp_path, "--match", "dear", "--yes")
    assert "1 runs" in pruned.stdout
    assert [run.pruned for run in find_runs([tmp_path])] == [True, False]
    assert "0 runs" in envharness("runs", "prune", tmp_path, "--match", "dear", "--yes").stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["prune", "."], "say which runs, with --older-than, --match or both"),
        (["prune", ".", "--older-than", "long"], "expected a number and d, h, m or w"),
        (["nowhere"], "nowhere: there is no such folder"),
        (["merge", "nowhere", "--into", "x"], "name at least two run folders"),
        (["merge", "nowhere", "nothing", "--into", "x"], "nowhere: not a run folder"),
    ],
)
def test_bad_arguments_are_told(args: list[str], words: str) -> None:
    done = envharness("runs", *args)
    assert done.returncode == 2
    assert words in done.stderr


def half(ids: tuple[str, ...], folder: Path, **changes: Any) -> Path:
    selection: JsonObject = {"split": "train", "ids": list(ids)}
    campaign({**CONFIG, "tasks": selection, **changes}, folder)
    return folder


@pytest.fixture(scope="module")
def ids() -> list[str]:
    from envharness_core.toy24.bridge import Toy24

    return [task.id for task in Toy24(None).list_tasks("train", 5)]


@pytest.fixture(scope="module")
def halves(ids: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("halves")
    return half(tuple(ids[:2]), folder / "a"), half(tuple(ids[2:4]), folder / "b")


def test_halves_make_a_whole(halves: tuple[Path, Path], ids: list[str], tmp_path: Path) -> None:
    whole = half(tuple(ids[:4]), tmp_path / "whole")
    told = json.loads(envharness("runs", "merge", *halves, "--into", tmp_path / "merged", "--json").stdout)
    with (
        Store.open(whole, read_only=True) as one,
        Store.open(tmp_path / "merged", read_only=True) as other,
    ):
        assert other.results() == one.results()  # this designer learns nothing from earlier tasks
        expected, found = ({e.key: e.verdict for e in store.episodes()} for store in (one, other))
        assert found == expected
        summary: Any = one.meta("summary")
        assert {**told, "seconds": 0} == {**summary, "seconds": 0}
        assert verify_run(other, Plugins()).agreed == len(found)
        assert replay_run(other, Plugins()).same
    played: list[object] = []
    again = campaign({**CONFIG, "tasks": {"ids": ids[:4]}}, tmp_path / "merged", listener=played.append)  # type: ignore[dict-item]
    assert (again, played) == (told, [])


def test_a_merged_run_is_replayed_part_by_part(ids: list[str], tmp_path: Path) -> None:
    changes: dict[str, Any] = {"designer": "catalog", "campaign": {"wave": 1, "attempts": 3}}
    parts = [half(tuple(ids[i : i + 2]), tmp_path / str(i), **changes) for i in (0, 2)]
    merge_runs(parts, tmp_path / "merged")
    merge_runs([tmp_path / "merged", half((ids[4],), tmp_path / "4", **changes)], tmp_path / "more")
    for name, count in (("merged", 4), ("more", 5)):
        with Store.open(tmp_path / name, read_only=True) as store:
            replay = replay_run(store, Plugins())
        assert (replay.same, len(replay.tasks)) == (True, count)


def refused(folders: list[Path], into: Path, words: str) -> None:
    before = sorted(into.parent.iterdir())
    with pytest.raises(ConfigError) as caught:
        merge_runs(folders, into)
    assert words in str(caught.value)
    assert sorted(into.parent.iterdir()) == before


def test_what_isn_t_one_run_is_refused(halves: tuple[Path, Path], ids: list[str], tmp_path: Path) -> None:
    first, second = halves
    refused([first, first], tmp_path / "into", f"has tasks that another has too: {ids[0]}, {ids[1]}")
    other = half((ids[4],), tmp_path / "other", policy={"use": "solver", "skill": 0.9}, seed=4)
    refused([first, other], tmp_path / "into", f"\n  policy.skill: 0.7 (in {other} 0.9)")
    refused([first, other], tmp_path / "into", f"\n  seed: 3 (in {other} 4)")
    copy = Path(shutil.copytree(second, tmp_path / "copy"))
    with Store.open(copy) as store:
        versions: Any = store.meta("versions")
        store.set_meta("versions", {**versions, "core": "envharness-core 0.0.1"})
    refused([first, copy], tmp_path / "into", "\n  versions.core: ")
    with Store.open(copy) as store:
        store.set_meta("versions", versions)
        store.prune_trajectories()
    refused([first, copy], tmp_path / "into", "its trajectories were pruned")
    with Store.open(copy) as store:
        store.set_meta("summary", None)
    refused([first, copy], tmp_path / "into", "not complete; go on with it first")
    refused([first, second], tmp_path / "copy", "exists; name a new folder")


def test_a_pruned_run_isn_t_gone_on_with(copied: Copied) -> None:
    folder = copied("run")
    with Store.open(folder) as store:
        store.prune_trajectories()
        store.set_meta("summary", None)
    with pytest.raises(ConfigError, match="nothing more can be designed in it"):
        campaign(CONFIG, folder)
