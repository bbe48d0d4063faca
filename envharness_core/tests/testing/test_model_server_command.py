"""The scripted model server from a shell."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from model_lines import CHAT, HELLO  # type: ignore[import-not-found]

from envharness_core.errors import ConfigError
from envharness_core.testing.model_server import load_brain


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("json", "module:attribute"),
        ("no_such_module:talk", "no_such_module"),
        ("json:talk", "talk"),
        ("json:__name__", "function"),
    ],
)
def test_a_brain_that_does_not_exist_is_explained(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_brain(name)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_from_a_shell_it_serves_until_it_is_told_to_stop(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "my_brains.py").write_text(
        "from envharness_core.testing import Said\ndef talk(body):\n    return Said('mine')\n"
    )
    command = [sys.executable, "-W", "error", "-m", "envharness_core.testing.model_server"]
    with subprocess.Popen(
        [*command, "--port", "0", "--brain", "my_brains:talk"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        url = running.stdout.readline().strip()
        with urllib.request.urlopen(
            urllib.request.Request(url + CHAT, json.dumps(HELLO).encode()), timeout=10
        ) as response:
            assert json.load(response)["choices"][0]["message"]["content"] == "mine"
        running.send_signal(how)
        try:
            assert running.wait(10) == 0
        finally:
            running.kill()
        assert running.stderr.read() == ""


def test_from_a_shell_mistakes_are_explained_in_one_line() -> None:
    command = [sys.executable, "-m", "envharness_core.testing.model_server"]
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        for arguments, told in ((["--brain", "json:talk"], "json:talk"), (["--port", port], "in use")):
            ran = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
            assert ran.returncode == 2
            assert told in ran.stderr.splitlines()[-1]
            assert "Traceback" not in ran.stderr
