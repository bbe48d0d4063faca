"""How a call of a model fails: what happened, by what is to be done about it."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from attrs import frozen

from envharness_core.errors import AccessError, ContextError, EnvHarnessError, ProviderError, RefusedError

Kind: TypeAlias = Literal["access", "context", "limited", "broken", "refused", "filtered"]
"""What to do: stop the run, end the episode, wait for one's turn, ask again a few times, give the call up; give up
what this very call is for."""

_CONTEXT = re.compile(
    r"context_length_exceeded|maximum context length|context (?:length|window|size) (?:is|of|was )?\s*exceed"
    r"|exceed\w* (?:the |its |this |model'?s |available |maximum )*context"
    r"|(?:prompt|input|conversation|messages?) (?:is|are) too long|input length .{0,80}exceed"
    r"|input token count .{0,80}exceed|(?:longer|larger|greater) than (?:the |this )?(?:model'?s |maximum )*context",
    re.IGNORECASE,
)
_NO_KEY = re.compile(
    r"missing credentials|missing .{0,30}api key|api[ _-]?key (?:\w+ ){0,4}(?:invalid|not valid|not found|must be set)"
    r"|API_KEY_INVALID",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"LLM Provider NOT provided", re.IGNORECASE)
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_FILTERS = ("content_filter", "content_policy_violation")
_PASSING = (408, 409, 425)  # a timeout, a conflict, too early


@frozen
class Failure:
    """A call that failed.

    Args:
        kind: what is to be done about it.
        text: what the service or the library said, without secrets.
        status: the HTTP status; None where there was no answer.
        wait: seconds after which the service wants to be asked again, as it said; None where it didn't.
        per_minute: whether it said that it counts by the minute.
    """

    kind: Kind
    text: str
    status: int | None = None
    wait: float | None = None
    per_minute: bool = False

    def error(self, model: str, variable: str, attempts: int) -> EnvHarnessError:
        """Make the error that tells of it.

        Args:
            model: which one was asked.
            variable: the environment variable that holds the key; empty where there is none.
            attempts: how many there were.
        """
        said = f"{self.status}: {self.text}" if self.status else self.text
        if self.kind == "context":
            return ContextError(f"the conversation doesn't fit into {model} ({said})")
        if self.kind == "access":
            return AccessError(f"{model}: {self._access(variable)} ({said})")
        if self.kind == "filtered":
            return RefusedError(f"{model}: the service's filter refuses what is said ({said})")
        if self.kind == "refused":
            return ProviderError(f"{model}: the service refuses the call ({said})")
        times = "once" if attempts == 1 else f"{attempts} times"
        unheard = "" if self.status else "; is the service up, and settings.llm.api_base where it is?"
        return ProviderError(f"{model}: the call failed {times} ({said}){unheard}")

    def _access(self, variable: str) -> str:
        place = variable or "the variable that litellm reads"
        if self.status == 404 or _NO_MODEL.search(self.text):
            return "there is no such model: check its name and settings.llm.api_base"
        if self.status in (402, 429):
            return f"the account of the key in {place} has no credit left"
        if not variable and not self.status:
            return (
                "there is no key: put one into the environment, such as OPENAI_API_KEY, or name a service of your own "
                "in settings.llm.api_base"
            )
        return f"the service refuses the key in {place}: check the key and what it may use"


def kind_of(status: int | None, code: str, text: str, *, policy: bool = False) -> Kind:
    """Say what is to be done about an error.

    Args:
        status: the HTTP status; None where there was no answer.
        code: the service's word for the error; empty where it has none.
        text: what it said.
        policy: whether its filter for contents refused the call.
    """
    if policy or code in _FILTERS:
        return "filtered"
    if status in (401, 402, 403, 404) or _NO_KEY.search(text):
        return "access"
    if status == 429:
        return "access" if code in _NO_QUOTA else "limited"
    if code == "context_length_exceeded" or _CONTEXT.search(text):
        return "context"
    if status is None or status >= 500 or status < 400 or status in _PASSING:
        return "broken"
    return "access" if _NO_MODEL.search(text) else "refused"
