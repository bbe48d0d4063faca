"""``envharness play``: a person plays a task, under any layers, in the terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from envharness_core.api import rollout_specs
from envharness_core.calls import show_call
from envharness_core.cli.logs import configure_logging
from envharness_core.cli.options import component, layer_component, plugin_option, sandbox_option
from envharness_core.data import Observation
from envharness_core.episode import Episode, EpisodeSpec, Limits, Record
from envharness_core.executors.inline import Inline
from envharness_core.export import export_lines
from envharness_core.plugins import Plugins
from envharness_core.reshaped import is_reshaped
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.store import Store
from envharness_core.text import printable
from envharness_core.trajectory import Step, Trajectory, read_trajectory
from envharness_core.whole_file import whole_file


@click.command("play")
@click.argument("bridge")
@click.argument("task")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    help='A name, {use = "name", option = value}, or a file such as rules.py; repeatable, innermost first.',
)
@click.option("--seed", type=click.IntRange(min=0, max=2**63 - 1), default=0, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=50, show_default=True, help="Step limit.")
@click.option("--skill", "skills", multiple=True, metavar="TEXT", help="Advice to show; repeatable.")
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE.jsonl",
    help="Write the episode, as a line of envharness export.",
)
@sandbox_option
@plugin_option
def command(
    bridge: str,
    task: str,
    layers: tuple[str, ...],
    seed: int,
    steps: int,
    skills: tuple[str, ...],
    save: Path | None,
    sandbox: SandboxConfig,
    modules: dict[str, str],
) -> None:
    """Play TASK of BRIDGE yourself: a name, {use = "name", option = value}, or a reshaped benchmark's file.json.

    At the end it says what the layers did. Ends with exit code 3 where there is no verdict, as after :quit.
    """
    configure_logging()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # a line that isn't text is no call, and no crash
    plugins = Plugins(modules, sandbox=sandbox)
    (spec,) = rollout_specs(
        Path(bridge) if is_reshaped(bridge) else component(bridge, "bridge"),
        task,
        "person",
        [layer_component(layer, f"layers[{index}]") for index, layer in enumerate(layers)],
        count=1,
        seed=seed,
        limits=Limits(steps=steps, wall_seconds=None),
        plugins=plugins,
        skills=skills,
    )
    with nullcontext() if save is None else whole_file(save) as file:
        (record,) = Inline().run(iter([spec]), plugins)
        if file is not None:
            file.write(_line(spec, record))
    _print(spec, record)
    if save is not None:
        click.echo(f"{save}: 1 episode")
    if not record.episode.graded:
        raise click.exceptions.Exit(3)


def _line(spec: EpisodeSpec, record: Record) -> bytes:
    """Write the episode as ``export`` does, by way of a store."""
    with TemporaryDirectory() as folder, Store.create(Path(folder), {}) as store:
        store.put(spec, record)
        (line,) = export_lines(store)
    assert isinstance(line, bytes)
    return line


def _print(spec: EpisodeSpec, record: Record) -> None:
    trajectory = read_trajectory(record.blob)
    if record.episode.graded and trajectory.steps:
        click.echo(f"\n{printable(trajectory.steps[-1].response.observation.text)}")
    click.echo(f"\n{_result(record.episode)}")
    if not spec.design.layers:
        return
    click.echo("What the layers did:")
    for line in [*_at_the_start(trajectory), *_to_the_steps(trajectory)] or [
        "nothing to what you did or saw"
    ]:
        click.echo(printable(f"  {line}".replace("\n", "\\n")))


def _result(episode: Episode) -> str:
    if episode.verdict is None:
        said = "no verdict"
    else:
        metrics = "".join(f", {name} {value}" for name, value in episode.verdict.metrics.items())
        said = f"{'success' if episode.success else 'failure'}, score {episode.verdict.score:g}{metrics}"
    tail = f": {episode.error}" if episode.error else ""
    steps = "1 step" if episode.steps == 1 else f"{episode.steps} steps"
    return printable(f"{said}; {episode.outcome} after {steps}{tail}").replace("\n", "\\n")


def _at_the_start(trajectory: Trajectory) -> Iterator[str]:
    """Yield what layers did before the person's first step."""
    start, steps = trajectory.start, trajectory.steps
    for leg, events in enumerate(trajectory.events):
        before = events[: steps[0].spans[leg][0]] if steps else events
        replayed = [show_call(event.action) for event in before if event.kind == "step"]
        if replayed:
            yield f"before you began: {', '.join(replayed)}"
        shown: list[Any] = [event.body["response"] for event in before if "response" in event.body]
        told = None if leg > 0 or start is None or not shown else start.observation
        if told is not None and told != Observation(**shown[-1]["observation"]):
            yield "before you began: what the world showed was changed"


def _to_the_steps(trajectory: Trajectory) -> Iterator[str]:
    """Yield a line for each step to which a layer did something."""
    for number, step in enumerate(trajectory.steps, 1):
        deeds = [*_to_the_step(trajectory, step)]
        if deeds:
            yield f"{number}, {step.action}: {'; '.join(deeds)}"


def _to_the_step(trajectory: Trajectory, step: Step) -> Iterator[str]:
    response, raw = step.response, trajectory.raw_observation(step)
    done = [show_call(event.action) for event in trajectory.events_of(step) if event.kind == "step"]
    if "handoff" in response.info:
        yield "handed over to the next environment"
        return
    if "blocked" in response.info:
        yield f"blocked: {response.info['blocked']}"
    elif not done:
        yield f"didn't reach the world: {response.info.get('transient_error', 'a layer answered')}"
    elif step.action is None or done != [show_call(step.action)]:
        yield f"reached the world as {', '.join(done)}"
    if raw is not None and raw != response.observation:
        yield "what the world showed was changed"
    if response.truncated:
        yield "the episode was ended here, by a layer or the benchmark's own limit"
