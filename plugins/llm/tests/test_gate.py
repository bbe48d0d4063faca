"""A key's gate: nobody goes while it is shut, never too many at once, over threads and over processes."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from envharness_core.clock import ticking
from envharness_core.errors import AccessError
from envharness_llm.backoff import Backoff
from envharness_llm.failure import Failure
from envharness_llm.gate import Gate, find_gate

HOLDER = Path(__file__).parent / "fixtures" / "gate_holder.py"


def limited(wait: float | None, *, per_minute: bool = False) -> Failure:
    return Failure("limited", "slow down", 429, wait, per_minute)


def refuse(gate: Gate, wait: float | None, *, per_minute: bool = False) -> float:
    return gate.refuse(limited(wait, per_minute=per_minute), time.monotonic(), Backoff())


class Holder:
    """Another process at the same gate."""

    def __init__(self, digest: str, in_flight: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HOLDER), digest, str(in_flight)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, words: str) -> float:
        self.begin(words)
        return self.heard()

    def begin(self, words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()

    def heard(self) -> float:
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._process.communicate(timeout=10)


@pytest.fixture
def holder() -> Iterator[Callable[[str, int], Holder]]:
    made: list[Holder] = []

    def make(digest: str, in_flight: int) -> Holder:
        made.append(Holder(digest, in_flight))
        return made[-1]

    yield make
    for each in made:
        with suppress(ValueError):  # it was closed already
            each.close()


class Crowd:
    """Counts how many are in at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.peak = 0

    @contextmanager
    def member(self) -> Iterator[None]:
        with self._lock:
            self._now += 1
            self.peak = max(self.peak, self._now)
        yield
        with self._lock:
            self._now -= 1


