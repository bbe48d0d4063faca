"""The one thing that policies, designers and extractors need of a model: that it answers."""

from __future__ import annotations

from typing import Protocol

from envharness_llm.messages import Answer, Request


class Model(Protocol):
    """Answers requests; the client is one, and so is a list of canned answers in a test."""

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request.

        Raises:
            ProviderError: the service failed for longer than the operator's patience; an episode isn't graded then.
            AccessError: it refuses the key, the account or the model.
            ContextError: the conversation doesn't fit into the model.
        """
