"""The cassette: equal questions get the recorded answer, all others are asked, and a replay asks nobody."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.errors import AccessError, ConfigError, ContextError, ProviderError
from envharness_core.jsondata import JsonObject
from envharness_llm.cassette import FILE, Cassette
from envharness_llm.messages import Answer, Message, Params, Request, ToolCall
from envharness_llm.settings import CassetteSettings

REQUEST = Request(
    Params("openai/m", 0.5, 100, "low"),
    (Message("system", "be brief"), Message("user", "hello")),
    "policy",
    seed=7,
    number=2,
    tools=({"name": "look", "description": "Look.", "parameters": {"type": "object"}},),
)
TEXTS = st.text(max_size=40)
ANSWERS = st.builds(
    Answer,
    text=TEXTS,
    calls=st.lists(st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=TEXTS), max_size=3).map(tuple),
    reasoning=TEXTS,
    finish=st.sampled_from(["stop", "tool_calls", "length", "filtered", "other"]),
    usage=st.dictionaries(
        st.sampled_from(["calls", "input_tokens", "cost_usd"]), st.integers(0, 10**9) | st.floats(0, 1e3)
    ),
)
OTHERS: tuple[Request, ...] = (
    evolve(REQUEST, seed=8),
    evolve(REQUEST, number=3),
    evolve(REQUEST, role="designer"),
    evolve(REQUEST, must_call=True),
    evolve(REQUEST, tools=()),
    evolve(REQUEST, messages=REQUEST.messages[:1]),
    evolve(REQUEST, messages=REQUEST.messages[::-1]),
    evolve(REQUEST, params=evolve(REQUEST.params, model="openai/n")),
    evolve(REQUEST, params=evolve(REQUEST.params, temperature=None)),
    evolve(REQUEST, params=evolve(REQUEST.params, max_tokens=101)),
    evolve(REQUEST, params=evolve(REQUEST.params, reasoning="high")),
)


def never() -> Answer:
    raise AssertionError("nobody may be asked")


@pytest.fixture
def open_at() -> Iterator[Callable[..., Cassette]]:
    opened: list[Cassette] = []

    def make(path: Path, mode: str = "auto") -> Cassette:
        opened.append(Cassette(path, mode))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for cassette in opened:
        cassette.close()


@given(answer=ANSWERS)
def test_a_recorded_answer_comes_back_as_it_was(
    answer: Answer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cassette") / FILE
    cassette = Cassette(path)
    assert cassette.answer(REQUEST, lambda: answer) == answer
    assert cassette.answer(REQUEST, never) == answer
    cassette.close()
    replayed = Cassette(path, "replay")
    assert replayed.answer(REQUEST, never) == answer
    replayed.close()


def test_whatever_differs_in_a_request_makes_it_another_call(
    tmp_path: Path, open_at: Callable[..., Cassette]
) -> None:
    cassette = open_at(tmp_path / FILE)
    for number, request in enumerate((REQUEST, *OTHERS)):
        assert cassette.answer(request, lambda number=number: Answer(str(number))).text == str(number)  # type: ignore[misc]
    for number, request in enumerate((REQUEST, *OTHERS)):
        assert cassette.answer(request, never).text == str(number)


def test_nothing_is_made_before_there_is_something_to_record(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "folder" / FILE)
    with pytest.raises(ProviderError):
        cassette.answer(REQUEST, _failing)
    cassette.close()
    assert not list(tmp_path.iterdir())


def _failing() -> Answer:
    raise ProviderError("down")


def _too_long() -> Answer:
    raise ContextError("8192 tokens at most")


def test_a_conversation_that_did_not_fit_does_not_fit_again_but_failures_of_a_service_are_forgotten(
    tmp_path: Path, open_at: Callable[..., Cassette]
) -> None:
    cassette = open_at(tmp_path / FILE)
    for ask in (_too_long, never):
        with pytest.raises(ContextError, match="8192"):
            cassette.answer(REQUEST, ask)
    with pytest.raises(ProviderError):
        cassette.answer(OTHERS[0], _failing)
    assert cassette.answer(OTHERS[0], lambda: Answer("up again")).text == "up again"


def test_a_replay_says_what_nobody_was_asked(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    open_at(tmp_path / FILE).answer(REQUEST, lambda: Answer("known"))
    replay = open_at(tmp_path / FILE, "replay")
    assert replay.answer(REQUEST, never).text == "known"
    with pytest.raises(AccessError) as caught:
        replay.answer(evolve(REQUEST, number=5, role="extractor"), never)
    for word in ("extractor", "openai/m", "call 5", "auto", FILE):
        assert word in str(caught.value)


def test_vectors_are_recorded_with_what_they_cost(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    cassette = open_at(tmp_path / FILE)
    usage: JsonObject = {"calls": 1, "input_tokens": 3, "cost_usd": 1e-9}
    known = ([[0.1, -2.0], [1 / 3, 5e-324]], usage)
    assert cassette.vectors("m", ["a", "b"], "embedder", lambda: known) == known

    def never_embed() -> tuple[list[list[float]], JsonObject]:
        raise AssertionError

    assert cassette.vectors("m", ["a", "b"], "embedder", never_embed) == known
    other = ([[1.0], [2.0]], usage)
    assert cassette.vectors("m", ["b", "a"], "embedder", lambda: other) == other
    assert cassette.vectors("n", ["a", "b"], "embedder", lambda: other) == other


def test_threads_share_one(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    cassette = open_at(tmp_path / FILE)
    said: list[tuple[int, str]] = []

    def work(worker: int) -> None:
        for number in range(20):
            answer = cassette.answer(evolve(REQUEST, number=number), lambda: Answer(f"{worker}"))
            said.append((number, answer.text))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 80
    assert len(set(said)) == 20  # what was first recorded is what all were told


def test_two_processes_record_at_once(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    path = tmp_path / FILE
    script = Path(__file__).parent / "fixtures" / "recording_process.py"
    spans = {"one": (0, 120), "two": (60, 180)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(path), name, str(first), str(last)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, (first, last) in spans.items()
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    told = dict[str, set[str]]()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        for line in process.communicate(timeout=30)[0].splitlines():
            number, _, text = line.partition(" ")
            told.setdefault(number, set()).add(text)
        assert process.returncode == 0
    assert len(told) == 180
    replay = open_at(path, "replay")
    for number, texts in told.items():
        request = Request(Params("openai/m"), (Message("user", "hello"),), "policy", 1, int(number))
        assert texts == {replay.answer(request, never).text}


def test_closing_leaves_one_file_and_a_later_call_opens_it_again(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / FILE)
    cassette.answer(REQUEST, lambda: Answer("known"))
    cassette.close()
    cassette.close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert cassette.answer(REQUEST, never).text == "known"
    cassette.close()


def test_a_copy_holds_everything_while_others_write(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    cassette = open_at(tmp_path / FILE)
    cassette.answer(REQUEST, lambda: Answer("known"))
    kept = tmp_path / "kept" / "copy.sqlite3"
    with pytest.raises(ConfigError):
        cassette.copy(kept)
    kept.parent.mkdir()
    cassette.copy(kept)
    cassette.answer(OTHERS[0], lambda: Answer("later"))
    replay = open_at(kept, "replay")
    assert replay.answer(REQUEST, never).text == "known"
    with pytest.raises(AccessError):
        replay.answer(OTHERS[0], never)
    assert list(kept.parent.iterdir()) == [kept]


def test_replaying_a_copy_changes_no_byte_of_it(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    cassette = open_at(tmp_path / FILE)
    cassette.answer(REQUEST, lambda: Answer("known"))
    cassette.copy(tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()
    for mode in ("replay", "auto"):
        again = Cassette(tmp_path / "kept", mode)
        assert again.answer(REQUEST, never).text == "known"
        again.close()
    assert (tmp_path / "kept").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a record", b"SQLite format 3\0" + bytes(200)])
def test_a_file_of_another_kind_is_named_when_a_component_is_attached(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ConfigError, match=FILE):
        Cassette(tmp_path / FILE)
    with pytest.raises(ConfigError, match="cassette"):
        Cassette(tmp_path)


def test_another_database_is_not_written_to(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("CREATE TABLE calls (digest, value)")
    with pytest.raises(ConfigError, match="isn't a record of calls"):
        Cassette(tmp_path / FILE)


def _filled(path: Path) -> None:
    cassette = Cassette(path)
    for number in range(40):
        cassette.answer(evolve(REQUEST, number=number), lambda: Answer("known " * 20))
    cassette.close()


def _all_again(cassette: Cassette) -> None:
    for number in range(40):
        cassette.answer(evolve(REQUEST, number=number), never)


@pytest.mark.parametrize("mode", ["auto", "replay"])
def test_a_torn_file_is_named(tmp_path: Path, mode: str, open_at: Callable[..., Cassette]) -> None:
    _filled(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    cassette = open_at(tmp_path / FILE, mode)
    with pytest.raises(AccessError, match=FILE):
        _all_again(cassette)


def test_a_damaged_value_is_named(tmp_path: Path, open_at: Callable[..., Cassette]) -> None:
    _filled(tmp_path / FILE)
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("UPDATE calls SET value = x'00112233'")
    with pytest.raises(AccessError, match=rf"{FILE}.*damaged"):
        open_at(tmp_path / FILE).answer(REQUEST, never)


def test_settings_say_where_it_lies(tmp_path: Path) -> None:
    assert Cassette.of(CassetteSettings(), None) is None
    assert Cassette.of(CassetteSettings("off"), tmp_path) is None
    for settings, folder, path in (
        (CassetteSettings(), tmp_path, tmp_path / FILE),
        (CassetteSettings(file=str(tmp_path / "mine")), None, tmp_path / "mine"),
        (CassetteSettings(file=str(tmp_path / "both")), tmp_path, tmp_path / "both"),
    ):
        cassette = Cassette.of(settings, folder)
        assert cassette is not None
        cassette.answer(REQUEST, lambda: Answer("known"))
        cassette.close()
        assert path.is_file()
