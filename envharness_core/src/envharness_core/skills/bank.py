"""The bank: skills as lines of a file, bounded, without repetitions, and never given to the task that taught them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import evolve, field, frozen, validators

from envharness_core.errors import ConfigError
from envharness_core.skills import lexical
from envharness_core.skills.embedder import Embedder
from envharness_core.skills.lines import Line, read_lines, write_lines
from envharness_core.skills.retrieval import Match, Similarity, check_share, pick
from envharness_core.skills.skill import Skill
from envharness_core.skills.vectors import Embedding, embed

_SHARE = [validators.gt(0.0), validators.le(1.0)]


@frozen
class BankConfig:
    """What a bank keeps.

    Args:
        per_task: skills of one task and condition at most.
        capacity: skills of one condition at most.
        similar: how alike, in (0, 1], two skills may at most be; 1 only refuses what has the same words.
        longest: characters of a skill's text at most.
    """

    per_task: int = field(default=3, validator=validators.ge(1))
    capacity: int = field(default=1000, validator=validators.ge(1))
    similar: float = field(default=0.9, validator=_SHARE)
    longest: int = field(default=8000, validator=validators.ge(1))


@frozen
class Dropped:
    """A skill that the bank doesn't keep, and why."""

    skill: Skill
    reason: str


@frozen
class Added:
    """What became of an addition.

    Args:
        skills: the new ones that the bank now holds.
        dropped: new ones that it didn't take, and old ones that gave way.
    """

    skills: tuple[Skill, ...]
    dropped: tuple[Dropped, ...]


class SkillBank:
    """Skills in the order in which they came, with their embeddings where there are any.

    Conditions don't meet: what was learnt in one neither displaces nor repeats what was learnt in another, so that
    banks of the same budget can be compared. May be searched from several threads; only one may add.

    Args:
        skills: what it holds, taken as they are.
        config: what it keeps of what is added.
    """

    def __init__(self, skills: Iterable[Skill] = (), config: BankConfig | None = None) -> None:
        self.config = config or BankConfig()
        self.problems: tuple[str, ...] = ()
        """What couldn't be read, each as ``path:line: why``; ``write`` leaves it out."""
        self._lines = [Line(skill) for skill in skills]
        self._index: lexical.Index | None = None
        self._lock = threading.RLock()

    @classmethod
    def read(cls, path: Path, config: BankConfig | None = None) -> SkillBank:
        """Read a bank; lines that are torn or wrong go to ``problems``, and the others load.

        Raises:
            ConfigError: the file can't be read at all.
        """
        bank = cls(config=config)
        bank._lines, bank.problems = read_lines(path)
        return bank

    def write(self, path: Path) -> None:
        """Write the bank: the whole file, or the old one stays.

        Raises:
            ConfigError: nothing can be written there.
        """
        with self._lock:
            lines = list(self._lines)
        write_lines(path, lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.skills)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """What it holds, the oldest first."""
        return tuple(line.skill for line in self._lines)

    def add(self, skills: Iterable[Skill], embedder: Embedder | None = None) -> Added:
        """Take skills in, one after the other.

        One that is too much like another of its condition isn't taken, or where both are of one task, the better
        supported stays. Of a task that has its number, the least supported goes, of equals the newest; of a full
        bank the least supported goes, of equals the oldest. Support is the number of trajectories.

        Args:
            skills: in the order of their worth.
            embedder: also compares what skills mean, and stores their embeddings.

        Raises:
            ProviderError: the embedder's model couldn't be had; nothing was taken in.
            PluginError: what the embedder returned can't be used; nothing was taken in.
        """
        with self._lock:
            given = [Line(skill) for skill in skills]
            if embedder is not None:
                self.embed(embedder)
                given = _embedded(given, embedder)
            dropped = [gone for line in given for gone in self._take(line)]
            self._index = None
            held = set(map(id, self._lines))
            return Added(tuple(line.skill for line in given if id(line) in held), tuple(dropped))

    def embed(self, embedder: Embedder) -> int:
        """Embed what has no embedding of this model and width; return how many that were.

        Raises:
            ProviderError: the embedder's model couldn't be had.
            PluginError: what the embedder returned can't be used.
        """
        with self._lock:
            before, after = self._lines, _embedded(self._lines, embedder)
            self._lines = after
            return sum(old is not new for old, new in zip(before, after, strict=True))

    def retrieve(
        self,
        query: str,
        k: int,
        *,
        exclude_task: str | None,
        embedder: Embedder | None = None,
        threshold: float = 0.0,
        diversity: float = 0.0,
        condition: str | None = None,
    ) -> list[Match]:
        """Return the skills that fit a query best, the best first; with a threshold of 0 always k, if there are any.

        Args:
            query: such as a task's instruction.
            k: how many at most.
            exclude_task: the task that they are for: what was learnt on it isn't returned.
            embedder: compares meanings; None compares words.
            threshold: how well a skill must fit, in [0, 1]; 0 asks for nothing.
            diversity: how much to avoid the same advice twice, in [0, 1]; 0 looks at the fit alone.
            condition: only skills of this condition.

        Raises:
            ConfigError: a parameter is out of range.
            ProviderError: the embedder's model couldn't be had.
            PluginError: what the embedder returned can't be used.
        """
        _check(k, threshold, diversity)
        lines, scores, similarity = self._compared(query, embedder)
        allowed = [
            number
            for number, line in enumerate(lines)
            if scores[number] >= threshold and _may_serve(line.skill, exclude_task, condition)
        ]
        picked = pick(
            [scores[number] for number in allowed],
            [lines[number].skill.support for number in allowed],
            lambda one, other: similarity(allowed[one], allowed[other]),
            k,
            diversity=diversity,
        )
        return [Match(lines[allowed[number]].skill, scores[allowed[number]]) for number in picked]

    def _compared(self, query: str, embedder: Embedder | None) -> tuple[list[Line], list[float], Similarity]:
        """Return the lines, how well each fits, and how like each other two of them are."""
        with self._lock:
            if embedder is not None and query.strip():  # services refuse to embed nothing
                self.embed(embedder)
                lines = list(self._lines)
                made = [_of(line) for line in lines]
            else:
                embedder, lines, index = None, list(self._lines), self._indexed()
        if embedder is None:
            return lines, index.scores(query), index.similarity
        (asked,) = embed(embedder, [query])
        scores = [max(0.0, asked.cosine(embedding)) for embedding in made]
        return lines, scores, lambda one, other: made[one].cosine(made[other])

    def _indexed(self) -> lexical.Index:
        if self._index is None:
            self._index = lexical.Index([line.skill.text for line in self._lines])
        return self._index

    def _take(self, line: Line) -> list[Dropped]:
        """Take one in, and return what gave way to it, or it alone."""
        skill = line.skill
        if len(skill.text) > self.config.longest:
            return [Dropped(skill, f"longer than {self.config.longest} characters")]
        peers = [other for other in self._lines if _condition(other) == _condition(line)]
        same = [other for other in peers if _repeats(other, line, self.config.similar)]
        if any(_task(other) != _task(line) or other.skill.support >= skill.support for other in same):
            return [Dropped(skill, f"says the same as {same[0].skill.title!r}")]
        if same:
            gone = self._drop(same, f"says the same as {skill.title!r}, which has more support")
            self._lines.append(line)
            return gone
        of_task = [other for other in peers if _task(other) == _task(line)]
        gone = []
        if len(of_task) >= self.config.per_task:
            weakest = min(reversed(of_task), key=_support)
            if weakest.skill.support >= skill.support:
                return [Dropped(skill, f"its task has {self.config.per_task} already")]
            gone = self._drop([weakest], f"its task has {self.config.per_task} with more support")
        elif len(peers) >= self.config.capacity:
            weakest = min(peers, key=_support)
            if weakest.skill.support > skill.support:
                return [Dropped(skill, "the bank is full of skills with more support")]
            gone = self._drop([weakest], "the bank is full")
        self._lines.append(line)
        return gone

    def _drop(self, lines: Sequence[Line], reason: str) -> list[Dropped]:
        leaving = set(map(id, lines))
        self._lines = [line for line in self._lines if id(line) not in leaving]
        return [Dropped(line.skill, reason) for line in lines]


