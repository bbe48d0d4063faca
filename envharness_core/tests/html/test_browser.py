"""The page in a real browser, from a file: nothing is asked of the network, and a newcomer finds their way."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hostile_texts import NASTY, TASKS  # type: ignore[import-not-found]

from envharness_core import report_html
from envharness_core.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

if not os.environ.get("CI"):  # there, what is missing is an error
    pytest.importorskip("matplotlib", reason="the report's packages: pip install 'envharness-core[report]'")
    pytest.importorskip("jinja2", reason="the report's packages: pip install 'envharness-core[report]'")

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Seen:
    """A page, with everything that it asked for and complained about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.goto(url)

    def check(self) -> None:
        assert {url.partition("#")[0] for url in self.asked} == {self.url}
        assert self.complaints == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not os.environ.get("CI"):
        pytest.importorskip("playwright", reason="playwright isn't installed")
        if not CHROMIUM.exists():
            pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def seen(browser: Browser, toy24: Path, tmp_path: Path) -> Iterator[Seen]:
    yield from _opened(browser, toy24, tmp_path)


@pytest.fixture
def seen_hostile(browser: Browser, hostile: Path, tmp_path: Path) -> Iterator[Seen]:
    yield from _opened(browser, hostile, tmp_path)


def _opened(browser: Browser, folder: Path, tmp_path: Path) -> Iterator[Seen]:
    path = tmp_path / "report.html"
    report_html(folder, path)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    seen = Seen(context.new_page(), path.as_uri())
    yield seen
    seen.check()
    context.close()


