"""Draw lines over two logarithmic axes as SVG: for pictures whose every point is the same in every run.

A library that plots would bring a dozen others, and draw the same points in other octets with each release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 80, 240, 50, 60
NAME_APART = 16
"""Pixels from the name of one line to the next."""


class Line(NamedTuple):
    """Points from left to right; `dash` as SVG has it, empty for a line without gaps."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = ""


class Axis(NamedTuple):
    """Decades from `first` to `last`, between two pixels."""

    first: int
    last: int
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (log10(value) - self.first) / (self.last - self.first)
        return round(self.begin + share * (self.end - self.begin), 1)


def draw(title: str, x_name: str, lines: Sequence[Line], show: Callable[[float], str]) -> str:
    """Return the picture.

    Args:
        show: returns the label of a decade on the vertical axis.
    """
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    across = Axis(floor(log10(min(xs))), ceil(log10(max(xs))), LEFT, WIDTH - RIGHT)
    upward = Axis(floor(log10(min(ys))), ceil(log10(max(ys))), HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        '<g font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, TOP - 22, title, "start", 'font-size="15" font-weight="bold"'),
        *_grid(across, upward, show),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_name, "middle"),
        *(part for line in lines for part in _curve(line, across, upward)),
        *_names(lines, upward),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(across: Axis, upward: Axis, show: Callable[[float], str]) -> list[str]:
    parts = []
    for decade in range(across.first, across.last + 1):
        x = across.place(10.0**decade)
        parts.append(_stroke(x, upward.begin, x, upward.end))
        parts.append(_text(x, upward.begin + 20, f"{10**decade:,}", "middle"))
    for decade in range(upward.first, upward.last + 1):
        y = upward.place(10.0**decade)
        parts.append(_stroke(across.begin, y, across.end, y))
        parts.append(_text(across.begin - 8, y + 4, show(10.0**decade), "end"))
    return parts


def _curve(line: Line, across: Axis, upward: Axis) -> list[str]:
    places = [(across.place(x), upward.place(y)) for x, y in line.points]
    dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
    joined = " ".join(f"{x},{y}" for x, y in places)
    curve = f'<polyline points="{joined}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>'
    dots = (f'<circle cx="{x}" cy="{y}" r="3" fill="{line.colour}"/>' for x, y in places)
    return [curve, *(() if line.dash else dots)]


def _names(lines: Sequence[Line], upward: Axis) -> list[str]:
    """Write the name of each line at its end, those that would meet one below the other."""
    ends = sorted((upward.place(line.points[-1][1]), line) for line in lines)
    parts, lowest = [], float(TOP) - NAME_APART
    for end, line in ends:
        lowest = max(end, lowest + NAME_APART)
        parts.append(_text(WIDTH - RIGHT + 10, lowest + 4, line.name, "start", f'fill="{line.colour}"'))
    return parts


def _stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f"<text {place}{' ' + more if more else ''}>{escape(text)}</text>"
