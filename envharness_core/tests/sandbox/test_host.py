"""The sandbox's processes: what is started ends, whatever happens, and every limit holds."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envharness_core.data import Action
from envharness_core.episode import Design, EpisodeSpec, Limits
from envharness_core.errors import ConfigError, RulesError, SandboxError
from envharness_core.outcome import Outcome
from envharness_core.player import Player
from envharness_core.plugins import Plugins
from envharness_core.sandbox import protocol as p
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.sandbox.host import Sandbox, shared
from envharness_core.sandbox.wire import Wire
from envharness_core.seeds import Seeds
from envharness_core.spec import ComponentSpec

PASS = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        return action\n"
SLOW = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        {}\n        return action\n"
STUBBORN = """
        while True:
            try:
                sum(range(10 ** 7))
            except BaseException:
                continue"""
DIG = "fake_response.__func__.__globals__['builtins'].__import__"
STATE = p.raw({"count": 0})


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(SandboxConfig(seconds=0.3, wall_seconds=1.5, memory_mb=256, reply_mb=0.1))
    yield made
    made.close()


def begun(sandbox: Sandbox, source: str) -> Wire:
    wire = sandbox.worker()
    wire.ask("source", p.Begin([p.Source(source, 1)], resumable=False), p.Loaded)
    return wire


def fault(sandbox: Sandbox, body: str) -> RulesError:
    wire = begun(sandbox, SLOW.format(body))
    with pytest.raises(RulesError) as caught:
        wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped)
    assert gone(wire.pid)
    return caught.value


def gone(pid: int) -> bool:
    """Whether a process has ended and was reaped."""
    return not Path(f"/proc/{pid}").exists()


def children(pid: int) -> set[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return {int(child) for child in listed.split()}


def zygote_of(sandbox: Sandbox) -> int:
    assert sandbox._zygote is not None
    return sandbox._zygote._process.pid


def test_a_loop_is_ended_and_told_with_its_line(sandbox: Sandbox) -> None:
    caught = fault(sandbox, "while True: pass")
    assert (caught.kind, caught.hook, caught.line) == ("timeout", "filter_action", 3)
    assert caught.trace == "line 3, in filter_action: while True: pass"


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ("sum(range(10 ** 12))", "timeout", "longer than"),
        (STUBBORN, "timeout", "longer than"),
        ("import time; time.sleep(60)", "forbidden", "sleeping are out of reach"),
        (f"{DIG}('os').read(3, 1)", "timeout", "waits for something that doesn't come"),
        ("raise ValueError(chr(27) + ']0;title' + chr(7))", "raised", r"ValueError: \\x1b\]0;title\\x07"),
        ("x = bytearray(1 << 30)", "memory", "MemoryError"),
        ("x = []\n        while True: x.append(bytearray(1 << 20))", "memory", "keep less"),
        (f"{DIG}('os')._exit(3)", "died", r"its process ended \(exit code 3\)"),
        (f"{DIG}('ctypes').string_at(0)", "died", r"its process ended \(SIGSEGV\)"),
        ("raise SystemExit(0)", "raised", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "raised", "KeyboardInterrupt"),
        ("return Action('x' * 200_000)", "contract", "104,857 are allowed"),
        ("open('/etc/hostname')", "forbidden", "files, processes, the network and sleeping are out of reach"),
        ("import socket", "forbidden", "not importable"),
        (f"{DIG}('socket').socket()", "forbidden", "Operation not permitted"),
        (f"{DIG}('os').fork()", "forbidden", "Operation not permitted"),
    ],
)  # fmt: skip
def test_each_fault_has_its_kind(sandbox: Sandbox, body: str, kind: str, says: str) -> None:
    caught = fault(sandbox, body)
    assert caught.kind == kind
    assert caught.hook == "filter_action"
    assert re.search(says, str(caught)), str(caught)


def test_a_worker_that_is_stopped_meets_the_clock(sandbox: Sandbox) -> None:
    wire = begun(sandbox, PASS)
    os.kill(wire.pid, signal.SIGSTOP)
    with pytest.raises(
        SandboxError, match=r"this machine is too busy: a call of rules had .* within 1\.5 seconds"
    ):
        wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped)
    assert gone(wire.pid)


def test_a_worker_may_not_work_between_two_calls(sandbox: Sandbox) -> None:
    busy = f"""
        os = {DIG}('os')
        import sys
        frame = {DIG}('sys')._getframe()
        while 'nonce' not in frame.f_locals:
            frame = frame.f_back
        frames = frame.f_globals['p'].frame(frame.f_locals['nonce'], frame.f_globals['p'].Passed('add', b'{{}}'))
        {DIG}('signal').setitimer(2, 0)
        os.write(4, frames)
        while True: pass"""
    wire = begun(sandbox, SLOW.format(busy.replace("        import sys\n", "")))
    assert wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped) == p.Passed(
        "add", b"{}"
    )
    time.sleep(0.3)
    with pytest.raises(RulesError, match="went on working after it had answered"):
        wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped)
    assert gone(wire.pid)


def test_a_fault_that_cannot_be_is_a_fault_of_the_channel(sandbox: Sandbox) -> None:
    for forged in ("Fault(0, 'evaluate', 'raised', 'x', 1, '')", "Fault(0, 'source', 'died', 'x', 1, '')",
                   "Fault(0, 'source', 'raised', 'x', -5, '')"):  # fmt: skip
        body = f"""
        frame = {DIG}('sys')._getframe()
        while 'nonce' not in frame.f_locals:
            frame = frame.f_back
        p = frame.f_globals['p']
        {DIG}('os').write(4, p.frame(frame.f_locals['nonce'], p.{forged}))
        {DIG}('os').read(3, 1)"""
        caught = fault(sandbox, body)
        assert (caught.kind, caught.detail) == ("protocol", "it told of a fault that there can't be")


def test_a_starved_worker_is_not_a_slow_one(sandbox: Sandbox) -> None:
    wire = begun(sandbox, PASS)
    os.kill(wire.pid, signal.SIGSTOP)
    script = f"import os, signal, time; time.sleep(0.8); os.kill({wire.pid}, signal.SIGCONT)"
    with subprocess.Popen([sys.executable, "-c", script]):
        answer = wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped)
    assert isinstance(answer, p.Passed)
    wire.close()


def test_a_zygote_that_died_is_started_again(sandbox: Sandbox) -> None:
    wire = begun(sandbox, PASS)
    first = zygote_of(sandbox)
    os.kill(first, signal.SIGKILL)
    assert wire._started.pidfd is not None
    ended = select.poll()
    ended.register(wire._started.pidfd, select.POLLIN)
    assert ended.poll(5000)  # the worker dies with its zygote
    with pytest.raises(SandboxError, match="broke down"):
        wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped)
    begun(sandbox, PASS).close()
    assert zygote_of(sandbox) != first
    deadline = time.monotonic() + 5
    while not gone(wire.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(wire.pid)  # it died with its zygote


def test_a_worker_that_is_killed_is_a_fault_of_its_own(sandbox: Sandbox) -> None:
    wire = begun(sandbox, PASS)
    os.kill(wire.pid, signal.SIGKILL)
    with pytest.raises(RulesError, match=r"died\): its process ended \(SIGKILL\)"):
        wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped)


def test_a_lost_zygote_is_no_fault_of_the_rules() -> None:
    plugins = Plugins({"testing": "envharness_core.testing.plugin"}, sandbox=SandboxConfig(seconds=0.77))
    sandbox = shared(plugins.sandbox)
    with Player(plugins) as player:
        assert player.play(spec(PASS)).episode.outcome is Outcome.COMPLETED
        killing = f"import os, signal; os.kill({zygote_of(sandbox)}, signal.SIGKILL)"
        subprocess.run([sys.executable, "-c", killing], check=True)
        assert player.play(spec(PASS)).episode.outcome is Outcome.COMPLETED
    sandbox.close()


def spec(source: str, index: int = 0) -> EpisodeSpec:
    design = Design(
        bridge=ComponentSpec("testing/counter"),
        upstream="counter 1",
        task="three",
        layers=(ComponentSpec("core/rules", {"source": source}),),
        policy=ComponentSpec("scripted", {"actions": [{"name": "add"}, {"name": "submit"}]}),
        limits=Limits(steps=5),
    )
    return EpisodeSpec(design, "baseline", index, Seeds.of(0, "three", "baseline", index, seed_in_task=True))


@pytest.mark.slow
def test_nothing_is_left_after_a_thousand_episodes() -> None:
    plugins = Plugins({"testing": "envharness_core.testing.plugin"}, sandbox=SandboxConfig(seconds=0.78))
    sandbox = shared(plugins.sandbox)
    broken = SLOW.format("1 / 0")
    with Player(plugins) as player:
        player.play(spec(PASS))
        before = descriptors()
        outcomes = [
            player.play(spec(PASS if index % 10 else broken, index)).episode.outcome for index in range(1000)
        ]
        assert outcomes.count(Outcome.COMPLETED) == 900
        assert outcomes.count(Outcome.RULES_ERROR) == 100
        assert descriptors() <= before
        assert len(children(zygote_of(sandbox))) <= 1
    assert not children(zygote_of(sandbox))
    pid = zygote_of(sandbox)
    sandbox.close()
    assert gone(pid)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted, not walked


RUNNER = """
import signal, sys, time
from envharness_core import stack
source = "class _Rules(Rules):\\n    def filter_action(self, a, s):\\n        while a: pass\\n        return a\\n"
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.plugins import Plugins
plugins = Plugins(sandbox=SandboxConfig(seconds=3000, wall_seconds=3000))
env = stack("toy24", [{"use": "rules", "source": source}], plugins=plugins)
env.reset(0, {"task": "1-2-3-4"})
run = env.chain.layers[0][1].run
print(run._wire.pid, run._sandbox._zygote._process.pid, flush=True)
from envharness_core import Action
env.step(Action("undo"))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_runner_that_ends_takes_everything_with_it(number: signal.Signals) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(RUNNER)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with runner:
        assert runner.stdout is not None
        worker, zygote = map(int, runner.stdout.readline().split())
        time.sleep(0.3)  # well into the loop
        assert not gone(worker)
        runner.send_signal(number)
        runner.wait(timeout=10)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not (gone(worker) and gone(zygote)):
        time.sleep(0.02)
    assert (gone(worker), gone(zygote)) == (True, True)