def texts(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def at(page: Page, where: str) -> None:
    """Wait until the viewer is there; the page's policy allows no waiting by evaluated scripts."""
    page.locator("#where", has_text=re.compile(f"^{where}$")).wait_for()


def rows(page: Page) -> list[str]:
    return texts(page, "#tasks tbody tr:visible td:first-child")


def test_the_histogram_is_drawn_with_its_band(seen: Seen) -> None:
    drawn = seen.page.locator("#histogram svg")
    box: Any = drawn.bounding_box()
    assert box["width"] > 600
    assert box["height"] > 150
    assert seen.page.locator("#histogram [id^=band]").count() == 2
    assert seen.page.locator("#histogram [id^=measured]").count() > 1
    bar = seen.page.locator("#histogram [id^=measured] path").first
    colour = "element => getComputedStyle(element).fill"
    light = bar.evaluate(colour)
    seen.page.click("#theme")
    assert re.fullmatch(r"rgb\(\d+, \d+, \d+\)", light)
    assert bar.evaluate(colour) != light


def test_tasks_are_filtered_and_sorted(seen: Seen, toy24: Path) -> None:
    page = seen.page
    with Store.open(toy24, read_only=True) as store:
        statuses = {str(result["task"]): str(result["status"]) for result in store.results()}
    assert rows(page) == list(statuses)
    for status in set(statuses.values()):
        page.click(f"#statuses [data-status={status}]")
        assert rows(page) == [task for task, was in statuses.items() if was == status]
    page.click("#statuses button:first-child")
    page.fill("#find", rows(page)[2])
    assert len(rows(page)) == 1
    assert texts(page, "#shown") == ["1 of 6 shown"]
    page.fill("#find", "")
    page.click("#tasks th:nth-child(3) button")
    rates = [int(text.strip("<>%")) for text in texts(page, "#tasks tbody td:nth-child(3)")]
    assert rates == sorted(rates)
    page.click("#tasks th:nth-child(3) button")
    assert page.get_attribute("#tasks th:nth-child(3)", "aria-sort") == "descending"
    rates = [int(text.strip("<>%")) for text in texts(page, "#tasks tbody td:nth-child(3)")]
    assert rates == sorted(rates, reverse=True)


def test_a_newcomer_reads_what_was_tried_why_and_what_the_policy_did(seen: Seen, toy24: Path) -> None:
    page = seen.page
    with Store.open(toy24, read_only=True) as store:
        result: Any = next(result for result in store.results() if result["status"] == "accepted")
        episode = next(
            item for item in store.episodes() if item.task == result["task"] and item.stream == "report after"
        )
        trajectory = store.trajectory(episode)
    page.click(f"text={result['task']}")
    page.wait_for_selector(".story")
    assert page.is_hidden("#overview")
    story = page.inner_text(".story")
    assert result["reason"] in story
    assert "Accepted: " in story
    assert len(texts(page, ".attempt")) == len(result["attempts"])
    assert "accepted" in page.inner_text(".attempt.accepted .pill")
    page.click(f"#rollouts div:right-of(:text('Measured after')) >> text=#{episode.index} ")
    page.wait_for_selector("#where")
    assert page.inner_text("#where") == "Start"
    assert trajectory.start is not None
    assert trajectory.start.instruction in page.inner_text("#viewer")
    for number, step in enumerate(trajectory.steps, start=1):
        page.click("#next") if number % 2 else page.keyboard.press("ArrowRight")
        at(page, f"Step {number} of {episode.steps}")
        assert page.inner_text("#proposed") == str(step.action)
        assert page.inner_text("#seen") == step.response.observation.text
        executed = [str(event.action) for event in trajectory.events_of(step) if event.kind == "step"]
        assert page.inner_text("#executed") == ("\n".join(executed) or "nothing: the world wasn't touched")
    page.click("#next")
    at(page, "End")
    assert page.is_disabled("#next")
    assert ("won" if episode.success else "lost") in page.inner_text(".step dl")
    page.go_back()
    at(page, f"Step {episode.steps} of {episode.steps}")
    page.click("text=← all tasks")
    page.wait_for_selector("#overview", state="visible")


def test_a_link_leads_to_a_step_and_a_wrong_one_to_the_overview(seen: Seen) -> None:
    page = seen.page
    page.goto(f"{seen.url}#/task/0/0/2")
    page.wait_for_selector("#where")
    assert page.inner_text("#where").startswith("Step 2")
    for wrong in ("#/task/99", "#/nonsense", "#/task/-1/x"):
        page.goto(seen.url + wrong)
        page.wait_for_selector("#overview", state="visible")
    page.goto(f"{seen.url}#/task/0/999/2")
    page.wait_for_selector(".story")


def test_hostile_texts_are_shown_and_do_nothing(seen_hostile: Seen) -> None:
    page = seen_hostile.page
    title = page.title()
    assert title.startswith("hostile <i>run")
    assert rows(page) == list(TASKS)
    scripts = page.locator("script").count()
    for number in range(len(TASKS)):
        page.goto(f"{seen_hostile.url}#/task/{number}")
        page.wait_for_selector(".story")
        page.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
        shown = page.locator("#task").text_content() or ""
        assert shown.count(NASTY) > 6
        for link in range(page.locator("#rollouts a").count()):
            page.goto(f"{seen_hostile.url}#/task/{number}/{link}/0")
            page.wait_for_selector("#where")
            for step in range(page.locator(".steps li").count()):
                page.goto(f"{seen_hostile.url}#/task/{number}/{link}/{step}")
                page.locator(f".steps li:nth-child({step + 1}) [aria-current=true]").wait_for()
    assert (page.title(), page.locator("script").count()) == (title, scripts)
    assert page.locator("#task img, #task svg, #task b b, #task i").count() == 0


def test_what_a_layer_added_is_marked_beside_what_the_world_showed(seen_hostile: Seen) -> None:
    page = seen_hostile.page
    page.goto(f"{seen_hostile.url}#/task/1")
    page.wait_for_selector(".story")
    page.click("#rollouts div:right-of(:text('Measured after')) >> a >> nth=0")
    page.wait_for_selector("#where")
    page.click("#next")
    page.wait_for_selector("#proposed")
    assert "changed" not in page.inner_text("#proposed")
    assert "changed" in page.inner_text("#executed")
    assert "ADDED" in "".join(texts(page, "#seen mark"))
    assert "ADDED" not in page.inner_text("#world")
    page.click("#next")
    at(page, "Step 2 of 4")
    assert "blocked by a layer" in page.inner_text(".step .note")
    assert page.inner_text("#executed") == "nothing: the world wasn't touched"


def test_the_page_fits_a_phone_and_follows_the_systems_colours(
    browser: Browser, toy24: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    report_html(toy24, path)
    backgrounds = set()
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        for place in ("#/", "#/task/0/0/1"):
            page.goto(f"{path.as_uri()}{place}")
            page.wait_for_selector("#where" if place.endswith("1") else "#tasks")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert len(backgrounds) == 2
