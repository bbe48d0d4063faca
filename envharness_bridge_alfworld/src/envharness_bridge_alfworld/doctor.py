"""What ALFWorld needs on this machine, found out by trying."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.engines import Engine
from envharness_bridge_alfworld.games import SPLITS, Folder, Games, Generated, find_games
from envharness_core.data import Finding
from envharness_core.errors import EnvHarnessError

_PACKAGES = ("alfworld", "textworld", "fast-downward-textworld")
_HOW = (
    "alfworld-download (in the alfworld package) fetches the games, some 3,500 of them; then set ALFWORLD_DATA, or "
    "the bridge's data, to their folder"
)


def examine(config: ALFWorldConfig) -> Iterator[Finding]:
    """Yield what was found of packages, games, an engine that plays one, and the folder of compiled games."""
    yield _packages()
    games: Games | None = None
    try:
        games = find_games(config.data, config.types, config.generated, config.generated_seed)
        yield _games(games)
    except EnvHarnessError as error:
        yield Finding("games", holds=False, detail=f"{error}. {_HOW}")
    yield _tried("engine", lambda: _played(config, games or Generated(1, 0)))
    if config.setting.cache is not None:
        yield _cache(Path(config.setting.cache))


def _packages() -> Finding:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding(
            "packages",
            holds=False,
            detail=f"{', '.join(missing)} isn't installed: pip install envharness-bridge-alfworld (g++ and make are "
            "needed: two packages are compiled)",
        )
    return Finding("packages", holds=True, detail=", ".join(found))


def _games(games: Games) -> Finding:
    counts = {split: sum(1 for _ in games.tasks(split)) for split in SPLITS}
    told = ", ".join(f"{split} {count}" for split, count in counts.items())
    if not isinstance(games, Folder):
        return Finding("games", holds=True, detail=f"generated ones: {told}. For ALFWorld's own: {_HOW}")
    torn = games.unreadable()
    if torn:
        told = (
            f"{games.path}: {told}, and {len(torn)} that can't be read, such as {torn[0]}: download them anew"
        )
        return Finding("games", holds=False, detail=told)
    if not any(counts.values()):
        return Finding("games", holds=False, detail=f"{games.path} has none that can be played. {_HOW}")
    rebuilt = sum(not games.has_trajectory(task) for split in SPLITS for task in games.tasks(split))
    without = f"; {rebuilt} without traj_data.json, which their names stand in for" if rebuilt else ""
    return Finding("games", holds=True, detail=f"{games.path}: {told}{without}")


def _played(config: ALFWorldConfig, games: Games) -> str:
    task = next(task for split in SPLITS for task in games.tasks(split))
    file = games.read(task)
    engine = Engine(config.setting, config.seconds)
    try:
        shown = engine.begin(file.key, file.text, config.seconds)
        for command in file.walkthrough:
            shown = engine.do(command, config.seconds)
    finally:
        engine.close()
    if not file.walkthrough:
        return f"{config.setting.kind}: began {task.id}, with which no walkthrough is stored"
    if not shown.won:
        raise EnvHarnessError(f"the stored walkthrough doesn't win {task.id}")
    return f"{config.setting.kind}: won {task.id} by its walkthrough"


def _tried(part: str, call: Callable[[], str]) -> Finding:
    try:
        return Finding(part, holds=True, detail=call())
    except (EnvHarnessError, StopIteration, OSError) as error:
        return Finding(part, holds=False, detail=str(error) or "there is no game to try it with")


def _cache(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        told = f"{folder} can't be written to ({error.strerror}): every process compiles each game anew"
        return Finding("compiled games", holds=False, detail=told)
    kept = [_size(path) for path in folder.glob("*.game")]
    return Finding("compiled games", holds=True, detail=f"{folder}: {len(kept)} kept, {sum(kept) >> 10} KiB")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone meanwhile, or a link to nowhere
        return 0
