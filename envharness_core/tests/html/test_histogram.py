"""The histogram holds every task once, follows the page's colours, and needs nothing from outside."""

from __future__ import annotations

import os
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.page.histogram import BINS, Panel, draw

if not os.environ.get("CI"):  # there, what is missing is an error
    pytest.importorskip("matplotlib", reason="the report's packages: pip install 'envharness-core[report]'")

RATES = st.lists(st.floats(0, 1), max_size=30)


@given(RATES, RATES)
def test_each_rate_is_in_one_bin(measured: list[float], others: list[float]) -> None:
    counts = Panel("", measured, others).counts
    assert (sum(counts[0]), sum(counts[1])) == (len(measured), len(others))
    assert all(len(count) == BINS for count in counts)


def test_a_bin_holds_its_lower_end_and_the_last_one_both() -> None:
    counts, _ = Panel("", [place / 10 for place in range(11)]).counts
    assert counts == [1] * 9 + [2]


def test_the_drawing_is_an_element_with_bars_and_bands_in_the_pages_colours() -> None:
    panels = [Panel("Before & <after>", [0.0, 0.95, 1.0]), Panel("After", [0.5], [0.5, 0.1])]
    svg = draw(panels, (0.4, 0.6))
    ElementTree.fromstring(svg.replace("xlink:href", "href"))
    ids = set(re.findall(r'id="((?:measured|others|band)[^"]*)"', svg))
    assert ids == {
        "measured-0-0",
        "measured-0-9",
        "measured-1-5",
        "others-1-5",
        "others-1-1",
        "band-0",
        "band-1",
    }
    assert "http" not in svg
    assert "<after>" not in svg
    assert set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)) <= {
        "none", "var(--ink)", "var(--soft)", "var(--band)", "var(--bar)", "var(--other)",
    }  # fmt: skip


def test_the_same_numbers_give_the_same_drawing() -> None:
    assert draw([Panel("a", [0.3])], None) == draw([Panel("a", [0.3])], None)
    assert "band-0" not in draw([Panel("a", [0.3])], None)
