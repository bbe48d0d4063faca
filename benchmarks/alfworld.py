"""What ALFWorld's games cost on the fast engine and on upstream's own, both in one run.

Processor time of this process and the engine's together, through the bridge; each engine begins with a new process.
Plays the games of ``--data`` or ``$ALFWORLD_DATA``; without either, generated ones, which are smaller.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from attrs import define, field

from envharness_bridge_alfworld.bridge import ALFWorld
from envharness_bridge_alfworld.config import ALFWorldConfig
from envharness_bridge_alfworld.engines import EngineKind, Engines
from envharness_bridge_alfworld.games import SPLITS
from envharness_core import Action
from figures import Figure, show

STEP, RESET = 10.0, 8.0


@define
class Side:
    """One engine, and the seconds that each call took."""

    engine: EngineKind
    cache: str
    first: list[float] = field(factory=list)
    resets: list[float] = field(factory=list)
    steps: list[float] = field(factory=list)

    def play(self, config: ALFWorldConfig, task: str, repeats: int, walk: int, seed: int) -> None:
        """Load a game in a new process, reset it again and again, and walk."""
        engines = Engines()
        bridge = ALFWorld(config, engines)
        options = {"task": task}
        began = time.process_time()
        bridge.reset(0, options)  # all that the new process has used was for this
        assert bridge.engine is not None
        pid = bridge.engine.pid
        self.first.append(_used(pid) - began)
        for _ in range(repeats):
            self.resets.append(_timed(pid, lambda: bridge.reset(0, options)))
        chance, observation = random.Random(seed), bridge.observe()
        for _ in range(walk):
            command = chance.choice([str(each) for each in _listed(observation.data["admissible"])])
            began = _used(pid)
            response = bridge.step(Action("do", {"command": command}))
            self.steps.append(_used(pid) - began)
            observation = response.observation
            if response.terminated:
                break
        bridge.close()
        engines.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument("--data", default=os.environ.get("ALFWORLD_DATA"), help="the folder of the games")
    parser.add_argument("--games", type=int, default=12, help="how many games, at most")
    parser.add_argument("--repeats", type=int, default=3, help="resets of each game after its first")
    parser.add_argument("--walk", type=int, default=20, help="commands of the random walk in each game")
    options = parser.parse_args(arguments)
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]
    # else this file, which is called as upstream's package is, would be imported in its place
    data = options.data or "generated"
    with tempfile.TemporaryDirectory() as folder:
        fast, stock = Side("fast", folder), Side("stock", folder)
        cached: list[float] = []
        tasks = _tasks(data, options.games)
        for number, task in enumerate(tasks):
            for side in (fast, stock):
                config = ALFWorldConfig(data=data, engine=side.engine, cache=folder)
                side.play(config, task, options.repeats, options.walk, number)
            again = Side("fast", folder)
            again.play(ALFWorldConfig(data=data, cache=folder), task, 0, 0, number)
            cached += again.first
        kept = sum(file.stat().st_size for file in Path(folder).iterdir()) / len(tasks)
    show(_figures(fast, stock, cached, kept), as_json=options.as_json)


def _figures(fast: Side, stock: Side, cached: list[float], kept: float) -> list[Figure]:
    """Compare what the same games took: sums over sums."""

    def ratio(name: str, of: Callable[[Side], list[float]], target: float | None = None) -> Figure:
        return Figure(name, sum(of(stock)) / sum(of(fast)), "stock / fast", target, bound=">=")

    return [
        ratio("step", lambda side: side.steps, STEP),
        ratio("repeated_reset", lambda side: side.resets, RESET),
        ratio("process_and_first_reset", lambda side: side.first),
        Figure("the_same_from_cache", sum(stock.first) / sum(cached), "stock / fast", bound=">="),
        *[
            Figure(f"{side.engine}_{name}_time", median(taken) * 1e3, "ms")
            for side in (fast, stock)
            for name, taken in (("step", side.steps), ("reset", side.resets), ("first", side.first))
        ],
        Figure("cached_first_time", median(cached) * 1e3, "ms"),
        Figure("cached_game", kept / 1024, "KiB"),
    ]


def _tasks(data: str, limit: int) -> list[str]:
    with ALFWorld(ALFWorldConfig(data=data)) as bridge:
        found = [task.id for split in SPLITS for task in bridge.list_tasks(split)]
    return found[:: max(1, len(found) // limit)][:limit]


def _timed(pid: int, call: Callable[[], object]) -> float:
    began = _used(pid)
    call()
    return _used(pid) - began


def _used(pid: int) -> float:
    """Return the processor seconds that this process and the engine's main thread have used."""
    return time.process_time() + int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


if __name__ == "__main__":
    main()
