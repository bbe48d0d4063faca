"""``envharness config``: what a config means, with every default."""

from __future__ import annotations

from pathlib import Path

import click

from envharness_core.campaigns.world import check_fit, look_at
from envharness_core.cli.options import (
    clean_stdout,
    config_argument,
    find_beside,
    json_option,
    print_json,
    set_option,
)
from envharness_core.config import read_config, resolve
from envharness_core.jsondata import Json
from envharness_core.plugins import Plugins


@click.command("config")
@config_argument
@set_option
@json_option
def command(config_path: Path, overrides: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """Check CONFIG and print it with all defaults and full names."""
    config = read_config(config_path, overrides)
    find_beside(config_path.absolute().parent)
    plugins = Plugins(config.plugins, sandbox=config.sandbox)
    with clean_stdout(as_json):
        config = resolve(config, plugins)
        world = look_at(config, plugins)
        try:
            check_fit(config, plugins, world)
        finally:
            world.bridge.close()
    resolved = config.as_json()
    if as_json:
        print_json(resolved)
        return
    for line in _lines(resolved, ""):
        click.echo(line)


def _lines(value: Json, path: str) -> list[str]:
    if isinstance(value, dict) and value:
        return [
            line for key, inner in value.items() for line in _lines(inner, f"{path}.{key}" if path else key)
        ]
    return [f"{path} = {_toml(value)}"]


def _toml(value: Json) -> str:
    import json

    if value is None:
        return "none"
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)
