"""Warnings and notes for the log of whoever runs this; the library is imported when there is something to say."""

from __future__ import annotations


def warn(event: str, **facts: object) -> None:
    """Log a warning: an event's name and key-values."""
    import structlog  # with rich behind it, which costs more than all that is said here

    structlog.get_logger().warning(event, **facts)


def note(event: str, **facts: object) -> None:
    """Log what is worth a line in a log file; where nobody has configured logging, nothing is said."""
    import structlog

    if structlog.is_configured():
        structlog.get_logger().info(event, **facts)
