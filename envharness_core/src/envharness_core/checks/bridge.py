"""What a bridge promises, check by check, in the order of its life."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from envharness_core.chain import Chain
from envharness_core.checked import checked_reset, checked_response
from envharness_core.checks.bridge_bench import NOT_DETERMINISTIC, BridgeBench
from envharness_core.checks.drive import (
    as_json,
    ended,
    go_on,
    play,
    seen_state,
    snapshot,
    vandalise,
)
from envharness_core.checks.offered import rest_is_over_at_a_reset, solves_its_tasks
from envharness_core.checks.results import Check, fail, require, require_same
from envharness_core.data import Action, Capabilities, TaskSummary
from envharness_core.env import Bridge
from envharness_core.errors import ConfigError
from envharness_core.jsondata import JsonObject, copy_object
from envharness_core.recorder import Recorder
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import Stack
from envharness_core.tools import Tool

_SEARCHED = 30  # random episodes in which an end is looked for


def declares_itself(bench: BridgeBench) -> None:
    """Contract: capabilities, splits and the state's schema are declared."""
    bridge = bench.fresh()
    require(isinstance(bridge.capabilities, Capabilities), "capabilities: expected Capabilities")
    require(bridge.capabilities.upstream, "capabilities.upstream is empty")
    require(bridge.capabilities.version, "capabilities.version is empty")
    require(isinstance(bridge.splits, tuple) and bridge.splits, "splits: expected a tuple of names")
    require(len(set(bridge.splits)) == len(bridge.splits), "splits: a name comes twice")
    schema = bridge.env_state_schema
    require(isinstance(schema, str) and schema.strip(), "env_state_schema: expected words")
    require(isinstance(bridge.designer_notes, str), "designer_notes: expected words, or an empty text")
    ways = bridge.solutions
    named = isinstance(ways, tuple) and all(isinstance(way, str) and way for way in ways)
    require(named and len(set(ways)) == len(ways), "solutions: expected a tuple of different names")


def offers_tools(bench: BridgeBench) -> None:
    """Contract: tools have unique names, a description and a JSON schema, and don't change."""
    bridge = bench.fresh()
    before = list(bridge.tools())
    require(before, "tools: there are none")
    require(all(isinstance(tool, Tool) for tool in before), "tools: expected Tools; use Tool.of")
    names = [tool.name for tool in before]
    require(len(set(names)) == len(names), f"tools: a name comes twice: {names}")
    for tool in before:
        require(tool.description.strip(), f"tool {tool.name}: no description; give it a docstring")
        require(copy_object(tool.schema).get("type") == "object", f"tool {tool.name}: not an object schema")
    for number in range(4):
        play(bridge, bench.tasks[0], bench.driver(number))
        require(list(bridge.tools()) == before, "tools: they changed within an episode")


def lists_tasks(bench: BridgeBench) -> None:
    """Contract: tasks have unique, stable ids, and the limit is honoured."""
    bridge, other = bench.fresh(), bench.fresh()
    ids: list[str] = []
    for split in bridge.splits:
        tasks = bridge.list_tasks(split)
        require(all(isinstance(task, TaskSummary) for task in tasks), f"{split}: expected TaskSummary")
        require(other.list_tasks(split) == tasks, f"{split}: two instances list different tasks")
        for limit in (0, 1, 2, len(tasks) + 1):
            require(
                bridge.list_tasks(split, limit) == tasks[:limit], f"{split}: limit {limit} isn't honoured"
            )
        for task in tasks:
            as_json(task)
            require(task.id and task.summary, f"{split}: a task without an id or a summary")
            require(task.split == split, f"task {task.id!r}: listed in {split}, says {task.split}")
        ids += [task.id for task in tasks]
    require(ids, "there are no tasks")
    require(len(set(ids)) == len(ids), "two tasks have one id")


