"""``envharness plugins``: what is installed, and what is broken."""

from __future__ import annotations

import click
from rich.table import Table

from envharness_core.cli.options import clean_stdout, json_option, plugin_option, print_json
from envharness_core.cli.tables import console
from envharness_core.plugins import Plugins, short_name


@click.command("plugins")
@plugin_option
@json_option
def command(modules: dict[str, str], as_json: bool) -> None:  # noqa: FBT001
    """List the installed plugins and their components."""
    with clean_stdout(as_json):
        rows = Plugins(modules).listing()
    if as_json:
        print_json([row.as_json() for row in rows])
        return
    out = console()
    for row in rows:
        out.print(f"{row.source.name}  {row.source.distribution} {row.source.version}", style="bold")
        if row.error:
            out.print(f"  broken: {row.error}", style="red")
            continue
        table = Table(box=None, show_header=False, padding=(0, 2))
        for found in row.components:
            table.add_row(found.kind.name, short_name(found.full_name), found.summary)
        out.print(table)
