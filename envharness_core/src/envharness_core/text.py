"""Text from strangers, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return text that can be encoded and does nothing to a terminal: control characters are written out."""
    shown = text.encode(errors="replace").decode()
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in shown)