def refuses_unknown_names(bench: BridgeBench) -> None:
    """Contract: an unknown split or task is a ConfigError."""
    calls: dict[str, Callable[[], object]] = {
        "list_tasks of an unknown split": lambda: bench.fresh().list_tasks("no such split"),
        "reset to an unknown task": lambda: bench.fresh().reset(0, {"task": "no such task"}),
        "reset without a task": lambda: bench.fresh().reset(0, {}),
        "reset to a task that is no string": lambda: bench.fresh().reset(0, {"task": 1}),
    }
    for what, call in calls.items():
        try:
            call()
        except ConfigError:
            continue
        except Exception as error:  # noqa: BLE001 - code under test may raise anything
            fail(f"{what}: expected a ConfigError, got {type(error).__name__}: {error}")
        fail(f"{what}: expected a ConfigError")


def returns_strict_json(bench: BridgeBench) -> None:
    """Data only: what comes back is strict JSON, and of the right types."""
    for number, task in enumerate(bench.tasks):
        bridge, driver = bench.fresh(), bench.driver(number)
        observation = checked_reset(bridge.reset(bench.seed, {"task": task})).observation
        for _ in range(12):
            response = checked_response(bridge.step(driver.action(bridge, observation)))
            seen_state(bridge)
            if response.ended:
                break
            observation = response.observation
    recorder = Recorder(bench.started()[0])
    snapshot(recorder)
    copy_object(recorder.bridge.save_state(), "save_state")


def same_seed_repeats(bench: BridgeBench) -> str | None:
    """Determinism: the same task, seed and actions give the same observations and verdict."""
    if not bench.fresh().capabilities.deterministic:
        return NOT_DETERMINISTIC
    for number, task in enumerate(bench.tasks):
        one, two = (play(bench.fresh(), task, bench.driver(number), seed=number) for _ in range(2))
        require_same(one, two, f"task {task!r}, played twice")
    return None


def reset_forgets(bench: BridgeBench) -> str | None:
    """Determinism: a reset after a dirty episode equals a fresh bridge."""
    if not bench.fresh().capabilities.deterministic:
        return NOT_DETERMINISTIC
    used = bench.fresh()
    for number, task in enumerate([*bench.tasks, bench.tasks[0]]):
        fresh = play(bench.fresh(), task, bench.driver(number), seed=number, steps=5)
        again = play(used, task, bench.driver(number), seed=number, steps=5)
        require_same(fresh, again, f"task {task!r}, after {number} dirty episodes")
    return None


def instances_are_apart(bench: BridgeBench) -> str | None:
    """Isolation: what happens in one instance doesn't show in another."""
    one, first = bench.started()
    before = snapshot(one)
    other = bench.fresh()
    play(other, bench.tasks[-1], bench.driver(7), seed=7)
    other.close()
    require_same(before, snapshot(one), "while another instance played")
    if not one.capabilities.deterministic:
        return NOT_DETERMINISTIC
    alone, again = bench.started()
    expected = go_on(alone, again.observation, bench.driver(1))
    require_same(expected, go_on(one, first.observation, bench.driver(1)), "after another instance played")
    return None


def observe_advances_nothing(bench: BridgeBench) -> None:
    """Contract: observe() and get_env_state() read and never advance."""
    bridge, first = bench.started()
    driver, observation = bench.driver(), first.observation
    for _ in range(8):
        before = snapshot(bridge)
        for _ in range(3):
            bridge.observe()
            bridge.get_env_state()
        require_same(before, snapshot(bridge), "after observing again")
        response = bridge.step(driver.action(bridge, observation))
        if response.ended:
            break
        observation = response.observation


