"""How often the right skill is found: words against meanings, on 40 skills and 80 paraphrased queries.

The skills and queries of ``retrieval.json`` were written for this benchmark, by one author; each query has one right
skill, and more than half of the queries share no telling word with it. The offline embedder is measured where it is
installed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from attrs import frozen

from envharness_core.component import NoConfig
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.embedder import Embedder
from envharness_core.skills.lexical import terms
from envharness_core.skills.skill import Provenance, Skill
from figures import Figure, alternating, show

DATA = Path(__file__).with_name("retrieval.json")
DEPTH = 10
"""Skills that are looked at for the reciprocal rank; a rank beyond counts as none."""
DIVERSITIES = (0.3, 0.5)
LARGE = 1000


@frozen
class Query:
    """A text, and the skill that is right for it."""

    text: str
    skill: Skill

    @property
    def overlaps(self) -> bool:
        """Whether it shares a telling word with its skill."""
        return not set(terms(self.text)).isdisjoint(terms(self.skill.text))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
    parser.add_argument("--blocks", type=int, default=5, help="blocks of each side")
    options = parser.parse_args(arguments)
    skills, queries = read(json.loads(DATA.read_text()))
    embedder, load_ms = offline()
    figures = [
        Figure("skills", len(skills)),
        Figure("queries", len(queries)),
        Figure("queries that share a word", sum(query.overlaps for query in queries)),
        *found("words", SkillBank(skills), queries, None),
    ]
    if embedder is not None:
        figures.append(Figure("meanings: load", load_ms, "ms"))
        figures += found("meanings", SkillBank(skills), queries, embedder)
    figures += timed(skills, queries, embedder, options.blocks)
    show(figures, as_json=options.as_json)


def read(data: list[dict[str, Any]]) -> tuple[list[Skill], list[Query]]:
    """Return the skills, and each one's queries."""
    skills, queries = [], []
    for number, row in enumerate(data):
        origin = Provenance(f"{row['domain']}-{number}", trajectories=("one",))
        skill = Skill(row["title"], row["description"], row["content"], origin)
        skills.append(skill)
        queries += [Query(text, skill) for text in row["queries"]]
    return skills, queries


def offline() -> tuple[Embedder | None, float]:
    """Return the offline embedder, loaded, and the milliseconds that took; None where it isn't installed."""
    try:
        from envharness_llm.offline import OfflineEmbedder

        embedder: Embedder = OfflineEmbedder(NoConfig())
        began = perf_counter()
        embedder.embed(["load"])
    except Exception as error:  # noqa: BLE001 - whatever keeps it from loading
        print(f"the offline embedder is left out: {error}")
        return None, 0.0
    return embedder, 1000 * (perf_counter() - began)


def found(name: str, bank: SkillBank, queries: Sequence[Query], embedder: Embedder | None) -> list[Figure]:
    """Return how often the right skill is found, and with which diversity how often among three."""
    ranks = [rank(bank, query, embedder, 0.0) for query in queries]
    apart = [place for place, query in zip(ranks, queries, strict=True) if not query.overlaps]
    figures = [
        Figure(f"{name}: recall at 1", recall(ranks, 1)),
        Figure(f"{name}: recall at 3", recall(ranks, 3)),
        Figure(f"{name}: mean reciprocal rank", sum(1 / place for place in ranks if place) / len(ranks)),
        Figure(f"{name}: at 3, no word shared", recall(apart, 3)),
    ]
    for diversity in DIVERSITIES:
        places = [rank(bank, query, embedder, diversity, 3) for query in queries]
        figures.append(Figure(f"{name}: recall at 3, diversity {diversity}", recall(places, 3)))
    return figures


def rank(bank: SkillBank, query: Query, embedder: Embedder | None, diversity: float, k: int = DEPTH) -> int:
    """Return the place of the right skill among the best k, from 1; 0 where it isn't among them."""
    matches = bank.retrieve(query.text, k, exclude_task=None, embedder=embedder, diversity=diversity)
    places = [number for number, match in enumerate(matches, 1) if match.skill == query.skill]
    return places[0] if places else 0


def recall(ranks: Sequence[int], k: int) -> float:
    """Return the share of ranks from 1 to k."""
    return sum(0 < place <= k for place in ranks) / len(ranks)


def timed(
    skills: Sequence[Skill], queries: Sequence[Query], embedder: Embedder | None, blocks: int
) -> list[Figure]:
    """Return the milliseconds of a query, in this bank and in one of a thousand skills."""
    large = SkillBank(repeated(skills, LARGE))
    sides: list[tuple[str, Callable[[], float]]] = [
        ("words: a query", side(SkillBank(skills), queries, None)),
        (f"words: a query of {LARGE}", side(large, queries, None)),
        (f"words: of {LARGE}, diversity 0.5", side(large, queries, None, 0.5)),
    ]
    if embedder is not None:
        sides += [
            ("meanings: a query", side(SkillBank(skills), queries, embedder)),
            (f"meanings: a query of {LARGE}", side(large, queries, embedder)),
        ]
    taken = alternating(blocks, *(call for _, call in sides))
    return [
        Figure(name, 1000 * median(times), "ms", least=1000 * min(times))
        for (name, _), times in zip(sides, taken, strict=True)
    ]


def side(
    bank: SkillBank, queries: Sequence[Query], embedder: Embedder | None, diversity: float = 0.0
) -> Callable[[], float]:
    """Return what asks all queries and returns the seconds of one."""

    def ask() -> float:
        began = perf_counter()
        for query in queries:
            bank.retrieve(query.text, 3, exclude_task=None, embedder=embedder, diversity=diversity)
        return (perf_counter() - began) / len(queries)

    return ask


def repeated(skills: Sequence[Skill], count: int) -> list[Skill]:
    """Return so many skills: the same ones again and again, each time numbered."""
    return [
        Skill(
            f"{skill.title} {number}",
            skill.description,
            skill.content,
            Provenance(f"{skill.provenance.task}-{number}"),
        )
        for number in range(count)
        for skill in [skills[number % len(skills)]]
    ]


if __name__ == "__main__":
    main()
