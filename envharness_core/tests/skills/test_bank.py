"""The bank: bounded, without repetitions, and a file that survives what happens to files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.component import NoConfig
from envharness_core.errors import ConfigError, PluginError, ProviderError
from envharness_core.skills.bank import BankConfig, SkillBank
from envharness_core.skills.embedder import Embedder
from envharness_core.skills.lexical import alike, negations, wording
from envharness_core.skills.skill import Provenance, Skill

SPOKEN = "undo stop drawer fridge retry table sort cell clean heat search walk lamp open"
WORDS = SPOKEN.split()
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def skill(
    title: str, task: str = "t", support: int = 1, *, content: str = "", condition: str = "original"
) -> Skill:
    origin = Provenance(task, condition, "", tuple(map(str, range(support))), "me")
    return Skill(title, f"when {title}", content or f"{title} it", origin)


SKILLS = st.builds(
    skill,
    TEXTS,
    st.sampled_from("abc"),
    st.integers(0, 3),
    content=TEXTS,
    condition=st.sampled_from(["original", "reshaped"]),
)


class Letters(Embedder[NoConfig]):
    """Counts letters, and counts what it was asked."""

    def __init__(self, model: str = "letters", width: int = 26) -> None:
        super().__init__(NoConfig())
        self.model, self.width = model, width
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [
            [float(text.lower().count(chr(97 + letter))) for letter in range(self.width)] for text in texts
        ]


class Broken(Letters):
    """Returns whatever it is told to."""

    def __init__(self, vectors: Any) -> None:
        super().__init__(width=2)
        self.vectors = vectors

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self.vectors  # type: ignore[no-any-return]


class Down(Letters):
    """Can't be had."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise ProviderError("down")


@given(st.lists(SKILLS, max_size=14), st.integers(1, 3), st.integers(1, 5))
def test_a_bank_is_bounded_and_repeats_nothing(known: list[Skill], per_task: int, capacity: int) -> None:
    bank = SkillBank(config=BankConfig(per_task=per_task, capacity=capacity))
    added = bank.add(known)
    held = bank.skills
    assert set(added.skills) == set(held)
    tasks = Counter((item.provenance.condition, item.provenance.task) for item in held)
    conditions = Counter(item.provenance.condition for item in held)
    assert max(tasks.values(), default=0) <= per_task
    assert max(conditions.values(), default=0) <= capacity
    for one, other in combinations(held, 2):
        if one.provenance.condition == other.provenance.condition:
            texts = [f"{item.title}\n{item.description}\n{item.content}" for item in (one, other)]
            opposite = negations(texts[0]) != negations(texts[1])
            assert opposite or alike(*map(wording, texts)) < 0.9
    assert len(held) + len(added.dropped) == len(known)


@given(st.lists(SKILLS, max_size=10))
def test_adding_is_deterministic_and_adding_again_changes_nothing(known: list[Skill]) -> None:
    bank, other = SkillBank(), SkillBank()
    bank.add(known)
    for item in known:
        other.add([item])
    assert bank.skills == other.skills
    held = bank.skills
    bank.add(held)
    assert bank.skills == held


