"""``envharness doctor``: what holds on this machine, found out by trying."""

from __future__ import annotations

import platform

import click

from envharness_core.cli.options import json_option, print_json
from envharness_core.errors import EnvHarnessError
from envharness_core.jsondata import JsonObject
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.host import Sandbox


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:  # noqa: FBT001
    """Say what holds on this machine: each part of the rules sandbox, and what it prevents.

    Ends with exit code 1 where rules as source code would be refused.
    """
    report = _report()
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report["locked"]:
        raise click.exceptions.Exit(1)


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
