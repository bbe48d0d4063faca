"""``envharness check``: the contract's checks, without pytest."""

from __future__ import annotations

import click

from envharness_core.cli.logs import configure_logging
from envharness_core.cli.options import (
    clean_stdout,
    json_option,
    layer_component,
    plugin_option,
    print_json,
    sandbox_option,
)
from envharness_core.contract import CheckResult, check_bridge, check_layer
from envharness_core.errors import ConfigError, foreign, unknown
from envharness_core.kinds import BRIDGE, LAYER
from envharness_core.plugins import Plugins, short_name
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.spec import ComponentSpec


@click.command("check")
@click.argument("name")
@click.option("--text", "texts", multiple=True, help="For a bridge: what a text argument may be; repeatable.")
@sandbox_option
@plugin_option
@json_option
def command(
    name: str,
    texts: tuple[str, ...],
    sandbox: SandboxConfig,
    modules: dict[str, str],
    as_json: bool,  # noqa: FBT001
) -> None:
    """Check NAME, a bridge or a layer, against the contract.

    It is a name, {use = "name", option = value}, or a file of rules (rules.py).

    Ends with exit code 1 where a check fails.
    """
    configure_logging()
    plugins = Plugins(modules, sandbox=sandbox)
    spec = layer_component(name, "component")

    def heard(result: CheckResult) -> None:
        if not as_json:
            click.echo(_line(result))

    with clean_stdout(as_json), foreign(spec.use):
        if _is(plugins, spec, "layer"):
            results = check_layer(plugins, spec, heard=heard)
        else:
            results = check_bridge(plugins, spec, texts=texts, heard=heard)
    failed = sum(not result.passed for result in results)
    if as_json:
        print_json(
            {
                "component": spec.as_json(),
                "failed": failed,
                "checks": [result.as_json() for result in results],
            }
        )
    else:
        click.echo(f"{len(results) - failed} passed, {failed} failed")
    if failed:
        raise click.exceptions.Exit(1)


def _is(plugins: Plugins, spec: ComponentSpec, wanted: str) -> bool:
    """Say whether a spec names the wanted kind, layer or bridge; refuse what names neither."""
    known: list[str] = []
    for kind in (LAYER, BRIDGE):
        try:
            plugins.find(kind, spec.use).configure(spec.config, kind.name)
        except ConfigError:
            full = [found.full_name for found in plugins.components(kind)]
            names = [short_name(name) for name in full]
            if spec.use in (*names, *full):
                raise
            known += names
        else:
            return kind.name == wanted
    raise unknown("bridge or layer", spec.use, known)


def _line(result: CheckResult) -> str:
    mark = "ok    " if result.passed else "FAILED"
    tail = f": {result.detail}" if result.detail else ""
    return f"{mark} {result.name}{tail}"
