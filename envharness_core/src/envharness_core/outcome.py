"""How an episode ended; a verdict is optional, and nothing turns an exception into a score."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How an episode ended. Only the first three can carry a verdict."""

    COMPLETED = "completed"
    """The benchmark ended it."""
    AGENT_LIMIT = "agent_limit"
    """The agent's steps, or its context, ran out."""
    TIMEOUT = "timeout"
    """Time ran out; graded only where it was the policy's own."""
    POLICY_ERROR = "policy_error"
    PROVIDER_ERROR = "provider_error"
    ENV_ERROR = "env_error"
    RULES_ERROR = "rules_error"
    """A layer broke the contract; says nothing about the policy."""
    VERIFIER_ERROR = "verifier_error"
    CANCELLED = "cancelled"


GRADED = (Outcome.COMPLETED, Outcome.AGENT_LIMIT)
"""The outcomes that always carry a verdict."""

INFRASTRUCTURE = (
    Outcome.TIMEOUT,
    Outcome.PROVIDER_ERROR,
    Outcome.ENV_ERROR,
    Outcome.VERIFIER_ERROR,
    Outcome.CANCELLED,
)
"""The outcomes that, without a verdict, say something about the machinery alone: trying again later may help."""

MAY_BE_GRADED = (*GRADED, Outcome.TIMEOUT)
"""The outcomes that can carry a verdict."""
