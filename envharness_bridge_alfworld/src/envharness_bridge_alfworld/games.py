"""Where tasks come from: a folder of ALFWorld's own games, or games that are generated."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, cast

from attrs import field, frozen

from envharness_bridge_alfworld.generated import game_json, make_game
from envharness_bridge_alfworld.goals import TASK_TYPES
from envharness_core.data import TaskSummary
from envharness_core.errors import BridgeError, ConfigError, unknown
from envharness_core.jsondata import Json, JsonObject

SPLITS = ("train", "valid_seen", "valid_unseen")
GENERATED = "generated"
"""What stands for generated games where a folder could."""

_GAME, _TRAJECTORY = "game.tw-pddl", "traj_data.json"
_VERSIONED = "json_2.1.1"
"""The folder into which ``alfworld-download`` puts the splits."""
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_TASK = re.compile(r"Your task is to: (.*?)\"", re.DOTALL)
_TAIL = 1 << 14
_SOLVABLE = b'"solvable": true'
_DIGITS = 9


@frozen
class GameFile:
    """The contents of a game's file.

    Args:
        text: the file, JSON text.
        key: a hash of it.
        goal: the task's sentence.
        walkthrough: commands that win it, empty where none are stored.
    """

    text: bytes = field(repr=False)
    key: str
    goal: str
    walkthrough: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, text: bytes, where: str) -> GameFile:
        """Read a game's file.

        Raises:
            BridgeError: it is no game.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            parts: list[str] = [data[part] + "" for part in ("grammar", "pddl_domain", "pddl_problem")]
            found = _TASK.search(parts[0])
            walkthrough = tuple(map(str, data.get("walkthrough") or ()))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BridgeError(f"{where}: no game of ALFWorld's ({error!r}); download it anew") from error
        return cls(text, sha256(text).hexdigest(), found[1].strip() if found else "", walkthrough)


@frozen
class Task:
    """A task: its place among the others, and what its name says of it.

    Args:
        split: ``train``, ``valid_seen`` or ``valid_unseen``.
        name: ``type-Object-Mrecep-Parent-Scene``.
        trial: which of the games of that name.
        kind: the task's type.
    """

    split: str
    name: str
    trial: str
    kind: str

    @property
    def id(self) -> str:
        """The stable id: ``split/name/trial``."""
        return f"{self.split}/{self.name}/{self.trial}"

    def summary(self) -> TaskSummary:
        """Return what a person or a designer reads; it tells no more than the task's own sentence and its room."""
        told = trajectory_data(self.name, self.kind)
        parameters = cast("dict[str, Json]", told["pddl_params"])
        place = parameters["parent_target"] or parameters["toggle_target"]
        text = f"{self.kind}: {parameters['object_target']}, {place}"
        metadata: JsonObject = {"type": self.kind, "scene": cast("Any", told["scene"])["scene_num"]}
        return TaskSummary(self.id, self.split, text, metadata)


class Games(ABC):
    """The tasks that there are."""

    version: str
    """What tells these games from others; part of every episode's identity."""
    told: str
    """Where they come from, for errors."""

    @abstractmethod
    def tasks(self, split: str) -> Iterator[Task]:
        """Yield the tasks of a split, in an order that stays."""

    @abstractmethod
    def find(self, task: str) -> Task | None:
        """Return the task of an id, or None."""

    @abstractmethod
    def read(self, task: Task) -> GameFile:
        """Return a task's game.

        Raises:
            BridgeError: it can't be read.
        """

    def require(self, task: str) -> Task:
        """Return the task of an id.

        Raises:
            ConfigError: there is none; gives the nearest id.
        """
        found = self.find(task)
        if found is None:
            split = task.partition("/")[0]
            if split not in SPLITS:
                raise ConfigError(
                    f"alfworld: unknown task {task!r}: an id begins with its split ({', '.join(SPLITS)}), as "
                    "envharness tasks alfworld lists them"
                )
            raise unknown(
                "task", task, [other.id for other in self.tasks(split)], where=f"alfworld ({self.told})"
            )
        return found