def at_once(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_threads_are_never_more_than_may_be_in_flight(tmp_path: Path) -> None:
    gates = [Gate(tmp_path, 3), Gate(tmp_path, 3)]  # as two processes have them: they share only the files
    crowd = Crowd()

    def work(number: int) -> None:
        with gates[number % 2].slot(), crowd.member():
            time.sleep(0.02)

    at_once(work, 16)
    assert crowd.peak == 3


def test_whoever_uses_the_same_key_meets_at_the_same_gate() -> None:
    assert find_gate("one", 4) is find_gate("one", 4)
    assert find_gate("one", 4) is not find_gate("two", 4)


def test_a_slot_is_free_again_when_its_call_fails(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 1)
    for _ in range(3):
        with suppress(ValueError), gate.chosen(), gate.slot():
            assert gate.busy == 1
            raise ValueError
    assert gate.busy == 0


def test_nobody_on_the_key_goes_while_it_is_shut(tmp_path: Path) -> None:
    first, second = Gate(tmp_path, 4), Gate(tmp_path, 4)
    assert first.shut() == second.shut() == 0.0
    assert refuse(first, 0.4) == 0.4
    assert 0.3 < second.shut() <= 0.4
    time.sleep(0.41)
    assert first.shut() == second.shut() == 0.0


def test_a_refusal_can_only_make_it_longer(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 4)
    refuse(gate, 9.0)
    refuse(gate, 1.0)
    assert 8.0 < gate.shut() <= 9.0
    refuse(gate, 20.0)
    assert 19.0 < gate.shut() <= 20.0


def test_a_gate_never_shuts_for_more_than_a_day(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 4)
    assert refuse(gate, 1e9) == 24 * 3600
    assert 0 < gate.shut() <= 24 * 3600


@pytest.mark.parametrize(
    "content",
    [b"", b"torn", struct.pack("<dd", time.time() + 1e7, 0.0), struct.pack("<dd", float("nan"), 0.0)],
)
def test_nonsense_in_the_file_shuts_nothing_and_is_mended(tmp_path: Path, content: bytes) -> None:
    gate = Gate(tmp_path, 4)
    gate.shut()
    (tmp_path / "state").write_bytes(content)
    assert gate.shut() == 0.0
    refuse(gate, 5.0)
    assert 4.0 < gate.shut() <= 5.0


def test_a_key_that_stays_refused_rests_longer_each_time_until_a_call_gets_through(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 4)
    rests = [refuse(gate, 0.0) for _ in range(14)]
    assert rests == sorted(rests)
    assert rests[0] <= 0.05
    assert rests[-1] == 60.0
    gate.served()
    assert refuse(gate, 0.0) == rests[0]


def test_refusals_of_calls_that_were_on_their_way_count_as_one(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 16)
    began = time.monotonic()
    assert len({gate.refuse(limited(0.0), began, Backoff()) for _ in range(16)}) == 1


def test_where_nothing_is_named_a_limit_of_the_minute_ends_with_the_minute(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 4)
    gate.shut()  # the key's first call in the minute
    (tmp_path / "state").write_bytes(struct.pack("<dd", 0.0, time.time() - 48.0))
    assert gate.shut() == 0.0
    assert 11.0 < refuse(gate, None, per_minute=True) <= 12.0


def test_a_new_minute_begins_with_the_first_call_after_the_last(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 4)
    gate.shut()
    (tmp_path / "state").write_bytes(struct.pack("<dd", 0.0, time.time() - 61.0))
    gate.shut()
    assert 59.0 < refuse(gate, None, per_minute=True) <= 60.0


def test_where_nothing_is_named_at_all_it_rests_for_a_second_or_two(tmp_path: Path) -> None:
    assert 1.0 <= refuse(Gate(tmp_path, 4), None) <= 2.0


def test_waiting_for_a_slot_is_not_the_policys_time(tmp_path: Path) -> None:
    gate, entered = Gate(tmp_path, 1), threading.Event()

    def hold() -> None:
        with gate.slot():
            entered.set()
            time.sleep(0.4)

    holding = threading.Thread(target=hold)
    holding.start()
    assert entered.wait(5)
    with ticking() as clock:
        began = time.monotonic()
        with Gate(tmp_path, 1).slot():
            waited = time.monotonic() - began
        assert waited > 0.2
        assert clock.elapsed < 0.15
    holding.join()


def test_another_process_waits_for_a_slot_and_for_the_gate(holder: Callable[[str, int], Holder]) -> None:
    gate = find_gate("shared", 1)
    other = holder("shared", 1)
    assert other.say("look") == 0.0
    refuse(gate, 5.0)
    assert 3.0 < other.say("look") <= 5.0
    other.say("refuse 50")
    assert 48.0 < gate.shut() <= 50.0
    with gate.slot():
        other.begin("enter 0")
        began = time.monotonic()
        time.sleep(0.3)
    other.heard()
    assert time.monotonic() - began >= 0.3


def test_what_a_killed_process_held_is_free_again(holder: Callable[[str, int], Holder]) -> None:
    gate = find_gate("killed", 2)
    other = holder("killed", 2)
    other.say("hold")
    other.say("hold")
    entered = threading.Event()

    def enter() -> None:
        with gate.slot():
            entered.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    assert not entered.wait(0.3)
    other.kill()
    assert entered.wait(2)
    thread.join()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # other tests may have left threads
def test_a_child_that_was_forked_while_a_slot_was_held_keeps_nothing() -> None:
    gate = find_gate("forked", 1)
    with gate.slot():
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
    try:
        began = time.monotonic()
        with Gate(gate.folder, 1).slot():
            assert time.monotonic() - began < 5
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_folder_that_was_tidied_away_is_made_again(own_place: Path) -> None:
    gate = find_gate("tidied", 2)
    refuse(gate, 5.0)
    for path in sorted(gate.folder.rglob("*"), reverse=True):
        path.unlink()
    gate.folder.rmdir()
    assert gate.shut() == 0.0
    with gate.slot():
        assert gate.folder.is_relative_to(own_place)


def test_the_folder_is_this_users_alone(own_place: Path) -> None:
    gate = find_gate("private", 2)
    gate.shut()
    folder = own_place / f"envharness-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_folder_that_others_may_have_prepared_is_refused(own_place: Path, kind: str) -> None:
    folder = own_place / f"envharness-{os.getuid()}"
    if kind == "open":
        folder.mkdir(mode=0o755)
        folder.chmod(0o777)
    elif kind == "link":
        (own_place / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(own_place / "elsewhere")
    else:
        folder.write_text("")
    with pytest.raises(AccessError, match="TMPDIR"):
        find_gate("anything", 1)
