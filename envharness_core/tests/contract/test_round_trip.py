"""Round trip: a loaded checkpoint behaves as the stack that was saved, and loading runs nothing that it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import checkpoint
from envharness_core.checks.bench import WORLDS
from envharness_core.checks.drive import World, do, perform
from envharness_core.checks.results import require_same
from envharness_core.data import Action
from envharness_core.errors import CheckpointError, ConfigError, RulesError
from envharness_core.jsondata import JsonObject, copy_object
from envharness_core.plugins import Plugins
from envharness_core.spec import ComponentSpec
from envharness_core.stacks import build_stack
from envharness_core.testing import actions, setups, stacks

LIVE = st.sampled_from([world for world in WORLDS if world.bridge.use != "testing/text_world"])
COUNTER = ComponentSpec("testing/counter")
LINK = ComponentSpec(
    "link", {"next": {"bridge": "core/toy24", "task": "1-2-3-4", "layers": [{"use": "faults"}]}}
)


@given(world=LIVE, data=st.data())
def test_a_live_stack_goes_on_from_any_state(plugins: Plugins, world: World, data: st.DataObject) -> None:
    with build_stack(plugins, world.bridge) as bare:
        layers = data.draw(stacks(world, tools=bare.tools()), label="layers")
    with build_stack(plugins, world.bridge, layers) as stack:
        calls = st.lists(actions(stack.tools(), malformed=True), max_size=6)
        perform(stack, world.task, data.draw(calls, label="before"), seed=1, layer_seed=2)
        saved = json.loads(json.dumps(checkpoint.save(stack, {"by": "test"}), allow_nan=False))
        with checkpoint.load(plugins, copy_object(saved)) as loaded:
            require_same(saved, checkpoint.save(loaded, {"by": "test"}), "saved again")
            assert loaded.phase == stack.phase
            if stack.phase == "running":
                after = data.draw(calls, label="after")
                require_same(do(stack, after), do(loaded, after), "going on")
            assert loaded.evaluate() == stack.evaluate()


@given(before=st.integers(0, 5), data=st.data())
def test_a_link_is_a_tree_that_loads_in_either_leg(
    plugins: Plugins, before: int, data: st.DataObject
) -> None:
    with build_stack(plugins, COUNTER, [LINK]) as stack:
        ends = [*[Action("add")] * 2, Action("submit"), Action("undo"), Action("stop")]
        perform(stack, "three", ends[:before], seed=1)
        saved = checkpoint.save(stack)
        (layer,) = cast("Any", saved["layers"])
        assert (layer["state"]["own"]["next"] is None) == (before < 3)
        with checkpoint.load(plugins, copy_object(saved)) as loaded:
            require_same(saved, checkpoint.save(loaded), "saved again")
            assert loaded.evaluate() == stack.evaluate()
            if stack.phase == "running":
                todo = data.draw(st.lists(actions(stack.tools()), max_size=6))
                require_same(do(stack, todo), do(loaded, todo), "going on")


def test_an_episode_snapshot_is_taken_at_the_start_only(plugins: Plugins) -> None:
    with build_stack(plugins, ComponentSpec("testing/text_world")) as stack:
        stack.reset(1, {"task": "ring"})
        checkpoint.save(stack)
        stack.step(Action("do", {"text": "look"}))
        with pytest.raises(CheckpointError, match="at an episode's start only"):
            checkpoint.save(stack)


@given(seed=st.integers(0, 50), data=st.data())
def test_a_setup_on_an_episode_snapshot_is_repeated_when_it_loads(
    plugins: Plugins, seed: int, data: st.DataObject
) -> None:
    texts = data.draw(
        st.lists(st.sampled_from(["go cellar", "go kitchen", "open barrel"]), min_size=1, max_size=4)
    )
    setup = ComponentSpec("setup", {"actions": [{"name": "do", "kwargs": {"text": text}} for text in texts]})
    with build_stack(plugins, ComponentSpec("testing/text_world"), [setup]) as stack:
        first = stack.reset(seed, {"task": "ring"})
        saved = checkpoint.save(stack)
        with checkpoint.load(plugins, copy_object(saved)) as loaded:
            assert loaded.observe() == first.observation
            todo = [
                Action("do", {"text": text}) for text in ("open oven", "take key", "go hall", "open chest")
            ]
            require_same(do(stack, todo), do(loaded, todo), "going on")


def test_the_shape_is_data_with_names_and_no_import_paths(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [ComponentSpec("faults", {"rate": 0.5}), LINK]) as stack:
        stack.reset(0, {"task": "three"})
        saved = checkpoint.save(stack, {"note": "x"})
    assert saved.keys() == {"schema_version", "env", "layers", "guard", "metadata"}
    assert saved["schema_version"] == 2
    parts = [saved["env"], *cast("Any", saved["layers"])]
    assert [part["type"] for part in parts] == ["testing/counter", "core/faults", "core/link"]
    assert all(part.keys() == {"type", "config", "state"} for part in parts)
    assert "envharness_core." not in json.dumps(saved)


def test_what_was_loaded_does_not_share_the_callers_checkpoint(plugins: Plugins) -> None:
    with build_stack(plugins, COUNTER, [ComponentSpec("shaping/historian")]) as stack:
        perform(stack, "three", [Action("add")])
        saved = checkpoint.save(stack)
    before = copy_object(saved)
    with checkpoint.load(plugins, saved) as loaded:
        loaded.step(Action("add", {"amount": 2}))
    assert saved == before


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("schema_version", 3, "upgrade envharness-core"),
        ("schema_version", "2", "isn't a checkpoint"),
        ("layers", None, "layers: expected a list"),
        ("layers", [{}], r"layers\[0\]: expected an object with a type"),
        ("env", "counter", "env: expected an object with a type"),
        ("env.state", None, "env.state: expected an object"),
        ("env.state", {}, "not a recorder's state"),
        ("env.state.events", [{"kind": "step"}, 7], "not a recorder's state"),
        ("env.state.bridge", {}, "damaged"),
        ("env.config", {"no": 1}, "unknown key 'no'"),
        ("env.config", {"use": "testing/dice"}, "env: expected the type"),
        ("layers.0.state", {}, "not a layer's state"),
        ("layers.0.state.random", {"state": [3, ["x"], None]}, "not a layer's state"),
        ("layers.0.state.own", {}, "damaged"),
        ("layers.0.type", "core/budget", "steps"),
        ("guard", {"phase": "closed"}, "guard.phase"),
        ("guard", None, "guard.phase"),
    ],
)
def test_a_damaged_checkpoint_says_what_is_wrong(plugins: Plugins, path: str, value: Any, says: str) -> None:
    with build_stack(plugins, COUNTER, [ComponentSpec("faults", {"rate": 1.0})]) as stack:
        perform(stack, "three", [Action("add")])
        saved = checkpoint.save(stack)
    place: Any = saved
    *parents, last = path.split(".")
    for parent in parents:
        place = place[int(parent)] if parent.isdigit() else place[parent]
    place[last] = value
    with pytest.raises(ConfigError, match=says):
        checkpoint.load(plugins, saved)


def test_a_checkpoint_of_what_is_not_installed_is_a_config_error(plugins: Plugins) -> None:
    saved: JsonObject = {"schema_version": 2, "env": {"type": "nowhere/nothing"}, "layers": []}
    with pytest.raises(ConfigError, match="unknown bridge 'nowhere/nothing'"):
        checkpoint.load(plugins, saved)


def test_loading_runs_nothing_that_a_checkpoint_holds(plugins: Plugins, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    source = f"open({str(trap)!r}, 'w')\nclass _Rules(Rules): pass\n"
    with build_stack(plugins, COUNTER) as stack:
        stack.reset(0, {"task": "three"})
        saved = checkpoint.save(stack)
    for layer in ({"type": "core/rules", "config": {"source": source}}, {"type": "os/system", "config": {}}):
        damaged = {**copy_object(saved), "layers": [{**layer, "state": {}}]}
        with pytest.raises(ConfigError):
            checkpoint.load(plugins, copy_object(damaged))
    assert not trap.exists()


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "stack.json"
    checkpoint.write(path, {"schema_version": 2, "text": "\u00e9"})
    assert checkpoint.read(path) == {"schema_version": 2, "text": "\u00e9"}
    with pytest.raises(ValueError, match="JSON"):
        checkpoint.write(path, {"new": [1] * 100_000, "text": float("nan")})
    assert checkpoint.read(path)["schema_version"] == 2
    assert [file.name for file in tmp_path.iterdir()] == ["stack.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"a": NaN}', '{"a": "\\ud800"}', '{"a": 1' + "0" * 40 + "}", "[" * 100_000]
)
def test_a_damaged_file_is_a_checkpoint_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stack.json"
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"stack\.json"):
        checkpoint.read(path)
    with pytest.raises(CheckpointError, match=r"none\.json"):
        checkpoint.read(tmp_path / "none.json")


RULES = ComponentSpec(
    "core/rules",
    {
        "source": "import random\n"
        "class _Rules(Rules):\n"
        "    seen = 0\n"
        "    def filter_action(self, action, env_state):\n"
        "        return Blocked('no') if random.random() < 0.3 else action\n"
        "    def filter_observation(self, observation, env_state):\n"
        "        self.seen += 1\n"
        "        env_state.extras['n'] = env_state.extras.get('n', 0) + 1\n"
        "        draw = random.random()\n"
        "        return observation.preceded_by(f'{self.seen} {env_state.extras} {draw}')\n"
    },
)


@given(
    world=st.sampled_from(WORLDS),
    depth=st.integers(1, 3),
    between=st.booleans(),
    replay=st.booleans(),
    data=st.data(),
)
def test_rules_as_source_go_on_from_an_episodes_start(
    plugins: Plugins, world: World, depth: int, between: bool, replay: bool, data: st.DataObject
) -> None:
    layers = [RULES] * depth
    if between:
        layers.insert(1, ComponentSpec("faults", {"rate": 0.3}))
    if replay:
        layers.append(data.draw(setups(world)))
    with build_stack(plugins, world.bridge, layers) as stack:
        stack.reset(1, {"task": world.task, "layer_seed": 2})
        saved = json.loads(json.dumps(checkpoint.save(stack), allow_nan=False))
        with checkpoint.load(plugins, copy_object(saved)) as loaded:
            require_same(saved, checkpoint.save(loaded), "saved again")
            assert loaded.observe() == stack.observe()
            todo = data.draw(st.lists(actions(stack.tools()), max_size=6))
            require_same(do(stack, todo), do(loaded, todo), "going on")


def test_loading_rules_runs_nothing_of_them(plugins: Plugins) -> None:
    source = "1 / 0\nclass _Rules(Rules):\n    def filter_observation(self, o, s): return o\n"
    spec = ComponentSpec("core/rules", {"source": source})
    with build_stack(plugins, COUNTER) as stack:
        stack.reset(0, {"task": "three"})
        saved = checkpoint.save(stack)
    own: JsonObject = {"shown": None, "given": None}
    state: JsonObject = {"layer_seed": 0, "random": None, "own": own}
    saved["layers"] = [{"type": spec.use, "config": spec.config, "state": state}]
    with checkpoint.load(plugins, saved) as loaded:
        assert loaded.observe().text == "The count is 0."
        with pytest.raises(RulesError, match="ZeroDivisionError"):
            loaded.step(Action("add"))


OLD: JsonObject = {
    "schema_version": 1,
    "env": {"type": "toy24", "state": {"reset_seed": 5, "reset_options": {"task": "1-2-3-4"}}},
    "harnesses": [
        {"type": "setup", "state": {"actions": [{"name": "combine", "kwargs": {"i": 0, "j": 1, "op": "+"}}]}},
        {
            "type": "rules",
            "state": {
                "rules_code": "class _Contract(Contract):\n"
                "    def filter_action(self, action, env_state):\n"
                "        return Blocked(reason='No way back.') if action.name == 'undo' else action\n"
            },
        },
    ],
    "metadata": {"by": "an older program"},
}


def test_a_version_1_checkpoint_is_played_from_its_start(plugins: Plugins) -> None:
    with checkpoint.load(plugins, copy_object(OLD)) as stack:
        assert [spec.use for spec in stack.layers] == ["core/setup", "core/rules"]
        seed, options = checkpoint.start_of(OLD)
        assert (seed, options) == (5, {"task": "1-2-3-4"})
        first = stack.reset(seed, options)
        assert first.observation.data["numbers"] == ["3", "3", "4"]
        assert stack.step(Action("undo")).info == {"blocked": "No way back."}


def test_version_1_names_a_puzzle_by_its_numbers_too() -> None:
    old = copy_object(OLD)
    cast("Any", old["env"])["state"] = {"reset_seed": None, "reset_options": {"numbers": [8, 3, 8, 3]}}
    assert checkpoint.start_of(old) == (0, {"task": "3-3-8-8"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"env": {"type": "toy24"}}, "env.state: expected an object"),
        ({"env": None}, "env: expected an object with a type"),
        ({"harnesses": {}}, "harnesses: expected a list"),
        (
            {"harnesses": [{"type": "rulez", "state": {}}]},
            "harnesses\\[0\\]: unknown harness 'rulez' \\(did you mean 'rules'",
        ),
        ({"harnesses": [{"type": "rules", "state": {}}]}, "harnesses\\[0\\].state: expected rules_code"),
    ],
)
def test_a_damaged_version_1_checkpoint_says_where(plugins: Plugins, change: JsonObject, says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        checkpoint.load(plugins, {**OLD, **change})


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"reset_seed": -1, "reset_options": {}}, "reset_seed: expected an integer of 0 or more, got -1"),
        ({"reset_seed": 1}, "reset_options: expected an object"),
        ({"reset_seed": 1, "reset_options": {"numbers": ["x"]}}, "it names no task"),
    ],
)
def test_a_version_1_start_that_is_none_says_where(state: JsonObject, says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        checkpoint.start_of({**OLD, "env": {"type": "toy24", "state": state}})


def test_a_newer_checkpoint_loads_instead_of_starting() -> None:
    with pytest.raises(CheckpointError, match="only version 1"):
        checkpoint.start_of({"schema_version": 2})
