"""The recorder: the border of a bridge, and the log of what reached it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from envharness_core.data import Action, Observation, ResetResponse, StepResponse, Verdict
from envharness_core.env import Bridge
from envharness_core.errors import BridgeError, CheckpointError, ConfigError, LayerError, VerifierError
from envharness_core.jsondata import JsonObject
from envharness_core.recorder import Recorder
from envharness_core.testing import Counter, TextWorld
from envharness_core.testing.doubles import Dice, Failing, FailingConfig

TASK: Any = {"task": "three"}


def returning(base: type[Counter] = Counter, **methods: Any) -> Bridge:
    """Make a counter whose methods return these values, or raise them."""

    def method(value: Any) -> Any:
        def call(*_: object) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        return call

    made: Bridge = type("Odd", (base,), {name: method(value) for name, value in methods.items()})()
    return made


def through(recorder: Recorder, call: str) -> None:
    """Get as far as this call."""
    recorder.reset(0, TASK)
    if call == "step":
        recorder.step(Action("add"))
    elif call != "reset":
        getattr(recorder, call)()


def started(bridge: Bridge) -> Recorder:
    recorder = Recorder(bridge)
    recorder.reset(0, TASK)
    return recorder


@pytest.mark.parametrize("call", ["reset", "step", "observe"])
def test_what_a_runtime_raises_is_the_operators_error(call: Any) -> None:
    recorder = Recorder(Failing(FailingConfig(call)))
    with pytest.raises(
        BridgeError, match=rf"Failing\.\w+: ConnectionError: the runtime went away during {call}"
    ) as caught:
        through(recorder, call)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert not isinstance(caught.value, VerifierError)


def test_a_config_error_of_a_bridge_stays_one() -> None:
    with pytest.raises(ConfigError, match="unknown task 'no'"):
        Recorder(Counter()).reset(0, {"task": "no"})


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (Verdict(success=False, score=float("nan")), "verdict.score: expected a finite number, got nan"),
        (Verdict(success=False, score=float("inf")), "got inf"),
        (Verdict(success=False, score=True), "expected a finite number"),
        (Verdict(success=1, score=1.0), "verdict.success: expected a bool, got 1"),  # type: ignore[arg-type]
        (Verdict(success=True, score=1.0, metrics={"x": float("nan")}), "verdict.metrics.x"),
        (None, "expected a Verdict, got NoneType"),
        (0.0, "expected a Verdict, got float"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (BridgeError("gone"), "gone"),
    ],
)
def test_what_is_no_verdict_is_a_verifier_error_and_never_a_score(verdict: Any, says: str) -> None:
    recorder = started(returning(evaluate=verdict))
    before = len(recorder.log)
    with pytest.raises(VerifierError) as caught:
        recorder.evaluate()
    assert says in str(caught.value)
    assert len(recorder.log) == before


OBSERVED = Observation("seen")


@pytest.mark.parametrize(
    ("call", "value", "says"),
    [
        ("step", None, "expected|NoneType"),
        ("step", StepResponse(None), "observation: expected an Observation, got NoneType"),  # type: ignore[arg-type]
        ("step", StepResponse(OBSERVED, reward=float("nan")), "reward: expected a finite number"),
        ("step", StepResponse(OBSERVED, terminated=1), "terminated: expected a bool, got 1"),  # type: ignore[arg-type]
        ("step", StepResponse(OBSERVED, info={"a": {1}}), r"info\.a: set is not strict JSON"),  # type: ignore[dict-item]
        ("step", StepResponse(Observation("\ud83d")), "observation.text: text with a lone surrogate"),
        (
            "step",
            StepResponse(Observation("", {"n": [10**30]})),
            r"observation\.data\.n\[0\]: an integer beyond",
        ),
        ("reset", ResetResponse(OBSERVED, None), "instruction: expected text"),  # type: ignore[arg-type]
        ("reset", None, "expected a ResetResponse, got NoneType"),
        ("observe", Observation("", []), "observation.data: expected an object"),  # type: ignore[arg-type]
        ("get_env_state", {"a": object()}, r"state\.a: object is not strict JSON"),
        ("save_state", {"a": object()}, r"state\.a: object is not strict JSON"),
    ],
)
def test_what_is_not_data_is_a_bridge_error_with_its_path(call: str, value: Any, says: str) -> None:
    recorder = Recorder(returning(**{call: value}))
    with pytest.raises(BridgeError, match=says):
        through(recorder, call)


def test_the_log_holds_what_reached_the_bridge_and_a_reset_clears_it() -> None:
    recorder = started(Counter())
    recorder.step(Action("add", {"amount": 3}))
    recorder.step(Action("nothing"))
    recorder.notify_replay_complete()
    recorder.step(Action("submit"))
    recorder.evaluate()
    recorder.resume()
    kinds = [event.kind for event in recorder.log.events()]
    assert kinds == ["reset", "step", "notify", "step", "evaluate", "resume"]
    first = recorder.log.events()[0].body
    assert (first["seed"], first["options"]) == (0, TASK)
    recorder.reset(1, TASK)
    assert [event.body["seed"] for event in recorder.log.events()] == [1]


def test_the_log_cannot_be_changed_by_who_holds_the_data() -> None:
    recorder = started(Counter())
    action = Action("add", {"amount": 3})
    response = recorder.step(action)
    before = recorder.log.events()
    action.kwargs["amount"] = 9
    response.info["forged"] = True
    recorder.log.events()[1].body.clear()
    assert recorder.log.events() == before


def test_an_end_that_nobody_resumed_is_a_layers_fault() -> None:
    recorder = started(Counter())
    recorder.step(Action("submit"))
    with pytest.raises(LayerError, match=r"calls inner\.resume\(\) first"):
        recorder.step(Action("add"))
    recorder.resume()
    recorder.step(Action("add"))


def test_what_is_not_resumable_is_not_resumed() -> None:
    class Final(Counter):
        capabilities = evolve(Counter.capabilities, resumable=False)

    recorder = started(Final())
    with pytest.raises(LayerError, match="not resumable"):
        recorder.resume()


@pytest.mark.parametrize("dense", [float("nan"), "1", object()])
def test_a_dense_reward_is_a_number_or_an_error(dense: Any) -> None:
    with pytest.raises(Exception, match="step_reward: expected a finite number"):
        started(returning(step_reward=dense)).step_reward({})
    assert started(returning(step_reward=None)).step_reward({}) is None
    assert started(returning(step_reward=2)).step_reward({}) == 2.0


def test_a_state_of_another_kind_is_refused() -> None:
    states: list[JsonObject] = [
        {},
        {"events": 3},
        {"events": [1], "bridge": {}, "ended": False, "moved": False},
    ]
    for state in states:
        with pytest.raises(CheckpointError, match="not a recorder's state"):
            Recorder(Counter()).load_state(state)


def test_a_solution_is_asked_of_known_ways_alone_and_leaves_no_trace_in_the_log() -> None:
    recorder = started(Counter())
    before = recorder.log.events()
    assert (
        recorder.solution("count") == recorder.solution() == (Action("add", {"amount": 3}), Action("submit"))
    )
    assert recorder.log.events() == before
    with pytest.raises(
        ConfigError, match=r"solutions of Counter: unknown way 'cuont' \(did you mean 'count'"
    ):
        recorder.solution("cuont")
    with pytest.raises(ConfigError, match="Dice knows no solutions"):
        started(Dice()).solution()


@pytest.mark.parametrize(
    ("solution", "says"),
    [
        (3, "expected a sequence of Actions, got 3"),
        (["add"], r"expected a sequence of Actions, got \['add'\]"),
        ([Action("add"), Action("sub")], r"\[1\]: unknown tool 'sub'"),
        ([Action("add", {"amount": "x"})], r"\[0\]: add: Expected `int`"),
        (OSError("no planner"), "solution: OSError: no planner"),
    ],
)
def test_what_is_no_solution_is_a_bridge_error(solution: Any, says: str) -> None:
    with pytest.raises(BridgeError, match=says):
        started(returning(solution=solution)).solution()


def test_who_holds_a_solution_cannot_change_the_bridges() -> None:
    kept = [Action("add", {"amount": 3})]
    recorder = started(returning(solution=kept))
    for action in recorder.solution() or ():
        action.kwargs.clear()
    assert recorder.solution() == (Action("add", {"amount": 3}),)


def test_a_loaded_recorder_knows_that_the_episode_has_moved() -> None:
    recorder = Recorder(TextWorld())
    recorder.reset(3, {"task": "map"})
    other = Recorder(TextWorld())
    other.load_state(recorder.save_state())
    other.step(Action("do", {"text": "look"}))
    with pytest.raises(CheckpointError, match="save before the first step"):
        other.save_state()
    other.notify_replay_complete()
    other.save_state()
