"""``envharness play``: a person plays any stack, sees what a policy is told, and pays for no slip of the keyboard."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from envharness_core.data import Action, Observation
from envharness_core.errors import CancelledError
from envharness_core.export import lines_schema
from envharness_core.policies.person import Person
from envharness_core.testing import TextWorld
from envharness_core.tools import Tool
from envharness_core.toy24.bridge import Toy24

PLAY = (sys.executable, "-m", "envharness_core.cli.main", "play")
WINNING = [
    "combine 0 1 *",
    'combine(0, 1, "*")',
    '{"name": "combine", "arguments": {"i": 0, "j": 1, "op": "*"}}',
]
NO_UNDO = '{use = "closed", tool = "undo"}'


def play(
    *args: str | Path, lines: Sequence[str] = (), typed: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    typed = "".join(f"{line}\n" for line in lines).encode() if typed is None else typed
    done = subprocess.run([*PLAY, *map(str, args)], input=typed, capture_output=True, timeout=60, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_game_is_won_by_hand_and_saved_as_a_line_of_an_export(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    done = play("toy24", "1-2-3-4", "--skill", "Think of 4 * 6.", "--save", file, lines=WINNING)
    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "Make 24 from 1, 2, 3, 4",
        "Think of 4 * 6.",
        "combine(i, j, op)",
        "[0] 1  [1] 2",
        "4 * 6 = 24",
    ):
        assert said in done.stdout
    assert "success, score 1, moves 3, undos 0; completed after 3 steps" in done.stdout
    assert "layers" not in done.stdout
    (line,) = file.read_text().splitlines()
    saved = json.loads(line)
    Draft202012Validator(lines_schema()).validate(saved)
    assert saved["verdict"]["success"] is True
    assert saved["design"]["skills"] == ["Think of 4 * 6."]
    assert [step["text"] for step in saved["steps"]] == WINNING
    assert all(step["proposed"] == step["executed"][0]["action"] for step in saved["steps"])


def test_what_is_no_call_is_asked_for_again_and_costs_no_step() -> None:
    slips = [
        "",
        "combin 0 1 *",
        "combine(0, 1, *)",
        "combine 0 1",
        "combine 0 1 x",
        "launch(1)",
        ":nothing",
        ":help",
    ]
    done = play("toy24", "1-2-3-4", typed="\n".join([*slips, *WINNING, ""]).encode())
    assert done.stdout.count("Not done: ") == 6
    for said in (
        "did you mean 'combine'?",
        "text stands in quotes",
        "missing required field `op`",
        "unknown tool",
    ):
        assert said in done.stdout
    assert "completed after 3 steps" in done.stdout


def test_a_refusal_is_shown_and_told_at_the_end() -> None:
    done = play("toy24", "1-2-3-4", "--layer", NO_UNDO, lines=["combine 0 1 *", "undo", *WINNING[1:]])
    assert "undo is closed; find another way.\n(The rest is as before; :observe shows it.)" in done.stdout
    assert "completed after 4 steps" in done.stdout
    assert done.stdout.endswith(
        "What the layers did:\n  2, undo(): blocked: undo is closed; find another way.\n"
    )


def test_what_layers_do_in_secret_is_told_at_the_end() -> None:
    layers = (
        '{use = "setup", actions = [{name = "combine", kwargs = {i = 0, j = 1, op = "*"}}]}',
        '{use = "faults", rate = 1.0, streak = 1}',
        '{use = "budget", steps = 2}',
    )
    done = play(
        "toy24", "1-2-3-4", *(part for layer in layers for part in ("--layer", layer)), lines=["undo"] * 2
    )
    told = done.stdout.split("What the layers did:\n")[1]
    assert '  before you began: combine(i=0, j=1, op="*")\n' in told
    assert "  1, undo(): didn't reach the world: " in told
    assert "the episode was ended here" in told
    assert "failure" in done.stdout


def test_what_layers_hide_is_told_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text(
        "class _Rules(Rules):\n"
        "    def filter_observation(self, observation, env_state):\n"
        '        return Observation("Nothing to see.")\n'
    )
    done = play("toy24", "1-2-3-4", "--layer", tmp_path / "quiet.py", "--sandbox", "process", lines=WINNING)
    told = done.stdout.split("What the layers did:\n")[1]
    assert "  before you began: what the world showed was changed\n" in told
    assert told.count("): what the world showed was changed\n") == 3


def test_layers_that_do_nothing_are_said_to() -> None:
    done = play("toy24", "1-2-3-4", "--layer", NO_UNDO, lines=WINNING)
    assert "What the layers did:\n  nothing to what you did or saw\n" in done.stdout


@pytest.mark.parametrize("last", [[":quit"], []])
def test_whoever_quits_gets_no_verdict_and_keeps_the_steps(last: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    done = play("toy24", "1-2-3-4", "--save", file, lines=["combine 0 1 *", *last])
    assert done.returncode == 3
    assert done.stderr == ""
    assert "no verdict; " in done.stdout
    assert "after 1 step: the " in done.stdout
    saved = json.loads(file.read_text())
    assert saved["verdict"] is None
    assert len(saved["steps"]) == 1


def test_the_step_limit_ends_the_game() -> None:
    done = play("toy24", "1-2-3-4", "--steps", "1", lines=WINNING)
    assert "failure, score 0, moves 1, undos 0; agent_limit after 1 step" in done.stdout


def test_bytes_that_are_no_text_are_no_call() -> None:
    done = play("toy24", "1-2-3-4", typed=b"combine \xff 1 *\n\0\nstop\n")
    assert done.stdout.count("Not done: ") == 2
    assert "completed after 1 step" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("toy24", "9-9-9-9"), "unknown task"),
        (("toy25", "1-2-3-4"), "unknown bridge"),
        (("toy24", "1-2-3-4", "--layer", "nothing"), "unknown layer"),
        (("toy24", "1-2-3-4", "--save", "no/such/folder/x.jsonl"), "can't be written"),
    ],
)
def test_bad_input_is_one_line_before_the_game(args: tuple[str, ...], said: str) -> None:
    done = play(*args, lines=WINNING)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A game of which a pseudo-terminal is the terminal."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    game = subprocess.Popen(
        [*PLAY, "toy24", "1-2-3-4", "--save", str(tmp_path / "mine.jsonl")],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(follower)
    yield game, leader
    game.kill()
    game.wait()
    os.close(leader)


def read_until(leader: int, said: bytes) -> bytes:
    seen = b""
    while said not in seen:
        assert select.select([leader], [], [], 30)[0], seen
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other side has gone
            part = b""
        if not part:
            raise AssertionError(seen)
        seen += part
    return seen


def test_at_a_terminal_a_game_is_won(terminal: tuple[subprocess.Popen[bytes], int]) -> None:
    game, leader = terminal
    for number, line in enumerate(WINNING, 1):
        read_until(leader, b"%d> " % number)
        os.write(leader, f"{line}\n".encode())
    assert b"success, score 1" in read_until(leader, b"1 episode")
    assert game.wait(20) == 0


def test_ctrl_c_ends_it_at_once_and_saves_nothing(
    terminal: tuple[subprocess.Popen[bytes], int], tmp_path: Path
) -> None:
    game, leader = terminal
    read_until(leader, b"1> ")
    pressed = 0
    while not select.select([leader], [], [], 1)[0]:  # readline is deaf for a moment after its prompt
        assert pressed < 10
        game.send_signal(signal.SIGINT)
        pressed += 1
    read_until(leader, b"interrupted")
    assert game.wait(20) == 130
    assert list(tmp_path.iterdir()) == []


def test_ctrl_d_quits(terminal: tuple[subprocess.Popen[bytes], int]) -> None:
    game, leader = terminal
    read_until(leader, b"1> ")
    os.write(leader, b"\x04")
    assert b"no verdict; " in read_until(leader, b"1 episode")
    assert game.wait(20) == 3


def asked(
    lines: str, *texts: str, tools: Sequence[Tool] | None = None, data: dict[str, Any] | None = None
) -> tuple[list[Action], str]:
    """Let a person with these lines answer these observations, and return what was done and written."""
    sink = io.StringIO()
    person = Person(source=io.StringIO(lines), sink=sink)
    person.start("Do it.", Toy24().tools() if tools is None else tools, 0)
    replies = [person.act(Observation(text, data or {})) for text in texts]
    return [reply.actions[0] for reply in replies], sink.getvalue()


def test_only_what_is_new_is_shown() -> None:
    _, written = asked("undo\n" * 5, "world", "closed\n\nworld", "shut\n\nworld", "world", "closed\n\nother")
    assert written.count("world") == 1
    assert "\nclosed\n(The rest" in written
    assert "\nshut\n(The rest" in written
    assert "(What is shown hasn't changed" in written
    assert "\nclosed\n\nother\n" in written


def test_everything_is_shown_when_asked_for() -> None:
    _, written = asked(
        "go hall\n:observe\n:task\n:tools\nlook\n", "a", "no\n\na", tools=TextWorld().tools(), data={"k": [1]}
    )
    assert '2> no\n\na\n{\n "k": [\n  1\n ]\n}\n' in written
    assert written.count("Task: Do it.") == 2
    assert written.count("  do(text)\n") == 2


def test_a_sentence_is_an_action_where_the_only_tool_takes_one() -> None:
    done, _ = asked("go kitchen\n", "x", tools=TextWorld().tools())
    assert done == [Action("do", {"text": "go kitchen"})]


def test_what_the_world_says_does_nothing_to_the_terminal() -> None:
    _, written = asked("stop\n", "red \x1b[31m \ud83d")
    assert "red \\x1b[31m ?" in written


def test_whoever_quits_is_heard() -> None:
    for lines, said in ((":quit\n", "stopped"), ("", "input has ended")):
        with pytest.raises(CancelledError, match=said):
            asked(lines, "x")