def _check(k: int, threshold: float, diversity: float) -> None:
    if k < 0:
        raise ConfigError(f"k: must be 0 or more, got {k}")
    check_share("threshold", threshold)
    check_share("diversity", diversity)


def _may_serve(skill: Skill, task: str | None, condition: str | None) -> bool:
    origin = skill.provenance
    return (task is None or not origin.came_from(task)) and condition in (None, origin.condition)


def _embedded(lines: Sequence[Line], embedder: Embedder) -> list[Line]:
    """Return lines that all have an embedding of the embedder's; those that had one are the same objects."""
    missing = [line for line in lines if line.embedding is None or not line.embedding.is_of(embedder)]
    made = iter(embed(embedder, [line.skill.text for line in missing]))
    wanted = set(map(id, missing))
    return [evolve(line, embedding=next(made)) if id(line) in wanted else line for line in lines]


def _of(line: Line) -> Embedding:
    if line.embedding is None:
        raise AssertionError("an embedding that was just made is there")
    return line.embedding


def _repeats(one: Line, other: Line, similar: float) -> bool:
    """Say whether two skills say the same, in words or, where both are embedded, in meaning.

    Words that turn advice into its opposite have to be the same: "never undo" doesn't repeat "undo".
    """
    if one.negations != other.negations:
        return False
    if one.advice == other.advice or lexical.alike(one.wording, other.wording) >= similar:
        return True
    if one.embedding is None or other.embedding is None:
        return False
    comparable = (one.embedding.model, one.embedding.width) == (other.embedding.model, other.embedding.width)
    return comparable and one.embedding.cosine(other.embedding) >= similar


def _task(line: Line) -> str:
    return line.skill.provenance.task


def _condition(line: Line) -> str:
    return line.skill.provenance.condition


def _support(line: Line) -> int:
    return line.skill.support
