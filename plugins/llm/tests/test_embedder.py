"""Embedders by name: the one that asks a service, and the offline one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from canned_policy import USED  # type: ignore[import-not-found]
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import ComponentSpec, Plugins, Skill
from envharness_core.account import Account, Budget
from envharness_core.cli.skills_command import command
from envharness_core.converter import structure
from envharness_core.errors import AccessError, ConfigError, PluginError
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EMBEDDER
from envharness_core.session import Charge, Session
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.skill import Provenance
from envharness_core.testing import Fault, ModelServer
from envharness_llm.embedder import EmbedderConfig, ModelEmbedder

MODEL = "openai/vectors"


class Canned:
    """Gives vectors of widths in order, the last one again and again, that say how long a text is."""

    def __init__(self, *widths: int, short: int = 0) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self._widths = widths
        self._short = short

    def embed(self, model: str, texts: Sequence[str]) -> tuple[list[list[float]], JsonObject]:
        width = self._widths[min(len(self.asked), len(self._widths) - 1)]
        self.asked.append((model, list(texts)))
        vectors = [[float(len(text))] * width for text in texts]
        return vectors[self._short :], USED


def made(*widths: int, short: int = 0, **config: Any) -> tuple[ModelEmbedder, Canned, list[Any]]:
    service, charged = Canned(*widths, short=short), list[Any]()
    embedder = ModelEmbedder(EmbedderConfig(MODEL, **config), service)
    embedder.attach(Session(charge=lambda role, usage: charged.append((role, usage))))
    return embedder, service, charged


@given(st.lists(st.sampled_from(["", " \n", "a", "bb", "ccc"])), st.integers(1, 4))
def test_each_text_has_its_vector_in_batches_and_blank_ones_are_zeros_that_ask_nobody(
    texts: list[str], batch: int
) -> None:
    embedder, service, charged = made(3, width=3, batch=batch)
    blank = [0.0] * 3
    assert embedder.embed(texts) == [[float(len(text))] * 3 if text.strip() else blank for text in texts]
    assert [text for _, asked in service.asked for text in asked] == [text for text in texts if text.strip()]
    assert all(0 < len(asked) <= batch and model == MODEL for model, asked in service.asked)
    assert charged == [("embedder", USED)] * len(service.asked)


def test_the_width_is_learnt_at_the_first_call_or_asked_once() -> None:
    embedder, service, _ = made(5)
    embedder.embed(["a"])
    assert (embedder.width, len(service.asked)) == (5, 1)
    embedder, service, charged = made(5)
    assert embedder.embed(["", ""]) == [[0.0] * 5] * 2
    assert (embedder.width, embedder.width, embedder.model) == (5, 5, MODEL)
    assert len(service.asked) == len(charged) == 1
    assert all(text.strip() for text in service.asked[0][1])
    embedder, service, _ = made(5, width=5)
    assert (embedder.width, service.asked) == (5, [])
    assert embedder.embed([]) == []


def test_a_width_that_changes_is_refused() -> None:
    embedder, _, _ = made(5, 6)
    embedder.embed(["a"])
    with pytest.raises(PluginError, match="of 5 numbers and now of 6"):
        embedder.embed(["a"])
    assert embedder.width == 5
    embedder, _, charged = made(6, width=5)
    with pytest.raises(
        ConfigError, match=r"embedder\.width: openai/vectors .* of 6 numbers, not of 5; say 6"
    ):
        embedder.embed(["a"])
    assert charged == [("embedder", USED)]


def test_too_few_vectors_are_refused() -> None:
    embedder, _, _ = made(5, short=1)
    with pytest.raises(PluginError, match="1 vectors for 2 texts"):
        embedder.embed(["a", "b"])


def test_without_a_service_it_says_so() -> None:
    with pytest.raises(PluginError, match="attach it"):
        ModelEmbedder(EmbedderConfig(MODEL)).embed(["a"])


@pytest.mark.parametrize(
    ("config", "says_what"),
    [
        ({}, "model: missing"),
        ({"model": ""}, "model"),
        ({"model": "m", "width": 0}, "width"),
        ({"model": "m", "batch": 0}, "batch"),
        ({"model": "m", "batch": 97}, "batch"),
    ],
)
def test_a_wrong_config_says_which_field(config: Any, says_what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        structure(config, EmbedderConfig, "embedder")
    assert says_what in str(caught.value)


def of(server: ModelServer, charge: Charge | None = None, **config: Any) -> ModelEmbedder:
    settings: JsonObject = {"api_base": server.base_url, "keys": ["TEST_MODEL_KEY"]}
    plugins = Plugins().working_in(None, {"llm": settings}, charge)
    embedder = plugins.create(EMBEDDER, ComponentSpec("llm/embedder", {"model": MODEL} | config), "embedder")
    assert isinstance(embedder, ModelEmbedder)
    return embedder


def skills() -> list[Skill]:
    return [
        Skill("Sort lists", "When asked for the cheapest item.", "Sort by price.", Provenance("a")),
        Skill(
            "Heat food",
            "When food has to be warm.",
            "Use the microwave.",
            Provenance("b", trajectories=("1",)),
        ),
    ]


def test_a_bank_is_searched_through_a_real_client() -> None:
    with ModelServer(faults=[Fault.rate_limited(retry_after=0.05)]) as server:
        account = Account(Budget())
        embedder = of(server, account.charge, batch=1)
        bank = SkillBank(skills())
        found = bank.retrieve("sort the cheapest lists by price", 1, exclude_task=None, embedder=embedder)
        assert [match.skill.title for match in found] == ["Sort lists"]
        asked: list[Any] = [asked.body for asked in server.requests if asked.status == 200]
        assert embedder.embed([" "]) == [[0.0] * embedder.width]
        assert len(server.requests) == len(asked) + 1
    used: Any = account.totals()["embedder"]
    assert used["calls"] == 3
    assert used["input_tokens"] > 20
    assert [len(body["input"]) for body in asked] == [1, 1, 1]
    assert {body["model"] for body in asked} == {"vectors"}


def test_a_refused_key_passes_through() -> None:
    with ModelServer(keys=("another",)) as server, pytest.raises(AccessError, match="TEST_MODEL_KEY"):
        of(server).embed(["a"])


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "bank.jsonl"
    SkillBank(skills()).write(path)
    yield path
    with path.open() as file:
        assert all(json.loads(line)["embedding"] is None for line in file)  # searching writes nothing


def test_the_offline_embedder_searches_a_bank_under_its_name(bank: Path) -> None:
    pytest.importorskip("wordllama")
    query = ["--query", "which product costs the least", "--top", "1", "--json"]
    runner = CliRunner()
    by_words = json.loads(runner.invoke(command, [str(bank), *query], catch_exceptions=False).stdout)
    assert by_words["skills"][0]["title"] == "Heat food"  # no word in common: only support counts
    searched = runner.invoke(
        command, [str(bank), *query, "--embedder", "llm/offline"], catch_exceptions=False
    )
    (row,) = json.loads(searched.stdout)["skills"]
    assert row["title"] == "Sort lists"
    assert row["score"] > 0.1


def test_the_offline_embedder_takes_no_keys_and_marks_what_it_embeds(bank: Path) -> None:
    pytest.importorskip("wordllama")
    with pytest.raises(ConfigError, match="model"):
        Plugins().create(EMBEDDER, ComponentSpec("llm/offline", {"model": "m"}), "embedder")
    embedder = Plugins().create(EMBEDDER, ComponentSpec("llm/offline"), "embedder")
    held = SkillBank.read(bank)
    assert held.embed(embedder) == 2
    written = bank.with_name("embedded.jsonl")
    held.write(written)
    for line in written.read_text().splitlines():
        made = json.loads(line)["embedding"]
        assert (made["model"], made["width"]) == (embedder.model, 256)
    assert SkillBank.read(written).embed(embedder) == 0  # what is stored isn't made again
