"""A child process: its answers, its faults, and that nothing of it is left."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envharness_core.child import Child
from envharness_core.errors import BridgeError

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture
def fragile() -> Iterator[Child]:
    child = Child("child_targets:fragile", {})
    yield child
    child.close()


@pytest.fixture(scope="module")
def echo() -> Iterator[Child]:
    sys.path.insert(0, str(HERE))
    child = Child("child_targets:echo", {"prefix": "> "})
    sys.path.remove(str(HERE))
    yield child
    child.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(request=st.binary(max_size=300_000))
def test_answers_what_it_was_asked_whatever_it_prints(echo: Child, request: bytes) -> None:
    assert echo.ask(request, 10) == b"> " + request


def test_an_exception_is_told_and_the_process_lives_on(fragile: Child) -> None:
    with pytest.raises(BridgeError, match=r"fragile: ValueError: that can't be done \[answer "):
        fragile.ask(b"raise", 10)
    assert fragile.alive
    assert fragile.ask(b"pid", 10) == str(fragile.pid).encode()


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("exit", r"its process ended \(exit code 3\): these are my last words"),
        ("crash", r"its process ended \(SIGSEGV\)"),
    ],
)
def test_a_death_is_told_with_its_last_words(fragile: Child, what: str, told: str) -> None:
    with pytest.raises(BridgeError, match=told):
        fragile.ask(what.encode(), 10)
    assert not fragile.alive
    with pytest.raises(BridgeError, match="was closed"):
        fragile.ask(b"pid", 10)


def test_one_that_hangs_is_ended(fragile: Child) -> None:
    with pytest.raises(BridgeError, match=r"no answer within 0\.3 seconds"):
        fragile.ask(b"hang", 0.3)
    assert _gone(fragile.pid)


def test_an_answer_that_is_too_large_ends_it() -> None:
    child = Child("child_targets:fragile", {}, largest=1000)
    with pytest.raises(BridgeError, match=r"1,048,576 bytes; 1,000 are allowed"):
        child.ask(b"flood", 10)
    assert _gone(child.pid)


def test_what_it_prints_takes_no_more_and_more_room(fragile: Child) -> None:
    for _ in range(4):
        fragile.ask(b"shout", 10)
    fragile.ask(b"pid", 10)
    assert os.fstat(fragile._said.fileno()).st_size < 4 << 20


def test_a_target_that_raises_is_told() -> None:
    with pytest.raises(BridgeError, match="RuntimeError: no such engine"):
        Child("child_targets:broken", {})


def test_a_target_that_is_not_there_is_told() -> None:
    with pytest.raises(BridgeError, match="no_such_module"):
        Child("no_such_module:x", {})


def test_upstream_sees_no_arguments() -> None:
    child = Child("child_targets:arguments", {})
    assert child.ask(b"", 10) == b"[]"
    child.close()


def test_close_is_idempotent_and_leaves_nothing() -> None:
    before = _descriptors()
    children = [Child("child_targets:fragile", {}) for _ in range(3)]
    for child in children:
        child.close()
        child.close()
    assert all(_gone(child.pid) for child in children)
    assert _descriptors() == before


def test_one_that_nobody_holds_any_more_ends() -> None:
    pid = Child("child_targets:fragile", {}).pid
    assert _gone(pid)


@pytest.mark.parametrize("request_", ["pid", "hang"])
def test_it_ends_with_an_owner_that_is_killed(request_: str) -> None:
    program = (
        "import sys, threading; from envharness_core.child import Child\n"
        "child = Child('child_targets:fragile', {})\n"
        "print(child.pid, flush=True)\n"
        f"child.ask({request_.encode()!r}, 600)\n"
        "threading.Event().wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        time.sleep(0.2)
        owner.kill()
    assert _gone(pid)


def test_a_forked_process_neither_asks_nor_ends_it(fragile: Child) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # says what it finds, and ends without pytest's own end
        told = b"asked"
        try:
            fragile.ask(b"pid", 5)
        except BridgeError as error:
            told = str(error).encode()
        fragile.close()
        os.write(write, told)
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as file:
        assert b"another process" in file.read()
    assert fragile.ask(b"pid", 10) == str(fragile.pid).encode()


def test_each_thread_may_have_its_own() -> None:
    answers: list[bytes] = []

    def ask() -> None:
        child = Child("child_targets:fragile", {})
        answers.append(child.ask(b"pid", 10))
        child.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 4


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and " Z " in Path(f"/proc/{pid}/stat").read_text():
            return True  # ended; whoever owned it was killed, and init hasn't looked yet
        time.sleep(0.02)
    return False


def _descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])
