"""What the tests of ``child`` run in a process of its own."""

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def echo(options: dict[str, Any]) -> Callable[[bytes], bytes]:
    def answer(request: bytes) -> bytes:
        print("noise on standard output", flush=True)
        os.write(1, b"and past sys.stdout\n")
        return str(options["prefix"]).encode() + request

    return answer


def fragile(_: dict[str, Any]) -> Callable[[bytes], bytes]:
    def answer(request: bytes) -> bytes:
        what = request.decode()
        if what == "raise":
            raise ValueError("that can't be done")
        if what == "exit":
            print("these are my last words", file=sys.stderr)
            sys.exit(3)
        if what == "crash":
            ctypes.string_at(0)
        if what == "hang":
            time.sleep(600)
        if what == "flood":
            return b"x" * (1 << 20)
        if what == "shout":
            print("x" * (3 << 20))
        return str(os.getpid()).encode()

    return answer


def broken(_: dict[str, Any]) -> Callable[[bytes], bytes]:
    raise RuntimeError("no such engine")


def arguments(_: dict[str, Any]) -> Callable[[bytes], bytes]:
    return lambda _: repr(sys.argv[1:]).encode()