@given(st.lists(SKILLS, max_size=6), st.booleans())
def test_a_file_holds_what_the_bank_does(
    tmp_path_factory: pytest.TempPathFactory, known: list[Skill], embedded: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    bank = SkillBank(known)
    if embedded:
        bank.embed(Letters())
    bank.write(path)
    read = SkillBank.read(path)
    assert (read.skills, read.problems) == (bank.skills, ())
    assert read.embed(Letters()) == (0 if embedded else len(known))
    before = path.read_bytes()
    bank.write(path)
    assert path.read_bytes() == before
    assert all(json.loads(line)["schema_version"] == 1 for line in before.splitlines())


def test_the_same_advice_of_another_task_isnt_taken_but_of_another_condition_is() -> None:
    bank = SkillBank()
    first, again = skill("retry", "a", content="Did 3 of 4."), skill("RETRY", "b", 9, content="did 1 of 9")
    other = evolve(first, provenance=Provenance("a", "reshaped"))
    added = bank.add([first, again, other])
    assert bank.skills == (first, other)
    assert [(item.skill, item.reason) for item in added.dropped] == [(again, "says the same as 'retry'")]


def test_of_the_same_advice_of_one_task_the_better_supported_stays() -> None:
    bank = SkillBank()
    weak, strong = skill("retry", support=1), skill("retry", support=2)
    assert bank.add([weak]).skills == (weak,)
    assert bank.add([strong]).skills == (strong,)
    assert bank.add([weak]).skills == ()
    assert bank.skills == (strong,)


def test_the_opposite_isnt_a_repetition() -> None:
    long = "undo the last move at once when what is left in the hand can not lead anywhere near the goal of it all"
    bank = SkillBank()
    bank.add([skill("advice", content=f"do {long}"), skill("advice", content=f"never {long}")])
    assert len(bank) == 2


def test_of_a_task_the_least_supported_goes_and_of_equals_the_newest() -> None:
    bank = SkillBank(config=BankConfig(per_task=2))
    undo, stop, sort, walk = skill("undo", support=2), skill("stop"), skill("sort"), skill("walk", support=3)
    added = bank.add([undo, stop, sort, walk])
    assert bank.skills == (undo, walk)
    assert [item.skill for item in added.dropped] == [sort, stop]
    assert added.skills == (undo, walk)


def test_of_a_full_bank_the_least_supported_goes_and_of_equals_the_oldest() -> None:
    bank = SkillBank(config=BankConfig(capacity=2))
    undo, stop, sort = skill("undo", "a", 2), skill("stop", "b"), skill("sort", "c")
    assert [item.skill for item in bank.add([undo, stop, sort]).dropped] == [stop]
    assert bank.skills == (undo, sort)
    strong = SkillBank([undo], BankConfig(capacity=1))
    assert strong.add([stop]).dropped[0].reason == "the bank is full of skills with more support"
    assert strong.skills == (undo,)


def test_a_skill_that_is_too_long_isnt_taken() -> None:
    bank = SkillBank(config=BankConfig(longest=100))
    assert bank.add([skill("undo", content="undo " * 50)]).dropped[0].reason == "longer than 100 characters"


def test_a_thousand_skills_are_the_most() -> None:
    bank = SkillBank()
    bank.add(
        skill(f"{WORDS[number % 14]} {chr(97 + number % 26) * (number // 26 + 1)}", f"t{number}")
        for number in range(1020)
    )
    assert len(bank) == 1000


def test_meanings_are_compared_where_both_are_embedded() -> None:
    same = [skill("listen", "a", content="silent enlist"), skill("silent", "b", content="enlist listen")]
    alone, together = SkillBank(), SkillBank()
    alone.add(same)
    assert len(alone) == 2
    assert len(together.add(same, Letters()).skills) == 1


def test_an_embedding_of_another_model_or_width_is_made_anew() -> None:
    bank = SkillBank([skill("undo"), skill("stop", "b")])
    first = Letters()
    assert (bank.embed(first), bank.embed(first), len(first.asked)) == (2, 0, 2)
    for other in (Letters("other"), Letters(width=20)):
        bank.retrieve("undo", 1, exclude_task=None, embedder=other)
        assert len(other.asked) == 3
        bank.retrieve("undo", 1, exclude_task=None, embedder=other)
        assert other.asked[3:] == ["undo"]


def test_a_blank_query_asks_no_model_and_finds_all_the_same() -> None:
    bank, down = SkillBank([skill("undo")]), Down()
    assert len(bank.retrieve("  ", 1, exclude_task=None, embedder=down)) == 1


@pytest.mark.parametrize(
    "vectors", [[], [[1.0]], [[1.0, float("nan")]], [[1.0, float("inf")]], [[1.0, 2.0], [1.0, 2.0]]]
)
def test_what_an_embedder_may_not_return_is_named_and_nothing_is_taken_in(vectors: Any) -> None:
    bank = SkillBank()
    with pytest.raises(PluginError, match="embedder letters: "):
        bank.add([skill("undo")], Broken(vectors))
    assert len(bank) == 0


@pytest.mark.parametrize("vectors", [[[0.0, 0.0]], [[1e200, 1e200]], [[1e-200, 0.0]], [[3, 4]]])
def test_vectors_of_any_length_are_directions(vectors: Any) -> None:
    bank = SkillBank([skill("undo")])
    (match,) = bank.retrieve("undo", 1, exclude_task=None, embedder=Broken(vectors))
    assert match.score == pytest.approx(1.0 if any(vectors[0]) else 0.0, abs=1e-5)


def test_a_model_that_cant_be_had_takes_nothing_in() -> None:
    bank = SkillBank()
    with pytest.raises(ProviderError):
        bank.add([skill("undo")], Down())
    assert len(bank) == 0


GOOD = '{"schema_version": 1, "title": "t", "description": "d", "content": "c", "provenance": {"task": "a"}}'
BAD = [
    ('{"schema_version": 1, "title": "t", "descr', "not JSON, or torn"),
    ("[1]", "expected an object"),
    ("{}", "schema_version: expected 1, got None"),
    (GOOD.replace("1,", "2,", 1), "schema_version: expected 1, got 2"),
    (GOOD.replace("1,", "true,", 1), "schema_version: expected 1"),
    (GOOD.replace('"t"', '" "'), "title"),
    (GOOD.replace('"t"', "NaN"), "NaN"),
    (GOOD.replace('"t"', '"\\ud800"'), "surrogate"),
    (GOOD.replace('"task": "a"', '"task": 7'), "provenance.task"),
    (GOOD.replace('"task": "a"', ""), "provenance.task: missing"),
    (GOOD.replace('"title"', '"name"'), "unknown key 'name'"),
    ("[" * 5000, "nested too deeply"),
    ("\x00", "not JSON"),
]


@pytest.mark.parametrize(("line", "why"), BAD)
def test_a_bad_line_is_reported_with_its_place_and_the_others_load(
    tmp_path: Path, line: str, why: str
) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n{GOOD}\n", encoding="utf-8")
    bank = SkillBank.read(path)
    assert len(bank) == 2
    (problem,) = bank.problems
    assert problem.startswith(f"{path}:3: ")
    assert why in problem


def test_a_line_that_isnt_utf_8_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n\xff\n" + GOOD.encode())
    bank = SkillBank.read(path)
    assert (len(bank), bank.problems) == (2, (f"{path}:2: not UTF-8",))


@pytest.mark.parametrize(
    "embedding",
    [
        "3",
        '{"model": "m", "width": 2, "vector": [1.0]}',
        '{"model": "m", "width": 1, "vector": ["x"]}',
        '{"model": "m", "width": 1}',
        '{"model": 1, "width": 1, "vector": [1.0]}',
    ],
)
def test_a_bad_embedding_costs_the_embedding_alone(tmp_path: Path, embedding: str) -> None:
    path = tmp_path / "bank.jsonl"
    path.write_text(f'{GOOD[:-1]}, "embedding": {embedding}}}\n')
    bank = SkillBank.read(path)
    assert len(bank) == 1
    assert f"{path}:1: embedding: " in bank.problems[0]
    assert bank.embed(Letters()) == 1


@given(st.binary(max_size=200))
def test_no_file_is_too_strange_to_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "strange.jsonl"
    path.write_bytes(content)
    assert len(SkillBank.read(path)) == 0


def test_a_file_that_isnt_there_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name a bank's file"):
        SkillBank.read(tmp_path / "none.jsonl")