def test_a_fork_of_the_runner_leaves_the_zygote_to_it(sandbox: Sandbox) -> None:
    wire = begun(sandbox, PASS)
    zygote = zygote_of(sandbox)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            begun(sandbox, PASS).close()  # a zygote of its own
            wire.close()
            code = 0 if zygote_of(sandbox) != zygote else 2
            sandbox.close()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert isinstance(
        wire.ask("filter_action", p.Before(Action("add"), STATE), p.Passed | p.Stopped), p.Passed
    )
    assert zygote_of(sandbox) == zygote
    wire.close()


def test_a_machine_that_cannot_lock_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(SandboxConfig(memory_mb=300))
    monkeypatch.setattr(Wire, "hello", lambda *_: p.Unlocked("Landlock isn't available"))
    with pytest.raises(
        ConfigError, match=r"doesn't hold here: Landlock isn't available; run on Linux .* or choose"
    ):
        sandbox.require()
    sandbox.close()


def test_the_process_mode_is_a_choice_that_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    sandbox = Sandbox(SandboxConfig(mode="process"))
    sandbox.require()
    assert "sandbox_not_locked" in capsys.readouterr().out
    begun(sandbox, PASS).close()
    sandbox.close()


def test_the_probe_finds_that_everything_holds_here(sandbox: Sandbox) -> None:
    found = sandbox.probe()
    assert len(found) == 12
    assert [what for what, holds, _ in found if not holds] == []


def test_workers_have_an_empty_environment_and_no_descriptors_but_two(sandbox: Sandbox) -> None:
    wire = begun(sandbox, PASS)
    assert set(os.listdir(f"/proc/{wire.pid}/fd")) == {"3", "4"}  # noqa: PTH208
    status = Path(f"/proc/{wire.pid}/status").read_text(encoding="ascii")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (
        fields["CapEff"]
        == fields["CapPrm"]
        == fields["CapBnd" if os.geteuid() == 0 else "CapEff"]
        == "0" * 16
    )
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    zygote = Path(f"/proc/{zygote_of(sandbox)}/environ").read_text(encoding="utf-8")
    names = {entry.partition("=")[0] for entry in zygote.split("\0") if entry}
    assert names <= {"PATH", "LC_ALL", "PYTHONHASHSEED", "PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHOME"}
    wire.close()
