"""The page is one file that needs nothing else, says what the run's summary says, and takes no text for markup."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostile_texts import NASTY, TASKS  # type: ignore[import-not-found]

from envharness_core import report_html
from envharness_core.errors import CheckpointError, ConfigError
from envharness_core.store import FILE, Store

if not os.environ.get("CI"):  # there, what is missing is an error
    pytest.importorskip("matplotlib", reason="the report's packages: pip install 'envharness-core[report]'")
    pytest.importorskip("jinja2", reason="the report's packages: pip install 'envharness-core[report]'")


class Reader(HTMLParser):
    """Collects elements with their attributes, and the text of scripts and of the rest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script":
            self.scripts[-1] += data
        self.text += data


def written(folder: Path, tmp_path: Path, **options: Any) -> tuple[str, Any]:
    held = report_html(folder, tmp_path / "report.html", **options)
    return (tmp_path / "report.html").read_text(encoding="utf-8"), held


def chunks(page: str) -> list[Any]:
    packed = json.loads(Reader(page).scripts[0])
    return [json.loads(zlib.decompress(b64decode(chunk))) for chunk in packed]


@pytest.mark.parametrize("name", ["toy24", "hostile"])
def test_the_page_is_whole_and_no_text_is_markup(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    page, held = written(request.getfixturevalue(name), tmp_path)
    reader = Reader(page)
    assert held["bytes"] == len(page.encode())
    assert [attributes.get("type") for tag, attributes in reader.elements if tag == "script"] == [
        "application/json", "application/json", None,
    ]  # fmt: skip
    tags = [tag for tag, _ in reader.elements]
    assert not {"img", "iframe", "object", "embed", "form", "base", "i"} & set(tags)
    assert (tags.count("svg"), tags.count("b")) == (1, 1)
    for tag, attributes in reader.elements:
        assert not any(key.startswith("on") for key in attributes), (tag, attributes)
        assert "src" not in attributes
        for key in ("href", "xlink:href"):
            assert attributes.get(key, "#").startswith(("#", "data:,")), (tag, attributes)  # type: ignore[union-attr]
    outside = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    assert "//" not in re.sub(r"<script>.*?</script>", "", outside, flags=re.DOTALL)
    assert set(re.findall(r"url\((.)", page)) == {"#"}
    assert "innerHTML" not in page
    assert "@import" not in page


def test_what_is_hostile_is_shown_as_it_is(hostile: Path, tmp_path: Path) -> None:
    page, _ = written(hostile, tmp_path)
    reader = Reader(page)
    links = [attributes for tag, attributes in reader.elements if tag == "a"]
    assert len([link for link in links if str(link["href"]).startswith("#/task/")]) == len(TASKS)
    for task in TASKS:
        assert task in reader.text
    assert NASTY in reader.text
    told = chunks(page)
    assert {chunk["task"] for chunk in told if "task" in chunk} == set(TASKS)
    playbacks = [chunk for chunk in told if "steps" in chunk]
    assert any(NASTY in step["text"] for chunk in playbacks for step in chunk["steps"])


@pytest.mark.parametrize("name", ["toy24", "hostile"])
def test_the_page_says_what_the_summary_says(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(name)
    page, held = written(folder, tmp_path)
    with Store.open(folder, read_only=True) as store:
        summary: Any = store.meta("summary")
        results = store.results()
        total = sum(count for _, _, count in store.counts())
    text = re.sub(r"\s+", " ", Reader(page).text)
    assert f"{summary['accepted'] - summary['kept']} with accepted layers, {summary['kept']} kept" in text
    for name, count in summary["episodes"]["excluded"].items():
        assert f"{count} {name}" in text
    assert f"{held['episodes']} of {total:,} rollouts" in text
    assert (held["of"], held["left_out"], held["damaged"]) == (total, 0, [])
    told = {chunk["task"]: chunk for chunk in chunks(page) if "task" in chunk}
    for result in results:
        chunk, attempts = told[result["task"]], result["attempts"]
        assert chunk["status"] == result["status"]
        assert [attempt["reason"] for attempt in chunk["attempts"]] == [
            attempt["rejected"] or attempt["reason"]  # type: ignore[call-overload,index]
            for attempt in attempts  # type: ignore[union-attr]
        ]
        if result["status"] == "accepted":
            assert any(str(result["reason"]) in sentence for sentence in chunk["story"])
        assert len(chunk["episodes"]) <= chunk["played"]


def test_every_outcome_that_was_excluded_can_be_looked_at(hostile: Path, tmp_path: Path) -> None:
    page, _ = written(hostile, tmp_path)
    shown = [chunk for chunk in chunks(page) if "steps" in chunk and chunk["success"] is None]
    assert {chunk["outcome"] for chunk in shown} == {"provider_error"}
    assert all(NASTY in chunk["error"] for chunk in shown)


@pytest.mark.parametrize("megabytes", [0, 0.005, 0.05])
def test_the_rollouts_stay_within_the_size_and_what_is_left_out_is_announced(
    toy24: Path, tmp_path: Path, megabytes: float
) -> None:
    _, full = written(toy24, tmp_path)
    page, held = written(toy24, tmp_path, megabytes=megabytes)
    packed = json.loads(Reader(page).scripts[0])
    episodes = [text for text, chunk in zip(packed, chunks(page), strict=True) if "steps" in chunk]
    assert sum(map(len, episodes)) <= megabytes * 1e6
    assert held["episodes"] == len(episodes) < full["episodes"]
    assert held["episodes"] + held["left_out"] == full["episodes"]
    assert f"{held['left_out']:,} rollouts that belong here by that rule found no room" in Reader(page).text


def test_a_damaged_record_is_announced_and_the_rest_is_told(toy24: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(toy24, folder)
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("UPDATE episodes SET trajectory = x'00' WHERE stream = 'baseline' AND idx = 0")
    page, held = written(folder, tmp_path)
    assert len(held["damaged"]) == 6
    assert "6 rollouts can't be read" in Reader(page).text


def test_a_run_that_isnt_finished_is_told_as_far_as_it_is(toy24: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(toy24, folder)
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("DELETE FROM tasks")
        connection.execute("DELETE FROM episodes WHERE stream LIKE 'report%'")
        connection.execute("DELETE FROM meta WHERE name = 'summary'")
    page, _ = written(folder, tmp_path)
    told = [chunk for chunk in chunks(page) if "task" in chunk]
    assert [chunk["status"] for chunk in told] == ["unfinished"] * 6
    assert all(chunk["episodes"] for chunk in told)
    assert "not measured" in page
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("DELETE FROM episodes")
    page, held = written(folder, tmp_path)
    assert (held["episodes"], held["of"]) == (0, 0)


def test_what_is_written_replaces_the_file_as_a_whole(toy24: Path, tmp_path: Path) -> None:
    once, _ = written(toy24, tmp_path)
    assert written(toy24, tmp_path)[0] == once
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "missing" / "report.html"):
        with pytest.raises(ConfigError, match=r"can't be written|is a folder"):
            report_html(toy24, place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "report.html"]


def test_a_folder_that_holds_no_run_or_a_damaged_one_is_refused(toy24: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a run folder"):
        report_html(tmp_path, tmp_path / "report.html")
    folder = tmp_path / "run"
    shutil.copytree(toy24, folder)
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("UPDATE tasks SET result = '{}'")
    with pytest.raises(CheckpointError, match="the store is damaged"):
        report_html(folder, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_what_to_install(
    missing: str, toy24: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=rf"needs {missing}, .*pip install 'envharness-core\[report\]'"):
        report_html(toy24, tmp_path / "report.html")


def test_the_optional_packages_are_loaded_for_a_page_alone() -> None:
    code = "import sys, envharness_core.cli.report_command as _; print({'jinja2', 'matplotlib'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_the_command_line_writes_it(toy24: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "envharness_core.cli.main", "report", str(toy24), "--html"]
    path = tmp_path / "page.html"
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
    assert re.fullmatch(rf"wrote {path} \(0\.\d MB; \d+ of [\d,]+ rollouts to page through\)\n", done.stdout)
    small = [*command, str(path), "--megabytes", "0.01"]
    assert (
        "more found no room (--megabytes)"
        in subprocess.run(small, capture_output=True, text=True, check=True).stdout
    )
    done = subprocess.run([*command, str(path), "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["bytes"] == path.stat().st_size
    wrong = [*command, str(tmp_path / "none" / "page.html")]
    failed = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
