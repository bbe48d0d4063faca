"""Logging, which only the command line configures: warnings on stderr, and everything in a run's own log."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from envharness_core.jsondata import Json
from envharness_core.redaction import redact
from envharness_core.store import Store

LOG = "log.jsonl"
_Event = MutableMapping[str, Any]


def configure_logging(folder: Path | None = None) -> None:
    """Send the library's warnings to stderr and, with a run folder, all that it says to ``log.jsonl`` in there.

    Secrets are redacted in both. The file is begun when the folder holds a run, and an entry is a JSON object a line:
    ``time`` (UTC), ``level``, ``run``, ``event``, and ``task``, ``candidate`` and ``episode`` where it is about one.
    """
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _redacted,
            *([RunLog(folder)] if folder is not None else []),
            _warnings_only,
            structlog.processors.TimeStamper(fmt="%H:%M:%S"),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


class RunLog:
    """A step of structlog's that writes each entry to a run's log and hands it on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broken = False

    def __call__(self, logger: object, method: str, event: _Event) -> _Event:
        if not self._broken and Store.exists(self._folder):
            self._write(event)
        return event

    def _write(self, event: _Event) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        facts = {key: value for key, value in event.items() if key not in ("level", "event")}
        entry = {
            "time": now,
            "level": event.get("level"),
            "run": self._folder.name,
            "event": event.get("event"),
            **facts,
        }
        try:
            with (self._folder / LOG).open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(entry)}\n")
        except OSError as error:  # a full disk: the run has more important things to fail at
            self._broken = True
            print(f"envharness: {self._folder / LOG}: {error.strerror}", file=sys.stderr)  # noqa: T201


def _redacted(logger: object, method: str, event: _Event) -> _Event:
    plain: Json = json.loads(json.dumps(dict(event), default=str))
    told = redact(plain)
    assert isinstance(told, dict)
    return told


def _warnings_only(logger: object, method: str, event: _Event) -> _Event:
    if event["level"] in ("debug", "info"):
        raise structlog.DropEvent
    return event
