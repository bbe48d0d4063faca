"""The errors of EnvHarness, by who has to act.

::

    EnvHarnessError
    ├── ConfigError            the user: a config, a command line, a file
    │   └── CheckpointError    a checkpoint or run folder that can't be used
    ├── OrderError             the caller: a call at the wrong time
    │   └── EpisodeOver        a step after the end
    ├── PluginError            a plugin's author
    │   ├── NameConflict       two distributions claim one name
    │   ├── DataError          a value that isn't strict JSON
    │   ├── LayerError         a layer broke the contract
    │   │   └── RulesError     a hook of a Rules layer broke it, raised, or hung
    │   └── SetupError         a Setup's replay can't be done
    ├── BridgeError            the operator: the benchmark's runtime failed
    │   └── VerifierError      the verdict could not be had
    ├── SandboxError           the operator: the rules sandbox broke down; says nothing about the rules
    ├── ExecutorError          the operator: episodes couldn't be played, or were lost
    ├── RunError               the operator: a run stopped early, because too much failed
    ├── ProviderError          the operator: a model's service failed
    │   ├── AccessError        it refuses the key, the account or the model: asking again is no use
    │   └── RefusedError       it refuses this very call, such as for its contents; others may be answered
    ├── ContextError           nobody: the agent's context is full, which ends its episode
    └── CancelledError         nobody: whoever plays has stopped playing
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias


class EnvHarnessError(Exception):
    """The root of every error that EnvHarness raises on purpose."""


class ConfigError(EnvHarnessError):
    """Something that the user wrote names a thing that doesn't exist or isn't allowed."""


class CheckpointError(ConfigError):
    """A checkpoint or a run folder is damaged, foreign, or from a newer version."""


class OrderError(EnvHarnessError):
    """A call came at the wrong time: a step before reset, anything after close."""


class EpisodeOver(OrderError):  # noqa: N818 - the field's own word, as in StopIteration
    """A step came after the episode had terminated or been truncated."""


class PluginError(EnvHarnessError):
    """A plugin can't be loaded, or what it registered breaks the contract."""


class NameConflict(PluginError):  # noqa: N818 - says what happened
    """Two distributions claim the same plugin or component name."""


_KEY, _PATH = 80, 400  # characters of a key, and of a whole path, that an error shows


class DataError(PluginError):
    """A value that crosses the contract isn't strict JSON.

    Args:
        path: the key path of the value, such as ``data.numbers[2]``.
        problem: what is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'value'}: {problem}")
        self.path = path
        self.problem = problem

    def within(self, outer: str) -> DataError:
        """Return the same problem as seen from outside, where its place is in ``outer``: a key, or ``[index]``."""
        if not outer:
            return self
        dot = "." if self.path and not self.path.startswith("[") else ""
        path = f"{outer[:_KEY]}{dot}{self.path}"
        return DataError(path if len(path) <= _PATH else f"{path[:_PATH]}...", self.problem)

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str]]:
        return type(self), (self.path, self.problem)


class LayerError(PluginError):
    """A layer broke the contract."""


FaultKind: TypeAlias = Literal[
    "compile", "contract", "raised", "timeout", "memory", "died", "protocol", "forbidden"
]
"""What went wrong in a hook: see ``RulesError``."""


class RulesError(LayerError):
    """A hook of a Rules layer raised, hung, died, or returned what it may not.

    Args:
        hook: ``filter_action``, ``modify_transition``, ``filter_observation``, ``__init__``, or ``source`` while the
            code is loaded.
        kind: ``contract`` (a wrong type or value was returned) or ``raised``; of source code also ``compile``,
            ``timeout``, ``memory``, ``died`` (its process ended), ``protocol`` (it tampered with the channel) and
            ``forbidden`` (it tried what the sandbox doesn't allow).
        detail: what happened, written for the hook's author.
        line: the line in the author's source, from 1; None where it isn't known.
        trace: the lines that led there, outermost first.
    """

    def __init__(
        self, hook: str, kind: FaultKind, detail: str, line: int | None = None, trace: str = ""
    ) -> None:
        place = kind if line is None else f"{kind}, line {line}"
        super().__init__(f"{hook} ({place}): {detail}")
        self.hook = hook
        self.kind = kind
        self.detail = detail
        self.line = line
        self.trace = trace
        self.layer: int | None = None
        """The layer of a run of adjacent ones, from the innermost; None where it isn't known."""

    def name_layer(self, place: str) -> None:
        """Say in the message which layer it is."""
        self.args = (f"{place}: {self.args[0]}",)

    def told(self) -> str:
        """Return the message together with the author's own lines that led there."""
        return f"{self} [{self.trace.replace(chr(10), '; ')}]" if self.trace else str(self)

    def __reduce__(self) -> tuple[type[RulesError], tuple[str, FaultKind, str, int | None, str]]:
        return type(self), (self.hook, self.kind, self.detail, self.line, self.trace)


class SetupError(PluginError):
    """An action of a Setup's replay is malformed, ends the episode, or leaves the leg.

    Args:
        index: position of the action in the replay, from 0.
        action: how the action reads.
        problem: what it did.
    """

    def __init__(self, index: int, action: str, problem: str) -> None:
        super().__init__(f"setup action {index}, {action}: {problem}")
        self.index = index
        self.action = action
        self.problem = problem

    def __reduce__(self) -> tuple[type[SetupError], tuple[int, str, str]]:
        return type(self), (self.index, self.action, self.problem)


class BridgeError(EnvHarnessError):
    """The benchmark's runtime failed; says nothing about the policy."""


class VerifierError(BridgeError):
    """The bridge could not say how the episode went; never a score of 0."""


class SandboxError(EnvHarnessError):
    """The rules sandbox couldn't be started or broke down; says nothing about the rules in it."""


class ExecutorError(EnvHarnessError):
    """An executor raised, lost episodes, or returned what isn't theirs; the run can go on with another."""


class RunError(EnvHarnessError):
    """A run stopped early because the infrastructure failed too often; what had ended is stored."""


class ProviderError(EnvHarnessError):
    """A model's service failed, refused or limited a call; says nothing about the policy."""


class AccessError(ProviderError):
    """A model's service refuses the key, the account or the model; whoever else asks is refused too."""


class RefusedError(ProviderError):
    """A model's service refuses this very call, such as for its contents; what else is asked may be answered."""


class ContextError(EnvHarnessError):
    """An agent's context is full. A policy raises it; the episode then ends as ``agent_limit`` and is graded."""


class CancelledError(EnvHarnessError):
    """Whoever plays has stopped, such as a person who quits. A policy raises it; nothing more is played then."""


PLUGIN_FAULTS = (Exception, SystemExit)
"""What foreign code may raise at a border: a ``sys.exit`` of a plugin's is its fault, not the end of the program."""


@contextmanager
def foreign(who: str, kind: type[EnvHarnessError] = PluginError) -> Iterator[None]:
    """Turn whatever code of ``who`` raises into an error that names it; what is one of ours stays."""
    try:
        yield
    except EnvHarnessError:
        raise
    except PLUGIN_FAULTS as error:
        raise kind(f"{who} raised {type(error).__name__}: {error}") from error


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"``, or an empty string where nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def unknown(what: str, name: str, known: Iterable[str], *, where: str = "") -> ConfigError:
    """Make the error for a name that doesn't exist: the nearest one, and all that do."""
    names = sorted(known)
    listed = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
    prefix = f"{where}: " if where else ""
    return ConfigError(f"{prefix}unknown {what} {name!r}{nearest(name, names)}; known: {listed or 'none'}")
