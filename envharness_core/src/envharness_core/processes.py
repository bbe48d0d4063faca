"""What whoever starts processes of this interpreter needs to know."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def import_paths() -> str:
    """Return this interpreter's paths as PYTHONPATH has them, so that another one finds the same modules."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)


def how_ended(code: int) -> str:
    """Say how a process ended, by its return code: a signal's name where it is negative."""
    if code >= 0:
        return f"exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return known.get(-code, f"signal {-code}")
