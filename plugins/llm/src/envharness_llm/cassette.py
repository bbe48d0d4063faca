"""The cassette: records what models answered, by what was asked, and answers from the record.

One SQLite file, to which many processes may write. It holds answers and what they cost, and that a conversation didn't
fit; never a failure of a service, a key, or what was asked.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import cast

import attrs

from envharness_core.converter import structure, unstructure
from envharness_core.errors import AccessError, ConfigError, ContextError
from envharness_core.jsondata import JsonObject, canonical, copy_object, digest
from envharness_core.whole_file import whole_file
from envharness_llm.messages import Answer, Request, Role
from envharness_llm.settings import WHERE, CassetteMode, CassetteSettings

FILE = "calls.sqlite3"
"""The name of a cassette in a run folder."""

_MAGIC = b"SQLite format 3\0"
_OURS, _AT = 0x45484C31, 68  # the application's number, and where the header holds it
_VERSION = 1
_BUSY = 60.0  # seconds that a writer waits for the others
_TABLE = (
    "CREATE TABLE calls (digest TEXT PRIMARY KEY, role TEXT, model TEXT, value BLOB NOT NULL) WITHOUT ROWID"
)

Vectors = tuple[list[list[float]], JsonObject]
"""The vectors of some texts, and what they cost."""


class Cassette:
    """Answers calls from a record; threads may share it.

    Args:
        path: the file, which is made when there is something to record.
        mode: ``auto`` asks and records what isn't known, ``replay`` asks nobody.

    Raises:
        ConfigError: the file is none of this kind, or isn't there to be replayed.
    """

    def __init__(self, path: Path, mode: CassetteMode = "auto") -> None:
        self._path = path
        self._mode = mode
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._look()

    @classmethod
    def of(cls, settings: CassetteSettings, folder: Path | None) -> Cassette | None:
        """Return the cassette that an operator set; None where nothing is to be recorded.

        Raises:
            ConfigError: as the constructor; or there is nothing to replay from.
        """
        if settings.mode == "off":
            return None
        if settings.file is not None:
            return cls(Path(settings.file).expanduser(), settings.mode)
        if folder is not None:
            return cls(folder / FILE, settings.mode)
        if settings.mode == "replay":
            raise ConfigError(
                f"{WHERE}.cassette.file: name the file to replay from, as there is no run folder"
            )
        return None

    def answer(self, request: Request, ask: Callable[[], Answer]) -> Answer:
        """Return the answer to a request as it was recorded, with its usage, or ask and record.

        Raises:
            ContextError: the conversation didn't fit, now or when it was recorded.
            AccessError: nothing is recorded and nobody may be asked, or the file fails.
        """

        def record() -> JsonObject:
            try:
                return {"answer": unstructure(ask())}
            except ContextError as error:
                return {"context": str(error)}

        asked = copy_object({"request": attrs.asdict(request)})
        what = f"call {request.number} of seed {request.seed}"
        value = self._recall(asked, request.role, request.params.model, what, record)
        if "context" in value:
            raise ContextError(str(value["context"]))
        with self._readable():
            return structure(value["answer"], Answer, "answer")

    def vectors(self, model: str, texts: Sequence[str], role: Role, ask: Callable[[], Vectors]) -> Vectors:
        """Return the vectors of some texts as they were recorded, with their usage, or ask and record.

        Raises:
            AccessError: nothing is recorded and nobody may be asked, or the file fails.
        """

        def record() -> JsonObject:
            vectors, usage = ask()
            return copy_object({"vectors": vectors, "usage": usage})

        asked = copy_object({"embed": {"model": model, "texts": list(texts), "role": role}})
        value = self._recall(asked, role, model, f"{len(texts)} texts to embed", record)
        with self._readable():
            return cast("list[list[float]]", value["vectors"]), copy_object(value["usage"])

    def copy(self, target: Path) -> None:
        """Write the record to another file, whole and for keeps; nothing is lost that others are writing.

        Raises:
            ConfigError: nothing can be written there.
            AccessError: the file fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / FILE
            with self._connected() as connection:
                connection.execute("VACUUM INTO ?", (str(whole),))
            with whole_file(target) as file:
                file.write(whole.read_bytes())

    def close(self) -> None:
        """Let go of the file, in which all is then in one piece; a later call opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None or self._process != os.getpid():
                return
            with closing(connection), suppress(sqlite3.Error):  # what others still read stays beside it
                if self._mode != "replay":
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def __del__(self) -> None:
        with suppress(Exception):  # whose owner has no end of its own, or is only half made
            self.close()

    def _recall(
        self, asked: JsonObject, role: Role, model: str, what: str, record: Callable[[], JsonObject]
    ) -> JsonObject:
        key = digest(asked)
        known = self._find(key)
        if known is not None:
            return known
        if self._mode == "replay":
            raise AccessError(
                f"{self._path}: no answer is recorded for the {role}'s {what}, asked of {model}; replay with the "
                f'config, versions and prompts of the recording, or set {WHERE}.cassette.mode = "auto" to ask for it'
            )
        value = record()
        packed = zlib.compress(canonical(value))
        with self._connected() as connection:
            # What was first recorded stays: another process may have asked the same at the same time.
            connection.execute("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?)", (key, role, model, packed))
        return self._find(key) or value

    def _find(self, key: str) -> JsonObject | None:
        if self._connection is None and not self._path.exists():
            return None
        with self._connected() as connection:
            row = connection.execute("SELECT value FROM calls WHERE digest = ?", (key,)).fetchone()
        if row is None:
            return None
        with self._readable():
            return copy_object(json.loads(zlib.decompress(row[0])))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Hold the connection, opened when it is first needed, and once more in a process that was forked."""
        with self._lock:
            try:
                if self._connection is None or self._process != os.getpid():
                    self._connection = self._open()
                    self._process = os.getpid()
                yield self._connection
            except sqlite3.OperationalError as error:
                raise AccessError(f"{self._path}: the record of calls can't be used: {error}") from error
            except (sqlite3.DatabaseError, OSError) as error:
                raise self._damaged(error) from error

    def _open(self) -> sqlite3.Connection:
        if self._mode == "replay":
            # A record among files that may not be written can't have the company that SQLite wants for reading it.
            alone = "" if os.access(self._path.absolute().parent, os.W_OK) else "&immutable=1"
            return _connect(f"{self._path.absolute().as_uri()}?mode=ro{alone}")
        if not self._path.exists():
            _make(self._path)
        connection = _connect(self._path.absolute().as_uri())
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (zlib.error, ValueError, LookupError, TypeError, ConfigError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> AccessError:
        return AccessError(
            f"{self._path}: the record of calls is damaged ({error}); move it away to ask anew, or bring a copy back"
        )

    def _look(self) -> None:
        """Refuse a file of another kind by its head; nothing is opened or made yet."""
        try:
            with self._path.open("rb") as file:
                head = file.read(_AT + 4)
        except FileNotFoundError:
            if self._mode == "replay":
                raise ConfigError(
                    f"{WHERE}.cassette.file: there is no {self._path} to replay from; name the record"
                ) from None
            return
        except OSError as error:
            raise ConfigError(f"{WHERE}.cassette: {self._path}: can't be read: {error.strerror}") from error
        if not head.startswith(_MAGIC) or head[_AT:] != _OURS.to_bytes(4, "big"):
            raise ConfigError(
                f"{WHERE}.cassette: {self._path} isn't a record of calls, or is damaged; move it away, or name another"
            )


def _connect(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, timeout=_BUSY, isolation_level=None, check_same_thread=False, uri=True)


def _make(path: Path) -> None:
    """Make an empty record that appears whole, whoever else does the same at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        with closing(_connect(draft.as_uri())) as connection:
            connection.execute(f"PRAGMA application_id = {_OURS}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute(_TABLE)
            connection.execute("PRAGMA journal_mode = WAL")
        draft.chmod(0o600)  # answers may hold what a benchmark's licence keeps from others
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
