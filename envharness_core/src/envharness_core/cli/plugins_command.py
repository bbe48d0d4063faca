"""``envharness plugins``: what is installed, and what is broken."""

from __future__ import annotations

import click
from rich.table import Table

from envharness_core.cli.options import json_option, print_json
from envharness_core.cli.tables import console
from envharness_core.plugins import Plugins, short_name


@click.command("plugins")
@json_option
def command(as_json: bool) -> None:  # noqa: FBT001
    """List the installed plugins and their components."""
    rows = Plugins().listing()
    if as_json:
        print_json([row.as_json() for row in rows])
        return
    out = console()
    for row in rows:
        out.print(
            f"[bold]{row.source.name}[/bold]  {row.source.distribution} {row.source.version}", highlight=False
        )
        if row.error:
            out.print(f"  broken: {row.error}", style="red", markup=False, highlight=False)
            continue
        table = Table(box=None, show_header=False, padding=(0, 2))
        for found in row.components:
            table.add_row(found.kind.name, short_name(found.full_name), found.summary)
        out.print(table)
