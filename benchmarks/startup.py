"""How long ``envharness --help`` takes, beside ``import click``.

Both are whole processes of the same interpreter, started in turn; the figure is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

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
    ratio = median(shown / click for shown, click, _ in rounds)
    milliseconds = [median(column) * 1e3 for column in zip(*rounds, strict=True)]
    if options.as_json:
        names = ("help_ms", "import_click_ms", "bare_python_ms")
        figures = {
            "help": {"value": ratio, "unit": "x import click", "target": TARGET, "met": ratio <= TARGET}
        }
        print(json.dumps({**figures, **dict(zip(names, milliseconds, strict=True))}, indent=2))
        return
    print(f"{'process':24}{'median ms':>10}")
    for name, median_ms in zip(
        ("envharness --help", "import click", "bare python"), milliseconds, strict=True
    ):
        print(f"{name:24}{median_ms:10.1f}")
    print(
        f"help: {ratio:.2f} x import click (target <= {TARGET:g}: {'met' if ratio <= TARGET else 'missed'})"
    )


def _seconds(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
