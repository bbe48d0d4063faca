"""A scripted OpenAI-compatible server on localhost: a faithful double for whoever talks to models.

    from envharness_core.testing import Fault, ModelServer, Said, script

    brain = script(Said("Let me look.", calls=[("look", '{"at": "map"}')]), Said("Done."))
    with ModelServer(brain, [Fault.rate_limited(retry_after=1)]) as server:
        ...  # any client with the base URL server.base_url; then look at server.requests

It answers chat (in one piece or as a stream), embeddings and the list of models. To serve until interrupted::

    python -m envharness_core.testing.model_server --port 8765 --brain my_brains:talk
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from threading import Condition, Event, Thread
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from envharness_core.errors import ConfigError, OrderError
from envharness_core.jsondata import JsonObject
from envharness_core.testing.model_faults import Fault, Limit
from envharness_core.testing.model_said import Brain, echo
from envharness_core.testing.model_service import Reply, Service, refusal

_HOST = "127.0.0.1"
_PATIENCE = 2.0  # seconds that closing waits for answers that are on their way


@frozen
class Asked:
    """One request as the server saw it.

    Args:
        path: the path, without the query.
        body: the body; empty where there is none or it can't be read.
        key: the key in its Authorization header; empty where there is none.
        arrived: when it was there, in seconds of ``time.monotonic()``, which all processes of a machine share.
        status: the status that was answered; None before that, and where the connection was reset.
        seconds: how long the answer took, up to its last bytes; None before that.
        error: what went wrong; None where nothing did.
    """

    path: str
    body: JsonObject
    key: str = field(repr=False)
    arrived: float
    status: int | None = None
    seconds: float | None = None
    error: str | None = None


class ModelServer:
    """Serves a brain on localhost, between ``with`` and its end.

    What is answered is recorded before the last bytes leave, so that a client that has its answer finds it here.

    Args:
        brain: decides what the model says; called by many threads at once.
        faults: what goes wrong; of several that are due, the first.
        keys: the keys that are accepted; empty accepts any, and none.
        limit: how many requests of a key are answered.
        models: the models that exist; empty accepts any name.
        context: how many words a model's context holds; None for any number.
        port: 0 picks a free one.
    """

    def __init__(
        self,
        brain: Brain = echo,
        faults: Sequence[Fault] = (),
        *,
        keys: tuple[str, ...] = (),
        limit: Limit | None = None,
        models: tuple[str, ...] = (),
        context: int | None = None,
        port: int = 0,
    ) -> None:
        self._service = Service(brain, faults, keys=keys, limit=limit, models=models, context=context)
        self._port = port
        self._records = _Records()
        self._listener: _Listener | None = None

    def __enter__(self) -> Self:
        if self._listener is not None:
            raise OrderError("a model server serves once; make another")
        self._listener = _Listener(self._port, self._service, self._records)
        self._port = self._listener.server_address[1]
        Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.close()

    @property
    def base_url(self) -> str:
        """The base URL that clients want; after the end, one at which nobody listens."""
        if self._listener is None:
            raise OrderError("a model server has a base URL once it serves: with ModelServer(...) as server")
        return f"http://{_HOST}:{self._port}/v1"

    @property
    def requests(self) -> tuple[Asked, ...]:
        """All requests so far, as they arrived, those in flight among them."""
        return self._records.all()

    @property
    def in_flight_peak(self) -> int:
        """How many requests were in flight at the most."""
        return self._records.peak

    @property
    def key_counts(self) -> dict[str, int]:
        """How many requests came with each key."""
        return dict(Counter(asked.key for asked in self.requests))


class _Records:
    """What arrived, what came of it, and how much of it at once; threads may share it."""

    def __init__(self) -> None:
        self._asked: list[Asked] = []
        self._in_flight = 0
        self.peak = 0
        self._lock = Condition()

    def begin(self, path: str, key: str) -> int:
        with self._lock:
            self._asked.append(Asked(path, {}, key, time.monotonic()))
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
            return len(self._asked) - 1

    def answered(self, number: int, reply: Reply) -> None:
        """Keep what is going to be sent."""
        status = None if reply.ending == "reset" else reply.status
        with self._lock:
            asked = self._asked[number]
            self._asked[number] = evolve(asked, body=reply.body, status=status, error=reply.error)

    def end(self, number: int) -> None:
        with self._lock:
            asked = self._asked[number]
            if asked.seconds is None:
                self._asked[number] = evolve(asked, seconds=time.monotonic() - asked.arrived)
                self._in_flight -= 1

    def all(self) -> tuple[Asked, ...]:
        with self._lock:
            return tuple(self._asked)


class _Listener(ThreadingHTTPServer):
    """Accepts connections, a thread for each, and ends them all when it closes."""

    daemon_threads = True
    request_queue_size = 256  # many workers connect at once

    def __init__(self, port: int, service: Service, records: _Records) -> None:
        self.service, self.records = service, records
        self.closing = Event()
        self._open: set[socket.socket] = set()
        self._changed = Condition()
        super().__init__((_HOST, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that left needs no trace
            super().handle_error(request, client_address)

    def close(self) -> None:
        """Stop accepting, break off what waits, and see the threads end."""
        self.shutdown()
        self.server_close()
        self.closing.set()
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
            self._changed.wait_for(lambda: not self._open, _PATIENCE)


class _Handler(BaseHTTPRequestHandler):
    """Reads one connection's requests and sends what the service answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each event of a stream waits for the last one's receipt
    server: _Listener

    def do_GET(self) -> None:
        """Answer a request."""
        number = self.server.records.begin(urlsplit(self.path).path, self._key())
        try:
            reply = self._reply()
            self.server.records.answered(number, reply)
            self._send(reply, lambda: self.server.records.end(number))
        finally:
            self.server.records.end(number)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the base's own names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
        """Keep quiet: what arrives is recorded."""

    def _key(self) -> str:
        scheme, _, key = self.headers.get("Authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""

    def _reply(self) -> Reply:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.close_connection = True
            return refusal(Fault(411, message="A request needs a Content-Length.", code="length_required"))
        raw = self.rfile.read(int(length))
        return self.server.service.answer(self.command, urlsplit(self.path).path, self._key(), raw)

    def _send(self, reply: Reply, done: Callable[[], None]) -> None:
        """Send a reply; ``done`` is called before its last bytes leave."""
        if reply.wait_before == 0:
            self._wait(reply.wait)
        if reply.ending == "reset":
            done()
            self._reset()
        elif reply.stream:
            self._send_stream(reply, done)
        else:
            done()
            whole = b"".join(reply.half() if reply.ending == "cut" else reply.pieces)
            self._begin(reply, ("Content-Length", str(sum(map(len, reply.pieces)))))
            self.wfile.write(whole)

    def _send_stream(self, reply: Reply, done: Callable[[], None]) -> None:
        self._begin(reply, ("Transfer-Encoding", "chunked"))
        last = len(reply.pieces) - 1
        for index, piece in enumerate(reply.pieces):
            if 0 < index == reply.wait_before:
                self._wait(reply.wait)
            if index == last:
                done()
            end = b"0\r\n\r\n" if index == last and reply.ending == "whole" else b""
            self.wfile.write(b"%x\r\n%b\r\n%b" % (len(piece), piece, end))

    def _begin(self, reply: Reply, framing: tuple[str, str]) -> None:
        """Send the head."""
        self.close_connection = self.close_connection or reply.ending == "cut"
        self.send_response(reply.status)
        headers = {"Content-Type": reply.content_type, **reply.headers}
        for name, value in (*headers.items(), framing):
            self.send_header(name, value)
        if self.close_connection and reply.ending == "whole":
            self.send_header("Connection", "close")
        self.end_headers()

    def _wait(self, seconds: float) -> None:
        """Let nothing come for a while; an end of the server in that time breaks the connection off."""
        if seconds and self.server.closing.wait(seconds):
            raise ConnectionAbortedError

    def _reset(self) -> None:
        """Break the connection: what the client is told is that its peer reset it."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()


def load_brain(name: str) -> Brain:
    """Return the brain that ``module:attribute`` names.

    Raises:
        ConfigError: there is no such brain.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ConfigError(f"--brain: expected module:attribute, got {name!r}")
    try:
        brain: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"--brain {name}: {error}; name a function that can be imported from here"
        ) from error
    if not callable(brain):
        raise ConfigError(f"--brain {name}: must be a function of a request's body that returns a Said")
    return cast("Brain", brain)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted or terminated; the first line of the output is the base URL."""
    parser = argparse.ArgumentParser(description="Serve a scripted OpenAI-compatible model on localhost.")
    parser.add_argument("--port", type=int, default=8765, help="0 picks a free one (default: %(default)s)")
    parser.add_argument(
        "--brain", default="envharness_core.testing:echo", help="module:attribute (default: echo)"
    )
    chosen = parser.parse_args(arguments)
    try:
        server = ModelServer(load_brain(chosen.brain), port=chosen.port)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt), server:
            sys.stdout.write(f"{server.base_url}\n")
            sys.stdout.flush()
            Event().wait()
    except (ConfigError, OSError, OverflowError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
