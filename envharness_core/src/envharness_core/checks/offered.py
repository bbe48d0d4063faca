"""What a bridge may offer beside an episode, check by check: solutions, and a rest between two."""

from __future__ import annotations

from envharness_core.checks.bridge_bench import NOT_DETERMINISTIC, BridgeBench
from envharness_core.checks.drive import ended, go_on, play, snapshot
from envharness_core.checks.results import require, require_same
from envharness_core.recorder import Recorder

_AMID = 3  # steps, after which a way may still know how to go on


def solves_its_tasks(bench: BridgeBench) -> str | None:
    """Solutions: what a way says solves the task, at the start and amid an episode, and asking changes nothing."""
    ways = bench.fresh().solutions
    if not ways:
        return "it knows no solutions"
    told = [_solved(bench, way, task, steps) for way in ways for task in bench.tasks for steps in (0, _AMID)]
    return None if any(told) else f"none was known to {', '.join(ways)}"


def _solved(bench: BridgeBench, way: str, task: str, steps: int) -> bool:
    """Do what a way says after some random steps, and grade it; False where it knows none."""
    recorder = Recorder(bench.fresh())
    first = recorder.reset(bench.seed, {"task": task})
    if steps and ended(go_on(recorder, first.observation, bench.driver(), steps)):
        return False
    where = f"solution({way!r}) of task {task!r} after {steps} steps"
    before = snapshot(recorder)
    actions = recorder.solution(way)
    require_same(before, snapshot(recorder), f"{where}: the world after asking")
    require(recorder.solution(way) == actions, f"{where}: asked twice, it says two things")
    if actions is None:
        return False
    for action in actions:
        if recorder.step(action).ended:
            break
    require(recorder.evaluate().success, f"{where}: it was done, and the task isn't solved")
    return True


def rest_is_over_at_a_reset(bench: BridgeBench) -> str | None:
    """Lifecycle: rest() may come at any time between episodes, and a reset then gives what a fresh bridge gives."""
    used = bench.fresh()
    used.rest()
    for number, task in enumerate([*bench.tasks, bench.tasks[0]]):
        fresh = play(bench.fresh(), task, bench.driver(number), seed=number, steps=5)
        again = play(used, task, bench.driver(number), seed=number, steps=5)
        if used.capabilities.deterministic:
            require_same(fresh, again, f"task {task!r}, after rest()")
        used.rest()
        used.rest()
    used.close()
    return None if used.capabilities.deterministic else NOT_DETERMINISTIC