def evaluate_changes_nothing(bench: BridgeBench) -> str | None:
    """Verdict: evaluate() is idempotent, callable before the end, and changes nothing."""
    for number, task in enumerate(bench.tasks):
        bridge, driver = bench.fresh(), bench.driver(number)
        observation = bridge.reset(number, {"task": task}).observation
        asked = [as_json(observation)]
        for _ in range(8):
            verdict = as_json(bridge.evaluate())
            require_same(verdict, as_json(bridge.evaluate()), "evaluate() asked twice")
            response = bridge.step(driver.action(bridge, observation))
            asked.append(as_json(response))
            if response.ended:
                break
            observation = response.observation
        if bridge.capabilities.deterministic:
            tape = play(bench.fresh(), task, bench.driver(number), seed=number, steps=8)
            unasked = [cast("JsonObject", item)["response"] for item in tape[1:-1]]
            require_same(unasked, [*asked[1:]], "steps after evaluate() was asked between them")
    return None if bench.fresh().capabilities.deterministic else NOT_DETERMINISTIC


def hands_out_copies(bench: BridgeBench) -> None:
    """Isolation: writing to what a bridge returned changes nothing in it."""
    bridge, first = bench.started()
    before = snapshot(bridge)
    live = bridge.capabilities.snapshot == "live"
    for data in (first.info, first.observation.data, bridge.observe().data, bridge.get_env_state()):
        vandalise(data)
    vandalise(bridge.evaluate().metrics)
    vandalise(bridge.save_state())
    require_same(before, snapshot(bridge), "after writing to what was returned")
    response = bridge.step(bench.driver().action(bridge, bridge.observe()))
    before = snapshot(bridge)
    saved = copy_object(bridge.save_state()) if live else {}
    vandalise(response.info)
    vandalise(response.observation.data)
    require_same(before, snapshot(bridge), "after writing to a step's response")
    if live:
        require_same(saved, copy_object(bridge.save_state()), "what is saved, after writing to a response")


def leaves_what_it_is_given(bench: BridgeBench) -> None:
    """Isolation: a bridge doesn't write to actions, options, infos and states that it is given."""
    bridge, driver = bench.fresh(), bench.driver()
    options: JsonObject = {"task": bench.tasks[0], "layer_seed": 1}
    first = bridge.reset(0, options)
    require_same({"task": bench.tasks[0], "layer_seed": 1}, options, "reset wrote to its options")
    state = copy_object(bridge.save_state())
    given = copy_object(state)
    bench.fresh().load_state(given)
    require_same(state, given, "load_state wrote to the state")
    observation = first.observation
    for _ in range(8):
        action = driver.action(bridge, observation)
        kwargs = copy_object(action.kwargs)
        response = bridge.step(action)
        require_same(kwargs, action.kwargs, f"step wrote to the arguments of {action.name}")
        info = copy_object(response.info)
        bridge.step_reward(response.info)
        require_same(info, response.info, "step_reward wrote to the info")
        if response.ended:
            break
        observation = response.observation


def saves_and_loads(bench: BridgeBench) -> str | None:
    """Round trip: a loaded state behaves as the saved one does, on a fresh instance and on a used one."""
    capabilities = bench.fresh().capabilities
    places = (0, 1, 3, 6) if capabilities.snapshot == "live" else (0,)
    for steps in places:
        bridge, first = bench.started(steps)
        tape = go_on(bridge, first.observation, bench.driver(steps), steps)
        saved = json.loads(json.dumps(copy_object(bridge.save_state(), "save_state"), allow_nan=False))
        used = bench.fresh()
        play(used, bench.tasks[-1], bench.driver(99), seed=99)
        for other in (bench.fresh(), used):
            other.load_state(copy_object(saved))
            require_same(snapshot(bridge), snapshot(other), f"loaded after {steps} steps")
            require_same(saved, copy_object(other.save_state()), f"saved again after {steps} steps")
        if capabilities.deterministic and not ended(tape):
            _go_on_alike(bench, bridge, used)
    return None if capabilities.deterministic else NOT_DETERMINISTIC


def _go_on_alike(bench: BridgeBench, one: Bridge, two: Bridge) -> None:
    before, after = (go_on(bridge, bridge.observe(), bench.driver(5), 4) for bridge in (one, two))
    require_same(before, after, "going on after loading")


