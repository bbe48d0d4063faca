"""The ``envharness`` command: finds the subcommand and imports only what it needs."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import click

_COMMANDS = {
    "check": "Check a component against the contract.",
    "compare": "Compare what evaluations found.",
    "config": "Print a config with everything resolved.",
    "designer": "Show what a designer is told of a task.",
    "doctor": "Say what holds on this machine, or what a bridge needs.",
    "eval": "Score a policy with and without skills on held-out tasks.",
    "export": "Write a run's episodes, or its accepted stacks, to a file.",
    "play": "Play a task yourself, under any layers.",
    "plugins": "List what is installed.",
    "replay": "Make a run's decisions again from its stored episodes.",
    "report": "Print what a run found.",
    "rollout": "Play a task a few times.",
    "run": "Run a campaign, or go on with it.",
    "runs": "List, prune or merge run folders.",
    "skills": "List or search a bank of skills.",
    "status": "Show how far a run is.",
    "tasks": "List a bridge's tasks.",
    "verify": "Replay a run's episodes on bare bridges.",
}

USAGE = 2
"""The exit code for bad input: nothing was written."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"envharness_core.cli.{name}_command").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="envharness-core", prog_name="envharness")
def cli() -> None:
    """Reshape frozen agent benchmarks with plug-in layers, and prove what they do."""


def main() -> None:
    """Run the command line; errors of the user's are one line and exit code 2."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup's choice stands
            signal.signal(number, _interrupt)
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, as in `... | head`
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the border of the command line
        sys.exit(_failed(error))


def _interrupt(number: int, frame: object) -> None:
    """End as Ctrl-C does: workers are stopped and the store is closed."""
    raise KeyboardInterrupt


def _failed(error: Exception) -> int:
    from envharness_core.errors import ConfigError, EnvHarnessError, PluginError
    from envharness_core.text import printable

    if type(error).__module__ == "sqlite3":
        click.echo(f"envharness: the store can't be used: {error}; what had ended is kept", err=True)
        return 1
    if isinstance(error, OSError):  # a full disk, a place that can't be read
        click.echo(f"envharness: {error}", err=True)
        return 1
    if not isinstance(error, EnvHarnessError):
        raise error
    click.echo(f"envharness: {printable(str(error))}", err=True)
    return USAGE if isinstance(error, ConfigError | PluginError) else 1


if __name__ == "__main__":
    main()
