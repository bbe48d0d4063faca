"""The extractor that needs no model: what winners of a task did in a situation that losers didn't."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from attrs import evolve, field, frozen, validators

from envharness_core.posterior import cell_posterior
from envharness_core.skills.extractor import Experience, Extractor
from envharness_core.skills.habits import Habit, Habits, Reader
from envharness_core.skills.skill import Skill
from envharness_core.skills.wording import Lesson, content_of, description_of, title_of
from envharness_core.trajectory import Rollout

NAME = "core/contrast"
_JEFFREYS = 0.5
_ORDER = ("refused", "failed", "passing", "malformed", "unchanged", "end", "start", "after", "ever")
"""Situations by how far what is learnt in them carries; decides between lessons of equal strength."""


@frozen
class ContrastConfig:
    """What is taken for a lesson.

    Args:
        per_task: skills of a task at most.
        min_winners: how many winning rollouts must have come to the situation.
        min_losers: the same of losing ones.
        confidence: how probable it must be, in [0.5, 1), that winners do so more often than losers, or less often;
            under Jeffreys priors, for each habit by itself.
        margin: by how much, in [0, 1], their shares must differ.
    """

    per_task: int = field(default=3, validator=validators.ge(1))
    min_winners: int = field(default=2, validator=validators.ge(1))
    min_losers: int = field(default=2, validator=validators.ge(1))
    confidence: float = field(default=0.95, validator=[validators.ge(0.5), validators.lt(1.0)])
    margin: float = field(default=0.5, validator=[validators.ge(0.0), validators.le(1.0)])


class Contrast(Extractor[ContrastConfig]):
    """Compares how winners and losers of one task acted in like situations, and says it in words.

    Many habits are looked at and few rollouts, so some of what it says is chance: the counts stand in the text.
    """

    def extract(self, experience: Experience, seed: int) -> Sequence[Skill]:
        config = self.config
        if len(experience.winners) < config.min_winners or len(experience.losers) < config.min_losers:
            return []
        reader = Reader([rolled.trajectory for rolled in experience.rollouts], experience.tools)
        read = [(rolled, reader.habits(rolled.trajectory)) for rolled in experience.rollouts]
        lessons = sorted(self._lessons(read), key=_rank)
        told = [_with_the_other(lesson, lessons) for lesson in _distinct(lessons)[: config.per_task]]
        return [_skill(lesson, experience, read) for lesson in told]

    def _lessons(self, read: Sequence[tuple[Rollout, Habits]]) -> Iterator[Lesson]:
        for habit in dict.fromkeys(habit for _, habits in read for habit in habits.did):
            won, lost = _counts(habit, read, success=True), _counts(habit, read, success=False)
            if won[1] < self.config.min_winners or lost[1] < self.config.min_losers:
                continue
            if abs(won[0] / won[1] - lost[0] / lost[1]) < self.config.margin:
                continue
            sure = more_often(won, lost)
            if sure >= self.config.confidence:
                yield Lesson(habit, won, lost, sure, do=True)
            elif 1 - sure >= self.config.confidence and habit.situation.kind != "ever":
                yield Lesson(habit, won, lost, 1 - sure, do=False)  # losers are at it for longer, and do more


@lru_cache(maxsize=4096)
def more_often(won: tuple[int, int], lost: tuple[int, int]) -> float:
    """Return the probability that winners' rate is above losers', each given as counts: did, of how many."""
    winners = cell_posterior(*won, _JEFFREYS)
    losers = cell_posterior(*lost, _JEFFREYS)
    below = accumulate(losers, initial=0.0)
    return sum(mass * (less + other / 2) for mass, less, other in zip(winners, below, losers, strict=False))


def _counts(habit: Habit, read: Sequence[tuple[Rollout, Habits]], *, success: bool) -> tuple[int, int]:
    came = [habits for rolled, habits in read if rolled.episode.success is success and _came(habit, habits)]
    return sum(habits.shows(habit) for habits in came), len(came)


def _came(habit: Habit, habits: Habits) -> bool:
    return habits.met.get(habit.situation, 0) > 0


def _rank(lesson: Lesson) -> tuple[float, int, bool, str, str]:
    strength = -round(lesson.sure, 2)
    order = _ORDER.index(lesson.habit.situation.kind)
    return strength, order, not lesson.do, lesson.habit.move.detail, title_of(lesson)


def _distinct(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Drop what says again what stands before it: of a situation the first, and of a move and its direction too."""
    kept: list[Lesson] = []
    for lesson in lessons:
        habit = lesson.habit
        said = (
            habit.situation == other.habit.situation
            or (lesson.do is other.do and (habit.move.kind, habit.move.call) == _acted(other))
            for other in kept
        )
        if not any(said):
            kept.append(lesson)
    return kept


def _with_the_other(lesson: Lesson, lessons: Sequence[Lesson]) -> Lesson:
    """Return a lesson with what most of the other side did in the same situation, where that is as clear."""
    others = (
        other.habit.move
        for other in lessons
        if other.habit.situation == lesson.habit.situation
        and other.do is not lesson.do
        and _most(other.won if other.do else other.lost)
    )
    return evolve(lesson, other=next(others, None))


def _most(counts: tuple[int, int]) -> bool:
    return 2 * counts[0] > counts[1]


def _acted(lesson: Lesson) -> tuple[str, str]:
    return lesson.habit.move.kind, lesson.habit.move.call


def _skill(lesson: Lesson, experience: Experience, read: Sequence[tuple[Rollout, Habits]]) -> Skill:
    speaking = [
        rolled
        for rolled, habits in read
        if _came(lesson.habit, habits) and habits.shows(lesson.habit) is (rolled.episode.success is lesson.do)
    ]
    return Skill(
        title_of(lesson),
        description_of(lesson, experience.instruction),
        content_of(lesson, whole=lesson.won[1] + lesson.lost[1] == len(experience.rollouts)),
        experience.provenance(NAME, speaking),
    )
