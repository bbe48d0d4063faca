"""Options and output that several commands share."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from envharness_core.jsondata import Json

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="A.B=VALUE", help="Override a key of the config; repeatable."
)
config_argument = click.argument("config_path", metavar="CONFIG", type=click.Path(path_type=Path))
folder_argument = click.argument("folder", metavar="RUN_DIR", type=click.Path(path_type=Path))


def print_json(value: Json) -> None:
    """Print one JSON value to stdout, and nothing else ever goes there beside it."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def component(text: str, what: str) -> Any:
    """Read a component from the command line: a name, or a JSON object or inline TOML table with ``use``.

    Raises:
        ConfigError: it is neither.
    """
    import tomllib

    from envharness_core.converter import structure
    from envharness_core.errors import ConfigError
    from envharness_core.spec import ComponentSpec

    if not text.startswith("{"):
        return ComponentSpec(text)
    try:
        return structure(tomllib.loads(f"value = {text}")["value"], ComponentSpec, what)
    except tomllib.TOMLDecodeError:
        pass
    try:
        return structure(json.loads(text), ComponentSpec, what)
    except ValueError as error:
        raise ConfigError(f"{what}: neither a name, an inline TOML table nor JSON: {error}") from error


def configure_logging() -> None:
    """Send the library's log lines to stderr; only the command line ever configures logging."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S"),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
