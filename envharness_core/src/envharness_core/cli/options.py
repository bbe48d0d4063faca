"""Options and output that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from envharness_core.jsondata import Json

if TYPE_CHECKING:
    from envharness_core.store import Store

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="A.B=VALUE", help="Override a key of the config; repeatable."
)
config_argument = click.argument("config_path", metavar="CONFIG", type=click.Path(path_type=Path))
folder_argument = click.argument("folder", metavar="RUN_DIR", type=click.Path(path_type=Path))


def _modules(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    modules = dict(value.partition("=")[::2] for value in values)
    if not all(modules) or not all(modules.values()):
        raise click.BadParameter("expected NAME=MODULE")
    if modules:
        find_beside(Path.cwd())
    return modules


plugin_option = click.option(
    "--plugin",
    "modules",
    multiple=True,
    metavar="NAME=MODULE",
    callback=_modules,
    help="A plugin that isn't installed: an importable module, such as one in this folder; repeatable.",
)


def _sandbox(ctx: click.Context, parameter: click.Parameter, value: str) -> Any:
    from envharness_core.sandbox.config import SandboxConfig

    return SandboxConfig(mode="process" if value == "process" else "locked")


sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(["locked", "process"]),
    default="locked",
    show_default=True,
    callback=_sandbox,
    help="How rules given as source code run; see envharness doctor.",
)


def _settings(ctx: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, Any]:
    import tomllib

    try:
        told = {} if value is None else tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise click.BadParameter(f"not an inline TOML table: {error}") from error
    if not isinstance(told, dict) or not all(isinstance(item, dict) for item in told.values()):
        raise click.BadParameter("expected a table of plugins' settings, as {llm = {in_flight = 4}}")
    return told


settings_option = click.option(
    "--settings",
    metavar="TABLE",
    callback=_settings,
    help="What plugins are told, as '{llm = {api_base = \"http://localhost:8000/v1\"}}'.",
)


def find_beside(folder: Path) -> None:
    """Let modules be imported from a folder, here and in worker processes."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def print_json(value: Json) -> None:
    """Print one JSON value to stdout; what plugins print has gone to stderr (see ``clean_stdout``)."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


@contextmanager
def clean_stdout(wanted: bool) -> Iterator[None]:  # noqa: FBT001 - a flag of the command line's
    """Send what plugins print to stderr while stdout is kept for JSON."""
    with redirect_stdout(sys.stderr) if wanted else nullcontext():
        yield


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """Open a run folder for reading.

    Raises:
        CheckpointError: it is no run folder, or what is in it can't be made sense of.
    """
    from envharness_core.errors import CheckpointError
    from envharness_core.store import DAMAGE, Store

    with Store.open(folder, read_only=True) as store:
        try:
            yield store
        except DAMAGE as error:
            raise CheckpointError(
                f"{folder}: the store is damaged: {type(error).__name__}: {error}"
            ) from error


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


def layer_component(text: str, what: str) -> Any:
    """Read a layer from the command line: a component, or a file of rules that is named as ``*.py``.

    Raises:
        ConfigError: it is neither, or the file can't be read.
    """
    from envharness_core.errors import ConfigError
    from envharness_core.spec import ComponentSpec

    if not text.endswith(".py"):
        if "{" not in text and Path(text).is_file():
            raise ConfigError(f"{what}: {text}: a file of rules must be called something.py")
        return component(text, what)
    try:
        return ComponentSpec("core/rules", {"source": Path(text).read_text(encoding="utf-8-sig")})
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what}: {text}: not UTF-8 ({error.reason}): save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{what}: {text}: {error.strerror or error}") from error
