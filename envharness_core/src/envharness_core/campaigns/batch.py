"""What a decision waits for: rollouts, in rollout order whichever worker was faster, and answers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar, cast

from attrs import frozen

from envharness_core.episode import Design, Episode, graded
from envharness_core.outcome import INFRASTRUCTURE, Outcome

T = TypeVar("T")

_LONGEST = 60.0  # seconds between two tries


@frozen
class Batch:
    """Rollouts to play: a design, a stream, and indices of it.

    Args:
        later: whether they may wait until nothing more urgent is to be done.
        share: how many consecutive indices have the layers' seed in common.
        delay: seconds to let pass before the first of them.
    """

    design: Design
    stream: str
    indices: tuple[int, ...]
    later: bool = False
    share: int = 1
    delay: float = 0.0


@frozen
class Ask:
    """A question that may take long, such as one to a designer that asks a model.

    Args:
        call: asks it; what it returns is sent back, and what it raises is raised where it was yielded.
        waits: whether it waits for something other than this processor, so that others needn't wait for it.
    """

    call: Callable[[], object]
    waits: bool


Play: TypeAlias = Generator[Batch | Ask, Any, T]
"""A decision procedure: yields batches and is sent their episodes by index, yields questions and is sent their answers,
and returns what it decided.

It knows nothing of workers or stores, and the same episodes and answers always lead it to the same decisions: that is
what makes a killed run resumable.
"""


def driven(play: Play[T], episodes: Callable[[Batch], tuple[Episode, ...]]) -> T:
    """Drive a procedure to its end on the spot, with episodes that are at hand."""
    try:
        wanted = next(play)
        while True:
            try:
                answer = episodes(wanted) if isinstance(wanted, Batch) else wanted.call()
            except Exception as error:  # noqa: BLE001 - the procedure's to handle
                wanted = play.throw(error)
            else:
                wanted = play.send(answer)
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        play.close()


@frozen
class Rolled:
    """What came of a batch and of what made up for its failures.

    Args:
        graded: in rollout order.
        excluded: the others.
        next: the stream's next index.
    """

    graded: tuple[Episode, ...] = ()
    excluded: tuple[Episode, ...] = ()
    next: int = 0

    @property
    def played(self) -> tuple[Episode, ...]:
        """All episodes."""
        return (*self.graded, *self.excluded)

    @property
    def broken(self) -> Episode | None:
        """The first episode that a layer broke, or None."""
        broken = [item for item in self.excluded if item.outcome is Outcome.RULES_ERROR]
        return min(broken, key=lambda item: item.index, default=None)


@frozen
class Rerolls:
    """How failed rollouts are made up for.

    Args:
        most: further ones, at most.
        backoff: seconds before the first of them where the infrastructure failed; twice as long each time, up to
            ``_LONGEST``.
    """

    most: int
    backoff: float = 0.0


def roll(design: Design, stream: str, before: Rolled, wanted: int, rerolls: Rerolls) -> Play[Rolled]:
    """Play until ``wanted`` more rollouts are graded, or ``rerolls`` more than that have been tried.

    A rules error ends it at once: grading the survivors of a broken layer would be bias.
    """
    graded_now, excluded, start = before.graded, before.excluded, before.next
    target, spare, delay = len(graded_now) + wanted, rerolls.most, 0.0
    while len(graded_now) < target:
        missing = target - len(graded_now)
        episodes = yield Batch(design, stream, tuple(range(start, start + missing)), delay=delay)
        start += missing
        graded_now += graded(episodes)
        excluded += tuple(item for item in episodes if not item.graded)
        failed = target - len(graded_now)
        rolled = Rolled(graded_now, excluded, start)
        if rolled.broken is not None or failed > spare:
            return rolled
        spare -= failed
        if any(item.outcome in INFRASTRUCTURE for item in episodes):
            delay = min(_LONGEST, 2 * delay or rerolls.backoff)
    return Rolled(graded_now, excluded, start)
