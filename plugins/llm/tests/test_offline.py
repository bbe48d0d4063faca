"""The offline embedder: real, small, and never on the network."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from typing import NoReturn

import pytest

from envharness_core import NoConfig
from envharness_core.session import Session
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.skill import Provenance, Skill
from envharness_core.skills.vectors import embed
from envharness_llm.offline import OfflineEmbedder

pytest.importorskip("wordllama")


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> OfflineEmbedder:
    def refuse(*args: object) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    made = OfflineEmbedder(NoConfig())
    made.attach(Session())
    return made


def test_texts_of_like_meaning_are_near_without_a_word_in_common(embedder: OfflineEmbedder) -> None:
    asked, near, far = embed(
        embedder, ["repair the broken test", "fix a failing check", "put an apple in a bowl"]
    )
    assert asked.cosine(near) > asked.cosine(far) + 0.2
    assert (asked.model, asked.width) == ("wordllama-l2_supercat-256", 256)


def test_what_says_nothing_is_a_vector_of_zeros_and_company_changes_nothing(
    embedder: OfflineEmbedder,
) -> None:
    blank, strange, long = embed(embedder, ["  ", "\u6253\u5f00 \U0001f389", "undo " * 3000])
    assert set(blank.vector) == {0.0}
    assert set(strange.vector) != {0.0}
    (alone,) = embed(embedder, ["\u6253\u5f00 \U0001f389"])
    assert alone.cosine(strange) == pytest.approx(1.0, abs=1e-4)
    assert long.cosine(long) == pytest.approx(1.0, abs=1e-4)
    assert embedder.embed([]) == []


def test_it_finds_a_skill_that_words_dont(embedder: OfflineEmbedder) -> None:
    skills = [
        Skill(
            "Heat food",
            "When food has to be warm.",
            "Use the microwave.",
            Provenance("a", trajectories=("1", "2")),
        ),
        Skill("Sort lists", "When asked for the cheapest item.", "Sort by price.", Provenance("b")),
    ]
    bank = SkillBank(skills)
    query = "which product costs the least"
    assert bank.retrieve(query, 1, exclude_task=None)[0].skill.title == "Heat food"
    assert bank.retrieve(query, 1, exclude_task=None, embedder=embedder)[0].skill.title == "Sort lists"


def test_importing_it_loads_no_model_and_loading_sets_up_no_logging() -> None:
    code = (
        "import logging, sys\n"
        "from envharness_core import NoConfig\n"
        "from envharness_llm.offline import OfflineEmbedder\n"
        "assert 'wordllama' not in sys.modules and 'litellm' not in sys.modules\n"
        "OfflineEmbedder(NoConfig()).embed(['x'])\n"
        "assert logging.getLogger().handlers == [] and logging.getLogger().level == logging.WARNING\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert logging.getLogger().level != logging.INFO