class Folder(Games):
    """The games of a folder as ``alfworld-download`` makes it.

    As upstream does, it leaves out games that aren't solvable, and those with movable receptacles or slicing.

    Args:
        path: the folder, or the one above it.
        types: the task types that are wanted.
    """

    version = _VERSIONED

    def __init__(self, path: Path, types: Sequence[str] = TASK_TYPES) -> None:
        self.path = path / _VERSIONED if (path / _VERSIONED).is_dir() else path
        self.told = str(self.path)
        self._types = frozenset(types)

    def tasks(self, split: str) -> Iterator[Task]:
        return (task for task in self._all(split) if _solvable(self._file(task)))

    def find(self, task: str) -> Task | None:
        parts = task.split("/")
        if len(parts) != 3 or parts[0] not in SPLITS or not all(map(_is_name, parts[1:])):
            return None
        found = self._task(*parts)
        return found if found is not None and _solvable(self._file(found)) else None

    def unreadable(self) -> list[str]:
        """Return the ids of games whose files are there and no games; reads all of them."""
        return [task.id for split in SPLITS for task in self._all(split) if not _is_game(self._file(task))]

    def read(self, task: Task) -> GameFile:
        try:
            return GameFile.of(self._file(task).read_bytes(), task.id)
        except OSError as error:
            raise BridgeError(f"{task.id}: its game can't be read: {error.strerror}") from error

    def _all(self, split: str) -> Iterator[Task]:
        for name in _folders(self.path / split):
            for trial in _folders(self.path / split / name):
                found = self._task(split, name, trial)
                if found is not None and self._file(found).exists():
                    yield found

    def has_trajectory(self, task: Task) -> bool:
        """Whether a task's ``traj_data.json`` is there."""
        return (self.path / task.id / _TRAJECTORY).is_file()

    def _task(self, split: str, name: str, trial: str) -> Task | None:
        if "movable" in name or "Sliced" in name:
            return None
        kind = name.partition("-")[0]
        if kind not in TASK_TYPES or name.count("-") != 4:
            kind = _told_kind(self.path / split / name / trial / _TRAJECTORY)
        return Task(split, name, trial, kind) if kind in self._types else None

    def _file(self, task: Task) -> Path:
        return self.path / task.split / task.name / task.trial / _GAME


class Generated(Games):
    """Games that are made up: as many as are wanted, the same ones for the same seed.

    Args:
        count: how many each split has.
        seed: decides which.
        types: the task types that are wanted.
    """

    def __init__(self, count: int, seed: int, types: Sequence[str] = TASK_TYPES) -> None:
        self.version = f"{GENERATED}-1"
        self.told = "generated games; ALFWORLD_DATA or the bridge's data names a folder of ALFWorld's own"
        self._count = count
        self._seed = seed
        self._types = frozenset(types)

    def tasks(self, split: str) -> Iterator[Task]:
        return islice(
            (task for index in range(self._count * len(TASK_TYPES)) if (task := self._task(split, index))),
            self._count,
        )

    def find(self, task: str) -> Task | None:
        split, _, rest = task.partition("/")
        index = rest.rpartition("_")[2]
        if split not in SPLITS or not (index.isascii() and index.isdigit()) or len(index) > _DIGITS:
            return None
        found = self._task(split, int(index))
        listed = found is not None and self._rank(int(index)) < self._count
        return found if found is not None and listed and found.id == task else None

    def read(self, task: Task) -> GameFile:
        index = int(task.trial.rpartition("_")[2])
        game = make_game(task.split, index, self._seed)
        return GameFile.of(json.dumps(game_json(game, *wheel_texts())).encode(), task.id)

    def _rank(self, index: int) -> int:
        """Return which of the wanted games one is: types follow each other in turn."""
        rounds, place = divmod(index, len(TASK_TYPES))
        wanted = [kind in self._types for kind in TASK_TYPES]
        return rounds * sum(wanted) + sum(wanted[:place])

    def _task(self, split: str, index: int) -> Task | None:
        made = make_game(split, index, self._seed)
        return Task(split, made.name, made.trial, made.kind) if made.kind in self._types else None


