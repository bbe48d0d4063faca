"""``envharness doctor``: what holds on this machine, found out by trying, and whether what a bridge needs is there."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import attrs
import click

from envharness_core.cli.options import clean_stdout, component, json_option, plugin_option, print_json
from envharness_core.data import Finding
from envharness_core.env import Bridge
from envharness_core.errors import EnvHarnessError, PluginError, foreign
from envharness_core.found import Found
from envharness_core.jsondata import Json, JsonObject
from envharness_core.kinds import BRIDGE
from envharness_core.plugins import Plugins
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.host import Sandbox
from envharness_core.spec import ComponentSpec
from envharness_core.text import printable


@click.command("doctor")
@click.argument("bridge", required=False)
@plugin_option
@json_option
def command(bridge: str | None, modules: dict[str, str], as_json: bool) -> None:  # noqa: FBT001
    """Say what holds on this machine: each part of the rules sandbox, and what it prevents.

    With BRIDGE, a name or {use = "name", option = value}, say instead what that bridge needs and whether it is there.

    Ends with exit code 1 where rules as source code would be refused, or where something that the bridge needs is
    missing.
    """
    if bridge is not None:
        holds = _examine(component(bridge, "bridge"), Plugins(modules), as_json=as_json)
    else:
        report = _report()
        if as_json:
            print_json(report)
        else:
            _print(report)
        holds = bool(report["locked"])
    if not holds:
        raise click.exceptions.Exit(1)


def _examine(spec: ComponentSpec, plugins: Plugins, *, as_json: bool) -> bool:
    """Print what a bridge needs, and return whether all of it is there."""
    found = plugins.find(BRIDGE, spec.use, "bridge")
    with clean_stdout(as_json):
        findings = _findings(found, spec.config)
    holds = all(finding.holds for finding in findings)
    if as_json:
        rows: list[Json] = [attrs.asdict(finding) for finding in findings]
        print_json({"bridge": found.full_name, "config": spec.config, "holds": holds, "needs": rows})
        return holds
    click.echo(printable(f"bridge {found.full_name} of {found.source}"))
    for finding in findings:
        click.echo(_row(finding))
    if not findings:
        click.echo("needs nothing beyond its package")
    return holds


def _findings(found: Found[Bridge], config: JsonObject) -> Sequence[Finding]:
    """Ask a bridge's class what it needs; that it can't be imported is a finding, too.

    Raises:
        ConfigError: the config isn't allowed.
        PluginError: its ``doctor`` broke.
    """
    try:
        given = found.configure(config, "bridge")
        factory = found.factory()
    except PluginError as error:
        return [Finding("package", holds=False, detail=str(error))]
    if not (isinstance(factory, type) and issubclass(factory, Bridge)):
        return []  # a function makes it, which can't be asked
    with foreign(f"bridge {found.full_name}: doctor"):
        findings = list(factory.doctor(given))
    if not all(isinstance(finding, Finding) for finding in findings):
        raise PluginError(f"bridge {found.full_name}: doctor must return Findings, got {findings!r:.200}")
    return findings


def _row(finding: Finding) -> str:
    told = f"{'ok     ' if finding.holds else 'MISSING'} {finding.part}: {finding.detail}"
    return printable(told).replace("\n", "\n        ")


def _report() -> JsonObject:
    parts: list[tuple[str, bool, str]] = []
    problem = ""
    sandbox = Sandbox(SandboxConfig())
    try:
        parts = sandbox.probe()
        sandbox.require()
    except EnvHarnessError as error:
        problem = str(error)
    finally:
        sandbox.close()
    system = (
        f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}"
    )
    return {
        "system": system,
        "locked": not problem,
        "problem": problem or None,
        "sandbox": [{"part": what, "holds": holds, "detail": detail} for what, holds, detail in parts],
    }


def _print(report: JsonObject) -> None:
    click.echo(report["system"])
    rows: list[dict[str, object]] = report["sandbox"]  # type: ignore[assignment]
    for row in rows:
        click.echo(f"{'ok     ' if row['holds'] else 'MISSING'} {row['part']}: {row['detail']}")
    click.echo(f"rules as source code: {report['problem'] or 'run in the locked sandbox'}")
