"""How busy the executors keep what they have: waiting policies, two cores, and 50,000 episodes.

Each figure is a ratio to what is ideal or a growth within one run, but for the time of a resume, which has a target.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import field, frozen, validators

from envharness_core import Action, Component, Observation, Policy, Reply, Tool, campaign, hookimpl
from envharness_core.episode import Design, EpisodeSpec, Limits, Record
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EXECUTOR
from envharness_core.plugins import Plugins
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec
from envharness_core.store import FILE, Store
from envharness_core.trajectory import compressed
from figures import Figure, show

STEPS = 5
WAIT = 0.2  # seconds, what a fast model takes
ROUNDS = 3
CPU_EPISODES = 6000
STORED = 50_000


@frozen
class WaitConfig:
    """How long an answer takes, in seconds."""

    seconds: float = field(default=WAIT, validator=validators.ge(0.0))


class Waiting(Policy[WaitConfig]):
    """Waits as for a model, and undoes nothing: episodes of equal length."""

    def start(self, instruction: str, tools: Sequence[Tool], seed: int, skills: Sequence[str] = ()) -> None:
        pass

    def act(self, observation: Observation) -> Reply:
        time.sleep(self.config.seconds)
        return Reply((Action("undo"),))


@hookimpl
def envharness_policies() -> Iterable[Component[Policy]]:
    """Yield the policy that waits."""
    yield Component("waiting", Waiting, WaitConfig)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument("--pinned", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pinned is not None:
        os.sched_setaffinity(0, {options.pinned})
        print(cpu_rate(ComponentSpec("inline")))
        return
    figures = [*waiting_policies(), *two_cores(), *many_episodes()]
    show(figures, as_json=options.as_json)


def waiting_policies() -> Iterator[Figure]:
    """Play episodes whose policy waits, many at once, and compare with what the waiting alone takes."""
    for count, most in ((64, 1.05), (256, 1.15)):
        executor = ComponentSpec("threads", {"threads": count})
        specs = jobs("bench/waiting", STEPS, count * ROUNDS)
        seconds = played(executor, specs)
        yield Figure(f"waiting_{count}", seconds / (ROUNDS * STEPS * WAIT), "x the ideal", most)


def two_cores() -> Iterator[Figure]:
    """Compare two worker processes with one process that is pinned to one core, in turn."""
    inline = pinned_rate()
    local = cpu_rate(ComponentSpec("local", {"workers": 2}))
    again = pinned_rate()
    yield Figure("local_2_to_pinned_inline", local / max(inline, again), "x the rate", 1.6, bound=">=")
    yield Figure("local_2_rate", local, "episodes a second")


def many_episodes() -> Iterator[Figure]:
    """Run 50,000 episodes, watch this process's memory, and go on with the run as if it had been killed at its end."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        sizes: list[tuple[int, int]] = []

        def heard(progress: Any) -> None:
            if progress.episodes % 5000 == 0:
                gc.collect()
                sizes.append((progress.episodes, resident(os.getpid())))

        began = time.perf_counter()
        summary: Any = campaign(long_run(), folder, listener=heard)
        seconds = time.perf_counter() - began
        total = sum(summary["rollouts"].values())
        early, late = sizes[1][1], sizes[-1][1]
        yield Figure("run_rate", total / seconds, f"episodes a second, {total:,} episodes")
        yield Figure("memory_growth", (late - early) / 1e6, "MB from 10,000 episodes on", 20.0)
        yield Figure("store_size", (folder / FILE).stat().st_size / total, "bytes an episode")
        with Store.open(folder) as store:
            store._connection.execute("DELETE FROM meta WHERE name = 'summary'")
        began = time.perf_counter()
        campaign(long_run(), folder)
        yield Figure("resume", time.perf_counter() - began, "s", 3.0)


def long_run() -> JsonObject:
    """Return a config of 50,000 episodes, most of which are the report's."""
    tasks = 100
    return {
        "bridge": "toy24",
        "policy": {"use": "solver", "skill": 0.6},
        "tasks": {"limit": tasks},
        "limits": {"steps": 20},
        "designer": "noop",
        "report": {"rollouts": STORED // tasks - 5},
        "executor": {"use": "local", "workers": 2},
    }


def pinned_rate() -> float:
    """Return the rate of a process that is pinned to one core."""
    core = min(os.sched_getaffinity(0))
    command = [sys.executable, __file__, "--pinned", str(core)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def cpu_rate(executor: ComponentSpec) -> float:
    """Return episodes a second of a policy that computes."""
    policy = ComponentSpec("solver", {"skill": 0.6})
    played(executor, jobs(policy, 20, 200))  # warm the caches of the code, though not of the workers
    return CPU_EPISODES / played(executor, jobs(policy, 20, CPU_EPISODES))


def jobs(policy: ComponentSpec | str, steps: int, count: int) -> list[EpisodeSpec]:
    """Return episodes of one Toy24 task."""
    made = ComponentSpec(policy) if isinstance(policy, str) else policy
    design = Design(ComponentSpec("toy24"), "toy24 1", "1-2-3-4", (), made, Limits(steps=steps))
    return [
        EpisodeSpec(design, "bench", index, Seeds.of(0, "1-2-3-4", "bench", index, seed_in_task=True))
        for index in range(count)
    ]


def played(executor: ComponentSpec, specs: Sequence[EpisodeSpec]) -> float:
    """Play episodes, each to a record as it is stored, and return the seconds that it took."""
    plugins = Plugins({"bench": __name__})
    with closing(plugins.create(EXECUTOR, executor, "executor")) as made:
        began = time.perf_counter()
        records = [Record(r.episode, compressed(r.blob)) for r in made.run(iter(specs), plugins)]
        seconds = time.perf_counter() - began
    broken = [record.episode for record in records if not record.episode.graded]
    if len(records) != len(specs) or broken:
        raise SystemExit(f"{len(records)} of {len(specs)} episodes came back; {broken[:1]}")
    return seconds


def resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
