"""Verification in several processes: the same answer as in one, sooner."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from envharness_core.errors import EnvHarnessError, ExecutorError
from envharness_core.plugins import Plugins
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.store import Store
from envharness_core.verify import Replayer, Verification, check_complete, compared, missing, verify_run

_CHUNK = 250  # episodes that a process gets at a time
_WORTH = 1000  # episodes, below which a further process takes longer to start than it saves


def cpus() -> int:
    """Return how many CPUs this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def verify_jobs(
    store: Store,
    plugins: Plugins,
    jobs: int,
    heard: Callable[[Verification], None] = lambda _: None,
    *,
    worth: int = _WORTH,
    chunk: int = _CHUNK,
) -> Verification:
    """Verify every episode of a run in up to ``jobs`` processes; the answer doesn't depend on how many.

    A script that calls this needs the usual ``if __name__ == "__main__"`` around its work.

    Args:
        store: the run's.
        plugins: where bridges are looked up, here and in the processes.
        jobs: at least 1.
        heard: called now and then with what was found so far.
        worth, chunk: how many episodes a process must get to be started, and gets at a time.

    Raises:
        CheckpointError: its trajectories were pruned.
        ExecutorError: a process died.
    """
    places = store.places()
    count = min(jobs, len(places) // worth)
    if count <= 1:
        return verify_run(store, plugins, heard)
    check_complete(store)
    chunks = [places[start : start + chunk] for start in range(0, len(places), chunk)]
    parts: dict[int, Verification] = {}
    found, following = Verification(), 0
    for number, part in _in_processes(store.folder, plugins, chunks, min(count, len(chunks))):
        parts[number] = part
        while following in parts:  # in order, whichever process was faster
            found.add(parts.pop(following))
            following += 1
        heard(found)
    found.missing = missing(store, found)
    return found


def _in_processes(
    folder: Path, plugins: Plugins, chunks: list[list[int]], count: int
) -> Iterator[tuple[int, Verification]]:
    """Yield what was found in each chunk of places, with its number, in any order."""
    context = get_context("spawn")
    workers: dict[Connection, SpawnProcess] = {}
    orders = iter(enumerate(chunks))
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, folder, plugins.modules, plugins.sandbox), daemon=True
            )
            process.start()
            theirs.close()  # so that its end is seen here
            workers[ours] = process
            ours.send(next(orders))
        busy = set(workers)
        while busy:
            for channel in wait(busy):
                assert isinstance(channel, Connection)
                yield _answer(channel, workers[channel])
                order = next(orders, None)
                if order is None:
                    busy.discard(channel)
                else:
                    channel.send(order)
    finally:
        for channel, process in workers.items():
            channel.close()
            process.terminate()
            process.join()


def _answer(channel: Connection, process: SpawnProcess) -> tuple[int, Verification]:
    try:
        number, answer = channel.recv()
    except (EOFError, OSError) as error:
        process.join(timeout=5)
        raise ExecutorError(
            f"a verifying process died (exit code {process.exitcode}); --jobs 1 verifies in this one"
        ) from error
    if isinstance(answer, EnvHarnessError):
        raise answer
    return number, answer


def _serve(channel: Connection, folder: Path, modules: Mapping[str, str], sandbox: SandboxConfig) -> None:
    """Verify the places that come down a channel until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it closes the channel
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with (
        closing(Replayer(Plugins(modules, sandbox=sandbox))) as replayer,
        Store.open(folder, read_only=True) as store,
    ):
        while True:
            try:
                number, places = channel.recv()
                channel.send((number, _found(store, replayer, places)))
            except (EOFError, ConnectionError):  # the parent has gone, or has seen enough
                return


def _found(store: Store, replayer: Replayer, places: list[int]) -> Verification | EnvHarnessError:
    found = Verification()
    try:
        for row in store.recorded(places):
            found.count(row, *compared(replayer, row))
    except EnvHarnessError as error:
        return error
    return found
