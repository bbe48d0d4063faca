"""What asking models costs beside the models: the wait for a rate limit, the client's own work, and the record.

Every figure is a ratio to what is ideal, or a count, within one run; the service is a process of its own on localhost.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from envharness_core.jsondata import JsonObject
from envharness_core.session import Session
from envharness_core.testing import Limit, ModelServer, Said
from envharness_llm.client import Client
from envharness_llm.messages import Message, Params, Request
from figures import Figure, show

WORKERS = 64
WINDOWS, ALLOWED = (1.0, 5.0), 16  # seconds, and requests in each of them
WAIT = 0.2  # seconds, what a fast model takes
ROUNDS = 6
REPLAYED = 400

os.environ.setdefault("BENCHMARK_KEY", "benchmark")


def thinking(body: JsonObject) -> Said:
    """Answer after as many seconds as the model's name says."""
    time.sleep(float(str(body["model"]).removeprefix("takes-")))
    return Said("Done.", calls=(("stop", "{}"),) if body.get("tools") else ())


def request(number: int, wait: float = WAIT) -> Request:
    """Return a request that nobody else makes, of a model that takes so many seconds."""
    words = Message("user", f"Numbers: [0] 1  [1] 2  [2] 3  [3] 4. Step {number}.")
    return Request(
        Params(f"openai/takes-{wait:g}", 0.4), (Message("system", "Play."), words), "policy", seed=number
    )


def client(base: str, folder: Path | None = None, **settings: object) -> Client:
    """Return a client for a service."""
    told = {
        "api_base": base,
        "keys": ["BENCHMARK_KEY"],
        "in_flight": 256,
        "prices": {"openai/takes-0.2": {"input": 1}},
    }
    return Client.of(Session(folder, {**told, **settings}))  # type: ignore[dict-item]


@contextmanager
def served() -> Iterator[str]:
    """Run the thinking model as a process of its own, so that its work isn't counted with the client's."""
    command = [
        sys.executable,
        "-m",
        "envharness_core.testing.model_server",
        "--port",
        "0",
        "--brain",
        "models:thinking",
    ]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout
        base = process.stdout.readline().strip().split()[-1]
        assert urlsplit(base).port
        try:
            yield base
        finally:
            process.terminate()


def limited(window: float) -> list[Figure]:
    """Have 64 workers on one key call a service that allows 16 calls in so many seconds."""
    with ModelServer(limit=Limit(ALLOWED, window, precise=True)) as server:
        asking = client(server.base_url)
        with ThreadPoolExecutor(WORKERS) as pool:
            began = time.monotonic()
            list(pool.map(lambda number: asking.ask(request(number)), range(WORKERS)))
            took = time.monotonic() - began
        refused = sum(asked.status == 429 for asked in server.requests)
    least = (WORKERS / ALLOWED - 1) * window
    return [
        Figure(f"64_limited_{window:g}_s_over_least", took / least, target=1.25),
        Figure(f"refusals_a_call_{window:g}_s", refused / WORKERS),
    ]


def beside(base: str, workers: int, wait: float) -> Figure:
    """Have many workers ask a model that takes its time, again and again, and compare with its time alone."""
    asking = client(base)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda number: asking.ask(request(number, wait)), range(workers)))  # warm
        began = time.monotonic()
        list(pool.map(lambda number: asking.ask(request(number, wait)), range(workers * ROUNDS)))
        took = time.monotonic() - began
    target = 1.05 if workers <= 64 else 1.15
    return Figure(f"{workers}_at_once_{wait:g}_s_over_the_model", took / (ROUNDS * wait), target=target)


def work(base: str) -> list[Figure]:
    """Count the client's own processor time a call, and what an answer from the record takes beside it."""
    with tempfile.TemporaryDirectory() as folder:
        asking = client(base, Path(folder))
        with ThreadPoolExecutor(16) as pool:
            began = time.process_time()
            list(pool.map(lambda number: asking.ask(request(number)), range(REPLAYED)))
            asked = (time.process_time() - began) / REPLAYED
            began = time.process_time()
            list(pool.map(lambda number: _alone(base, number), range(REPLAYED)))
            alone = (time.process_time() - began) / REPLAYED
        began = time.process_time()
        for number in range(REPLAYED):
            asking.ask(request(number))
        replayed = (time.process_time() - began) / REPLAYED
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return [
        Figure("processor_time_a_call", asked * 1e3, "ms"),
        Figure("a_call_over_litellm_alone", asked / alone, target=1.3),
        Figure("an_answer_from_the_record_over_a_call", replayed / asked, target=0.2),
        Figure("record_bytes_a_call", size / REPLAYED, "bytes"),
    ]


def _alone(base: str, number: int) -> object:
    """Make the same call with litellm and nothing around it."""
    import litellm

    words = [{"role": said.role, "content": said.text} for said in request(number).messages]
    return litellm.completion(
        model=request(number).params.model,
        messages=words,
        temperature=0.4,
        seed=number,
        api_base=base,
        api_key="benchmark",
        num_retries=0,
        max_retries=0,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with served() as base:
        client(base).ask(request(0))  # imports litellm
        figures = [figure for window in WINDOWS for figure in limited(window)] + work(base)
        figures += [
            beside(base, 16, 0.2),
            beside(base, 64, 0.2),
            beside(base, 64, 1.0),
            beside(base, 256, 3.0),
        ]
    show(figures, as_json=as_json)


if __name__ == "__main__":
    main()