def trajectory_data(name: str, kind: str = "") -> JsonObject:
    """Rebuild what a missing ``traj_data.json`` says, from the name of its folder.

    Args:
        name: ``type-Object-Mrecep-Parent-Scene``; what isn't there is ``None``.
        kind: the task's type, where the name doesn't begin with it.
    """
    parts = ["" if part == "None" else part for part in name.split("-")]
    _, thing, receptacle, parent, scene = (parts + [""] * 5)[:5]
    lamp = (kind or parts[0]) == "look_at_obj_in_light"
    return {
        "task_type": kind or parts[0],
        "pddl_params": {
            "object_target": thing.removesuffix("Sliced"),
            "object_sliced": thing.endswith("Sliced"),
            "mrecep_target": receptacle,
            "parent_target": "" if lamp else parent,
            "toggle_target": parent if lamp else "",
        },
        "scene": {"scene_num": int(scene) if scene.isdigit() else 0},
    }


def find_games(data: str | None, types: Sequence[str], count: int, seed: int) -> Games:
    """Return the games that a config means.

    Args:
        data: a folder; ``generated``; or None for ``$ALFWORLD_DATA``, else upstream's usual folder, else generated.
        types: the task types that are wanted; empty for all.
        count: how many generated games a split has.
        seed: decides which.

    Raises:
        ConfigError: the folder that was named holds no games.
    """
    wanted = tuple(types) or TASK_TYPES
    where = data or os.environ.get("ALFWORLD_DATA") or None
    if where == GENERATED:
        return Generated(count, seed, wanted)
    if where is not None:
        return _folder(Path(where).expanduser(), wanted, "data" if data else "ALFWORLD_DATA")
    usual = Path("~/.cache/alfworld").expanduser()
    if (usual / _VERSIONED).is_dir():
        return Folder(usual, wanted)
    return Generated(count, seed, wanted)


def _folder(path: Path, types: Sequence[str], where: str) -> Folder:
    folder = Folder(path, types)
    if not any((folder.path / split).is_dir() for split in SPLITS):
        raise ConfigError(
            f"{where}: {str(path)!r} holds no games: expected folders {', '.join(SPLITS)}, as alfworld-download "
            f'makes them (in {_VERSIONED}); data = "{GENERATED}" plays generated games'
        )
    return folder


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and _is_name(entry.name))
    except OSError:
        return []


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.strip(".") != ""


def _told_kind(path: Path) -> str:
    try:
        return str(json.loads(path.read_bytes())["task_type"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


@lru_cache(maxsize=1 << 14)
def _solvable(path: Path) -> bool:
    """Whether a game is there and can be won, as its file says, near its end."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            if _SOLVABLE in file.read():
                return True
        return json.loads(path.read_bytes()).get("solvable") is True
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def _is_game(path: Path) -> bool:
    try:
        GameFile.of(path.read_bytes(), str(path))
    except (OSError, BridgeError):
        return False
    return True


@lru_cache(maxsize=1)
def wheel_texts() -> tuple[str, str]:
    """Return the domain and the grammar that upstream's wheel carries, importing nothing of it.

    Raises:
        BridgeError: they aren't there.
    """
    spec = find_spec("alfworld")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        folder = Path(place) / "data"
        if (folder / "alfred.pddl").is_file():
            return (folder / "alfred.pddl").read_text(), (folder / "alfred.twl2").read_text()
    raise BridgeError("alfworld isn't installed with its data: pip install 'alfworld>=0.4.2'")
