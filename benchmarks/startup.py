"""How long ``envharness --help`` takes, beside ``import click``.

Both are whole processes of the same interpreter, started in turn; the figure is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from figures import Figure, show

TARGET = 3.0
HELP = (str(Path(sys.executable).with_name("envharness")), "--help")
CLICK = (sys.executable, "-c", "import click")
BARE = (sys.executable, "-c", "pass")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=25, help="processes of each kind")
    options = parser.parse_args(arguments)
    rounds = [(_seconds(HELP), _seconds(CLICK), _seconds(BARE)) for _ in range(options.rounds + 1)][1:]
    named = zip(("help", "import_click", "bare_python"), zip(*rounds, strict=True), strict=True)
    ratio = Figure("help", median(shown / click for shown, click, _ in rounds), "x import click", TARGET)
    times = [Figure(f"{name}_time", median(taken) * 1e3, "ms") for name, taken in named]
    show([ratio, *times], as_json=options.as_json)


def _seconds(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