def replay_keeps_the_world(bench: BridgeBench) -> str | None:
    """Setup: notify_replay_complete() rewinds budgets and keeps the world."""
    for number in range(_SEARCHED):
        bridge, first = bench.started(number)
        start = snapshot(bridge)
        if not ended(go_on(bridge, first.observation, bench.driver(number), 3)):
            _notify(bridge, start)
            return None
    return "random replays ended the episode"


def _notify(bridge: Bridge, start: JsonObject) -> None:
    before = snapshot(bridge)
    bridge.notify_replay_complete()
    after = snapshot(bridge)
    verdict, graded = (cast("JsonObject", item["verdict"]) for item in (before, after))
    require_same([verdict["success"], verdict["score"]], [graded["success"], graded["score"]], "the verdict")
    moved = before["observation"] != start["observation"]
    require(not moved or after["observation"] != start["observation"], "the world went back to its start")
    bridge.notify_replay_complete()
    require_same(after, snapshot(bridge), "a second notification")


def resumes_or_refuses(bench: BridgeBench) -> str | None:
    """Masking: a resumable bridge goes on after its end; another one refuses to."""
    bridge = bench.fresh()
    if not bridge.capabilities.resumable:
        bridge.reset(bench.seed, {"task": bench.tasks[0]})
        try:
            bridge.resume()
        except Exception:  # noqa: BLE001 - however it refuses
            return None
        fail("resume() does something, but capabilities.resumable is false")
    for number in range(_SEARCHED):
        driver = bench.driver(number)
        first = bridge.reset(number, {"task": bench.tasks[number % len(bench.tasks)]})
        tape = go_on(bridge, first.observation, driver)
        if ended(tape):
            bridge.resume()
            checked_response(bridge.step(driver.action(bridge, bridge.observe())))
            return None
    return f"no end was reached in {_SEARCHED} random episodes"


def malformed_calls_change_nothing(bench: BridgeBench) -> None:
    """Contract: a malformed call is answered behind the border, and the world is untouched."""
    bridge = bench.fresh()
    stack = Stack(Chain(ComponentSpec("bridge"), Recorder(bridge)))
    stack.reset(bench.seed, {"task": bench.tasks[0]})
    wrong: list[object] = [
        {"no such argument": 1},
        None,
        [],
        "text",
        {1: 2},
        {"no such argument": float("nan")},
    ]
    calls = [Action("no such tool")]
    calls += [Action(tool.name, cast("JsonObject", kwargs)) for tool in bridge.tools() for kwargs in wrong]
    for call in calls:
        before = snapshot(stack)
        response = stack.step(call)
        require("malformed" in response.info, f"{call.name}({call.kwargs!r}) was taken")
        require(not response.ended, f"{call.name}({call.kwargs!r}) ended the episode")
        require_same(before, snapshot(stack), f"after {call.name}({call.kwargs!r})")
    require(not [event for event in stack.events()[0] if event.kind == "step"], "a call reached the bridge")


def closes(bench: BridgeBench) -> None:
    """Lifecycle: close() is idempotent, at any time."""
    bench.make().close()
    for steps in (0, 2):
        bridge = bench.make()
        play(bridge, bench.tasks[0], bench.driver(), steps=steps)
        bridge.close()
        bridge.close()
    bridge = bench.make()
    with suppress(ConfigError):
        bridge.reset(0, {"task": "no such task"})
    bridge.close()
    bridge.close()


BRIDGE_CHECKS: tuple[Check[BridgeBench], ...] = (
    declares_itself,
    offers_tools,
    lists_tasks,
    refuses_unknown_names,
    returns_strict_json,
    same_seed_repeats,
    reset_forgets,
    instances_are_apart,
    observe_advances_nothing,
    evaluate_changes_nothing,
    hands_out_copies,
    leaves_what_it_is_given,
    saves_and_loads,
    replay_keeps_the_world,
    resumes_or_refuses,
    malformed_calls_change_nothing,
    solves_its_tasks,
    rest_is_over_at_a_reset,
    closes,
)
"""The checks of a bridge, in the order of its life."""
