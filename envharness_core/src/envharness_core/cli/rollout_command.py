"""``envharness rollout``: a task, played a few times."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from envharness_core.api import rollout
from envharness_core.cli.logs import configure_logging
from envharness_core.cli.options import (
    clean_stdout,
    component,
    json_option,
    layer_component,
    plugin_option,
    print_json,
    sandbox_option,
    settings_option,
)
from envharness_core.episode import Limits, graded, wins
from envharness_core.jsondata import JsonObject
from envharness_core.plugins import Plugins
from envharness_core.posterior import wilson_interval
from envharness_core.reshaped import is_reshaped
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.text import printable
from envharness_core.trajectory import Rollout


@click.command("rollout")
@click.argument("bridge")
@click.argument("task")
@click.option("--policy", required=True, help='A name, or {use = "name", option = value}.')
@click.option(
    "--layer",
    "layers",
    multiple=True,
    help="A layer, likewise, or a file such as rules.py; repeatable, innermost first.",
)
@click.option(
    "-n", "--count", "count", type=click.IntRange(min=1), default=1, show_default=True, help="How often."
)
@click.option("--seed", type=click.IntRange(min=0, max=2**63 - 1), default=0, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=50, show_default=True, help="Step limit.")
@click.option("--executor", default="inline", show_default=True)
@sandbox_option
@plugin_option
@settings_option
@click.option("--show", is_flag=True, help="Print what happened, step by step.")
@json_option
def command(
    bridge: str,
    task: str,
    policy: str,
    layers: tuple[str, ...],
    count: int,
    seed: int,
    steps: int,
    executor: str,
    sandbox: SandboxConfig,
    modules: dict[str, str],
    settings: dict[str, JsonObject],
    show: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Play TASK of BRIDGE: a name, {use = "name", option = value}, or a reshaped benchmark's file.json.

    Ends with exit code 3 where no episode was graded.
    """
    configure_logging()
    with clean_stdout(as_json):
        played = rollout(
            Path(bridge) if is_reshaped(bridge) else component(bridge, "bridge"),
            task,
            component(policy, "policy"),
            [layer_component(layer, f"layers[{index}]") for index, layer in enumerate(layers)],
            count=count,
            seed=seed,
            limits=Limits(steps=steps),
            executor=component(executor, "executor"),
            plugins=Plugins(modules, sandbox=sandbox, settings=settings),
        )
    report = _report(played)
    if as_json:
        print_json(report)
    else:
        _print(played, report, show=show)
    if not report["graded"]:
        click.echo("envharness: no episode was graded", err=True)
        raise click.exceptions.Exit(3)


def _print(played: list[Rollout], report: JsonObject, *, show: bool) -> None:
    for item in played:
        if show:
            _show(item)
        click.echo(_line(item))
    episodes = tuple(item.episode for item in played)
    low, high = wilson_interval(wins(graded(episodes)), len(graded(episodes)))
    click.echo(
        f"{report['successes']} of {report['graded']} graded succeeded "
        f"(95 % interval {low:.2f} to {high:.2f}); excluded: {report['excluded'] or 'none'}"
    )


def _report(played: list[Rollout]) -> JsonObject:
    episodes = tuple(item.episode for item in played)
    said = graded(episodes)
    excluded = Counter(str(episode.outcome) for episode in episodes if not episode.graded)
    return {
        "successes": wins(said),
        "graded": len(said),
        "excluded": dict(excluded),
        "interval": list(wilson_interval(wins(said), len(said))),
        "episodes": [episode.as_json() for episode in episodes],
    }


def _show(item: Rollout) -> None:
    if item.trajectory.start is not None:
        click.echo(printable(item.trajectory.start.instruction))
        click.echo(_indented(item.trajectory.start.observation.text))
    for number, step in enumerate(item.trajectory.steps):
        executed = [str(event.action) for event in item.trajectory.events_of(step) if event.kind == "step"]
        note = "" if executed == [str(step.action)] else f"  (executed: {', '.join(executed) or 'nothing'})"
        click.echo(printable(f"{number}: {step.action}{note}"))
        click.echo(_indented(step.response.observation.text))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in printable(text).split("\n"))


def _line(item: Rollout) -> str:
    episode = item.episode
    verdict = "no verdict" if episode.verdict is None else ("success" if episode.success else "failure")
    tail = f": {episode.error}" if episode.error else ""
    line = printable(f"{episode.index}: {verdict}, {episode.outcome}, {episode.steps} steps{tail}")
    return line.replace("\n", "\\n")  # one line, whatever it says
