"""The store: one SQLite file a run, with one writer."""

from __future__ import annotations

import fcntl
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal, cast

from envharness_core.account import add_usage, rounded
from envharness_core.episode import Episode, EpisodeSpec, Record
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.jsondata import Json, JsonObject
from envharness_core.rows import COLUMNS, Row, read_episode, read_row
from envharness_core.trajectory import Trajectory, compressed, read_trajectory

STORE_VERSION = 1
FILE = "run.sqlite"
LOCK = "lock"
DRAFT = f".{FILE}.new"
DAMAGE = (sqlite3.Error, KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What reading a damaged store may raise, beside a ``CheckpointError``."""

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE designs (key TEXT PRIMARY KEY, design TEXT NOT NULL);
CREATE TABLE episodes (
    key TEXT PRIMARY KEY, design TEXT NOT NULL, task TEXT NOT NULL, stream TEXT NOT NULL, idx INTEGER NOT NULL,
    env_seed INTEGER NOT NULL, layer_seed INTEGER NOT NULL, policy_seed INTEGER NOT NULL,
    outcome TEXT NOT NULL, success INTEGER CHECK (success IN (0, 1)), score REAL, metrics TEXT, steps INTEGER NOT NULL,
    seconds REAL NOT NULL, usage TEXT NOT NULL, error TEXT NOT NULL, trajectory BLOB NOT NULL
);
CREATE TABLE tasks (task TEXT PRIMARY KEY, position INTEGER NOT NULL, result TEXT NOT NULL);
"""


class Store:
    """Episodes, designs and results of a run. What has been put is committed when the call returns."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._connection = connection
        self._thread = threading.get_ident()
        self._designs: set[str] = set()

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Make a run folder, or see that one may be made of it.

        Raises:
            ConfigError: it holds something else, a file stands there, or nothing may be written.
        """
        try:
            if folder.exists() and not folder.is_dir():
                raise ConfigError(f"{folder}: a file stands there; name a folder")
            if not cls.exists(folder) and folder.exists() and any(map(_is_foreign, folder.iterdir())):
                raise ConfigError(f"{folder}: not a run folder, and not empty; name a new folder")
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{folder}: can't be written: {error}") from error

    @classmethod
    def create(cls, folder: Path, meta: JsonObject) -> Store:
        """Make a store in a folder that was prepared.

        Args:
            folder: the run folder.
            meta: what the run is, such as its config; see ``meta``.

        Raises:
            ConfigError: nothing may be written there.
        """
        cls.prepare(folder)
        try:
            _draft(folder, {"store_version": STORE_VERSION, **meta})
        except (OSError, sqlite3.OperationalError) as error:
            raise ConfigError(f"{folder}: can't be written: {error}") from error
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> Store:
        """Open the store of a run folder.

        Args:
            folder: the run folder.
            read_only: for reading alone, also where nothing may be written.

        Raises:
            CheckpointError: it isn't a run folder, or is from a newer version.
        """
        path = folder / FILE
        if not path.is_file():
            raise CheckpointError(f"{folder}: not a run folder (there is no {FILE} in it)")
        connection = _connected(path, read_only=read_only)
        try:
            if not read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            store = cls(folder, connection)
            version = store.meta("store_version")
        except (sqlite3.DatabaseError, ValueError) as error:
            connection.close()
            raise CheckpointError(
                f"{path}: not a store of this program, or not to be used: {error}"
            ) from error
        if version != STORE_VERSION:
            connection.close()
            raise CheckpointError(
                f"{folder}: written by another version (store {version}, this one reads {STORE_VERSION}); "
                "upgrade envharness-core"
            )
        return store

    @staticmethod
    def exists(folder: Path) -> bool:
        """Say whether a folder holds a run."""
        try:
            return (folder / FILE).is_file()
        except OSError:  # such as a name that is too long: making it will say so
            return False

    def close(self) -> None:
        """Close the file; idempotent."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self, name: str) -> Json:
        """Return a fact about the run: ``config``, ``versions``, ``summary`` (once it is complete); None if unknown."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else cast("Json", json.loads(row[0]))

    def require_campaign(self) -> None:
        """Refuse what isn't a campaign's.

        Raises:
            CheckpointError: says what reads it.
        """
        if self.meta("kind") is not None:
            raise CheckpointError(
                f"{self.folder}: an evaluation, not a campaign; `envharness compare {self.folder}` shows it"
            )

    def set_meta(self, name: str, value: Json) -> None:
        """Write a fact about the run."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value)))

    def put(self, spec: EpisodeSpec, record: Record) -> None:
        """Keep a played episode."""
        episode, design, seeds = record.episode, spec.design, spec.seeds
        if design.key not in self._designs:
            row = (design.key, json.dumps(design.as_json()))
            self._connection.execute("INSERT OR IGNORE INTO designs VALUES (?, ?)", row)
            self._designs.add(design.key)
        verdict = episode.verdict
        self._connection.execute(
            f"INSERT OR REPLACE INTO episodes VALUES ({', '.join('?' * 17)})",
            (
                episode.key,
                design.key,
                episode.task,
                episode.stream,
                episode.index,
                seeds.env,
                seeds.layers,
                seeds.policy,
                str(episode.outcome),
                None if verdict is None else int(verdict.success),
                None if verdict is None else verdict.score,
                None if verdict is None else json.dumps(verdict.metrics),
                episode.steps,
                episode.seconds,
                json.dumps(episode.usage),
                episode.error,
                compressed(record.blob),
            ),
        )

    def get(self, key: str) -> Episode | None:
        """Return a kept episode, or None."""
        query = f"SELECT {COLUMNS} FROM episodes WHERE key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else read_episode(row)

    def record(self, key: str) -> Record | None:
        """Return a kept episode with its trajectory, still encoded; None where there is none."""
        episode = self.get(key)
        row = self._connection.execute("SELECT trajectory FROM episodes WHERE key = ?", (key,)).fetchone()
        return None if episode is None or row is None else Record(episode, row[0])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Hold a connection for reading: this thread's own, since one that threads share isn't to be relied on."""
        if threading.get_ident() == self._thread:
            yield self._connection
            return
        with closing(_connected(self.folder / FILE, read_only=True)) as connection:
            yield connection

    def trajectory(self, episode: Episode) -> Trajectory:
        """Return an episode's trajectory; also from another thread than the one that opened the store.

        Raises:
            CheckpointError: it isn't there, or is damaged.
        """
        with self._reading() as connection:
            row = connection.execute(
                "SELECT trajectory FROM episodes WHERE key = ?", (episode.key,)
            ).fetchone()
        if row is None:
            raise CheckpointError(f"{self.folder}: there is no episode {episode.key}")
        if not row[0]:
            raise CheckpointError(f"{self.folder}: episode {episode.key}: its trajectory was pruned")
        try:
            return read_trajectory(row[0])
        except ValueError as error:
            raise CheckpointError(f"{self.folder}: episode {episode.key}: {error}") from error

    def episodes(self) -> Iterator[Episode]:
        """Yield all episodes, by task, stream and index."""
        query = f"SELECT {COLUMNS} FROM episodes ORDER BY task, stream, idx, key"
        for row in self._connection.execute(query):
            yield read_episode(row)

    def places(self, order: Literal["design", "task"] = "design") -> list[int]:
        """Return where each episode is kept, design by design, or by task, stream and index; see ``recorded``."""
        by = "design, rowid" if order == "design" else "task, stream, idx, key"
        return [place for (place,) in self._connection.execute(f"SELECT rowid FROM episodes ORDER BY {by}")]

    def recorded(self, places: Iterable[int] | None = None) -> Iterator[Row]:
        """Yield episodes, each with its design, its seeds and its encoded trajectory; one at a time is in memory.

        Args:
            places: which ones, as ``places`` returns them; None for all, design by design.
        """
        columns = ", ".join(f"e.{column.strip()}" for column in COLUMNS.split(","))
        query = (
            f"SELECT {columns}, e.env_seed, e.layer_seed, e.policy_seed, e.trajectory, e.design, d.design "
            "FROM episodes e LEFT JOIN designs d ON d.key = e.design WHERE e.rowid = ?"
        )
        for place in self.places() if places is None else places:
            for row in self._connection.execute(
                query, (place,)
            ):  # one, or none where it was just written anew
                yield read_row(row)

    def counts(self) -> list[tuple[str, str, int]]:
        """Return how many episodes there are for each stream and outcome."""
        query = "SELECT stream, outcome, count(*) FROM episodes GROUP BY stream, outcome ORDER BY 1, 2"
        return list(self._connection.execute(query))

    def ungraded(self) -> int:
        """Return how many episodes carry no verdict."""
        query = "SELECT count(*) FROM episodes WHERE success IS NULL"
        return int(self._connection.execute(query).fetchone()[0])

    def designs(self) -> Iterator[JsonObject]:
        """Yield every design that was played."""
        for (design,) in self._connection.execute("SELECT design FROM designs"):
            yield json.loads(design)

    def prune_trajectories(self) -> None:
        """Forget what happened within episodes; their outcomes and verdicts stay."""
        self._connection.execute("BEGIN")
        self._connection.execute("UPDATE episodes SET trajectory = x''")
        self.set_meta("pruned", True)  # noqa: FBT003 - a fact
        self._connection.execute("COMMIT")
        self._connection.execute("VACUUM")

    def absorb(self, other: Store, position: int) -> None:
        """Take in all that another store holds of other tasks, whose places in the run begin at ``position``."""
        self._connection.execute("BEGIN")
        for table in ("designs", "episodes"):
            for row in other._connection.execute(f"SELECT * FROM {table}"):
                self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        for place, result in enumerate(other.results(), position):
            self.put_result(str(result["task"]), place, result)
        self._connection.execute("COMMIT")

    def usage(self) -> JsonObject:
        """Return what the episodes used of models, summed up, and as ``episodes`` how many used any."""
        total: dict[str, float] = {}
        query = "SELECT usage FROM episodes WHERE usage != '{}'"
        for (usage,) in self._connection.execute(query):
            add_usage(total, {**json.loads(usage), "episodes": 1})
        return rounded(total)

    def excluded(self) -> dict[str, int]:
        """Return how many episodes without a verdict there are of each outcome."""
        query = (
            "SELECT outcome, count(*) FROM episodes WHERE success IS NULL GROUP BY outcome ORDER BY outcome"
        )
        return dict(self._connection.execute(query).fetchall())

    def rates(self, stream: str) -> dict[str, tuple[int, int]]:
        """Return successes and graded rollouts of each task in a stream."""
        query = (
            "SELECT task, sum(success), count(success) FROM episodes WHERE stream = ? "
            "AND success IS NOT NULL GROUP BY task"
        )
        return {task: (wins, n) for task, wins, n in self._connection.execute(query, (stream,))}

    def rates_by_layer_seed(self, stream: str) -> list[tuple[str, int, int]]:
        """Return task, successes and graded rollouts for each layer seed of a stream."""
        query = (
            "SELECT task, sum(success), count(success) FROM episodes WHERE stream = ? "
            "AND success IS NOT NULL GROUP BY task, layer_seed ORDER BY task, layer_seed"
        )
        return list(self._connection.execute(query, (stream,)))

    def put_result(self, task: str, position: int, result: JsonObject) -> None:
        """Keep what became of a task; ``position`` is its place in the run."""
        self._connection.execute(
            "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)", (task, position, json.dumps(result))
        )

    def results(self) -> list[JsonObject]:
        """Return what became of each finished task, in the run's order."""
        rows = self._connection.execute("SELECT result FROM tasks ORDER BY position")
        return [json.loads(result) for (result,) in rows]


def _is_foreign(entry: Path) -> bool:
    return not entry.name.startswith((LOCK, DRAFT))


def _draft(folder: Path, meta: JsonObject) -> None:
    """Make a store beside its place and move it there: a folder that has one has a complete one."""
    draft = folder / DRAFT
    draft.unlink(missing_ok=True)
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.executescript(_SCHEMA)
        for name, value in meta.items():
            connection.execute("INSERT INTO meta VALUES (?, ?)", (name, json.dumps(value)))
    finally:
        connection.close()
    draft.replace(folder / FILE)


def _connected(path: Path, *, read_only: bool) -> sqlite3.Connection:
    try:
        if not read_only:
            return sqlite3.connect(path, isolation_level=None, timeout=30.0)
        waiting = path.with_name(f"{path.name}-wal").exists()
        how = "mode=ro" if waiting else "mode=ro&immutable=1"  # the latter needs no right to write beside it
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}",
            uri=True,
            isolation_level=None,
            timeout=30.0,
        )
    except sqlite3.OperationalError as error:
        raise CheckpointError(f"{path}: can't be opened: {error}") from error


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a run folder for one writer; with ``wait``, once another one has let go of it.

    Raises:
        ConfigError: another process holds it, or nothing may be written there.
    """
    try:
        file = (folder / LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder}: can't be written: {error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(f"{folder}: another process is running in this folder") from error
        yield
