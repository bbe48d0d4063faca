"""The histogram of success rates, as inline SVG that follows the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from attrs import frozen

BINS = 10

_INKS = {"#010101": "var(--ink)", "#020202": "var(--soft)", "#030303": "var(--band)", "#040404": "var(--bar)"}
_INKS["#050505"] = "var(--other)"
_INK, _SOFT, _BAND, _BAR, _OTHER = _INKS
"""Colours to draw with, and the page's that they stand for."""


@frozen
class Panel:
    """One histogram.

    Args:
        title: what stands above it.
        measured: success rates in [0, 1] of the tasks that count.
        others: those of tasks that were given up, drawn apart on top.
    """

    title: str
    measured: Sequence[float]
    others: Sequence[float] = ()

    @property
    def counts(self) -> tuple[list[int], list[int]]:
        """How many of both fall into each of ten bins, each without its upper end but the last."""
        return _binned(self.measured), _binned(self.others)


def draw(panels: Sequence[Panel], band: tuple[float, float] | None) -> str:
    """Return the panels side by side as an ``<svg>`` element, the band shaded.

    Colours are the page's, so that they follow its light and dark.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    styles: Any = {"svg.fonttype": "none", "svg.hashsalt": "envharness", "font.size": 11, "text.color": _INK}
    styles |= {
        "axes.labelcolor": _INK,
        "axes.titlecolor": _INK,
        "axes.edgecolor": _SOFT,
        "axes.facecolor": "none",
    }
    styles |= {"xtick.color": _SOFT, "ytick.color": _SOFT, "xtick.labelcolor": _INK, "ytick.labelcolor": _INK}
    with mpl.rc_context(styles):
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for number, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
            _draw_panel(axis, panel, band, number)
        axes[0].set_ylabel("tasks")
        file = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _inline(file.getvalue())


def _draw_panel(axis: Any, panel: Panel, band: tuple[float, float] | None, number: int) -> None:
    if band is not None:
        axis.axvspan(*band, gid=f"band-{number}", linewidth=0, color=_BAND)
    measured, others = panel.counts
    places = [(place + 0.5) / BINS for place in range(BINS)]
    width = 0.92 / BINS
    for place, x in enumerate(places):
        if measured[place]:
            axis.bar(x, measured[place], width, color=_BAR, gid=f"measured-{number}-{place}")
        if others[place]:
            axis.bar(
                x, others[place], width, bottom=measured[place], color=_OTHER, gid=f"others-{number}-{place}"
            )
        total = measured[place] + others[place]
        if total:
            axis.text(x, total, str(total), ha="center", va="bottom", gid=f"label-{number}-{place}")
    axis.set_title(panel.title, fontsize=12, loc="left")
    axis.set_xlabel("success rate of a task")
    axis.set_xlim(0, 1)
    axis.set_xticks([tick / 5 for tick in range(6)])
    axis.margins(y=0.12)
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _binned(rates: Sequence[float]) -> list[int]:
    counts = [0] * BINS
    for rate in rates:
        counts[min(BINS - 1, int(rate * BINS))] += 1
    return counts


def _inline(text: str) -> str:
    """Cut an SVG file down to an element of a page: no prologue, no sizes, no name spaces."""
    element = text[text.index("<svg") :]
    head, tail = element.split(">", 1)
    for ink, colour in _INKS.items():
        tail = tail.replace(ink, colour)
    head = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
    return f'{head} aria-hidden="true" focusable="false">{tail}'
