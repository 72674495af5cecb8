"""SVG charts inside the page: axes, marks with a tooltip, colours from the page's CSS variables.

Every mark is in a group that begins with ``<title>``, which browsers show on hover without a
script. Each chart is drawn twice, for a wide page and for a phone, because text scaled down would
be too small. The legend is HTML, so that it wraps. The same values always give the same text. All
text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from markupsafe import escape

from specwire.runtime.log.text import show
from specwire.runtime.spark.report.text import THIN_SPACE

SERIES = tuple(f"s{number}" for number in range(8))
"""CSS variables, and classes, of the colours of series; the last is for all others."""
BAD, INK, SOFT, LINE = "bad", "ink", "soft", "line"

WIDE, NARROW = 960.0, 360.0
"""Widths in CSS pixels."""
LETTER = 6.6
"""Average width of a character at the chart's font size of 12 pixels."""
TITLE_LENGTH = 400
"""Maximum length of a tooltip, in characters."""


class Figure(msgspec.Struct, frozen=True):
    """Chart in SVG for wide and for narrow pages, with its legend and a text alternative.

    `legend` has a colour and a text for each entry; `sql` is the query behind the chart.
    """

    title: str
    note: str
    description: str
    legend: tuple[tuple[str, str], ...]
    wide: str
    narrow: str
    sql: str = ""


class Scale(NamedTuple):
    """Linear or logarithmic map from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)


Draw = Callable[[bool], tuple[float, Iterable[str]]]
"""Draws for a wide or narrow page; returns the height in pixels and the elements."""


def draw_figure(
    title: str, note: str, description: str, legend: Sequence[tuple[str, str]], draw: Draw, *, sql: str = ""
) -> Figure:
    """Return a figure of what `draw` draws for both widths."""
    wide, narrow = (_svg(WIDE if is_wide else NARROW, *draw(is_wide)) for is_wide in (True, False))
    return Figure(title, note, description, tuple(legend), wide, narrow, sql)


def _svg(width: float, height: float, elements: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}">{"".join(elements)}</svg>'


def number(value: float) -> str:
    """Return a coordinate with one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def titled(title: str, *elements: str, kind: str = "mark") -> str:
    """Return marks that show a tooltip on hover."""
    text = show(title[:TITLE_LENGTH], keep=f"\n{THIN_SPACE}")
    return f'<g class="{kind}"><title>{escape(text)}</title>{"".join(elements)}</g>'


def rect(x: float, y: float, width: float, height: float, colour: str = "hit") -> str:
    """Return a rectangle, as a path because that is shorter.

    ``hit`` is invisible and only catches the pointer.
    """
    return f'<path class="{colour}" d="M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"/>'


def circle(x: float, y: float, radius: float, colour: str) -> str:
    """Return a filled circle."""
    return f'<circle class="{colour}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>'


def path(points: str, colour: str, width: float, *, dashed: bool = False) -> str:
    """Return a stroked path."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<path d="{points}" style="fill:none;stroke:var(--{colour})" stroke-width="{number(width)}"{dash}/>'
    )


def polygon(points: Sequence[tuple[float, float]], colour: str) -> str:
    """Return a filled polygon."""
    places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polygon class="{colour}" points="{places}"/>'


def label(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "soft") -> str:
    """Return a line of text; `anchor` is ``start``, ``middle`` or ``end``."""
    safe = escape(show(text, keep=THIN_SPACE))
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" class="{kind}">{safe}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a line of the axes."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line class="{kind}" {ends}/>'


def round_ticks(most: float, about: int = 4) -> list[float]:
    """Return about as many round values from 0 up to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * about >= most)
    return [step * place for place in range(math.ceil(most / step) + 1)]


def y_axis(scale: Scale, ticks: Iterable[tuple[float, str]], left: float, right: float) -> Iterator[str]:
    """Yield grid lines and their labels, left of `left`."""
    for value, text in ticks:
        y = scale.at(value)
        yield line(left, y, right, y, "grid")
        yield label(left - 6, y + 4, text, anchor="end")


def x_axis(scale: Scale, ticks: Iterable[tuple[float, str]], bottom: float, name: str) -> Iterator[str]:
    """Yield the base line, tick labels that do not overlap, and the axis name below them."""
    yield line(scale.start, bottom, scale.end, bottom, "axis")
    free = -math.inf
    for value, text in ticks:
        x, half = scale.at(value), len(text) * LETTER / 2
        if x - half < free:
            continue
        free = x + half + 6
        yield line(x, bottom, x, bottom + 4, "axis")
        yield label(min(x, scale.end - half / 2), bottom + 17, text, anchor="middle")
    yield label((scale.start + scale.end) / 2, bottom + 34, name, anchor="middle")
