"""Figures by matplotlib as SVG that lives inside a page: its colours are the page's, its text can be read and found.

Every figure is drawn twice, for a wide page and for a phone: scaled down, the words of the first would be too small.
Colours are stood in for by numbers that nobody uses, which become the page's CSS variables, so one drawing serves
light and dark. Nothing depends on the time or the machine: the same values give the same text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, LINE, BAD = "#a1b001", "#a1b002", "#a1b003", "#a1b004"
SERIES = tuple(f"#a1b01{number}" for number in range(8))
"""Colours of what is told apart; the last one is for all the rest."""

_VARIABLES = {INK: "--ink", SOFT: "--soft", LINE: "--line", BAD: "--bad"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
WIDE, NARROW = 10.0, 4.7
"""Widths in inches, of 72 points; text has 10 points."""

Draw = Callable[["Axes", bool], None]
"""Draws into axes; told whether the page is wide."""


class Figure(msgspec.Struct, frozen=True):
    """One figure: the same in SVG for wide pages and for narrow ones, and in a sentence for those who do not see it."""

    title: str
    note: str
    description: str
    wide: str
    narrow: str


def draw_figure(
    name: str, title: str, note: str, description: str, draw: Draw, *, height: float = 2.7
) -> Figure:
    """Return a figure, `height` inches high; `name` tells its parts from those of other figures of a page."""
    wide = _svg(f"{name}-wide", draw, (WIDE, height), is_wide=True)
    narrow = _svg(f"{name}-narrow", draw, (NARROW, max(height, 3.0)), is_wide=False)
    return Figure(title, note, description, wide, narrow)


def _svg(name: str, draw: Draw, size: tuple[float, float], *, is_wide: bool) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 10.0,
        "text.color": INK,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": SOFT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": LINE,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "legend.frameon": False,
        "legend.labelcolor": INK,
        # What a peer calls itself may hold a dollar.
        "text.parse_math": False,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Letters that matplotlib's own font lacks are the browser's to draw.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Canvas(figsize=size, layout="constrained")
        canvas = FigureCanvasSVG(figure)
        draw(figure.add_subplot(), is_wide)
        written = io.StringIO()
        write: Callable[..., object] = canvas.print_svg
        write(written, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _fit_into_page(written.getvalue(), name)


def _fit_into_page(svg: str, name: str) -> str:
    """Return the element alone, with ids of its own and the page's colours and font."""
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="patch_1">.*?</g>', "", svg, count=1, flags=re.DOTALL)  # the white ground
    svg = re.sub(r'(<path d="[^"]*")\s+style="fill: #ffffff"', r'\1 style="fill: none"', svg)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{name}-", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><")
    svg = re.sub(r"<[^>]*>", _shorten_numbers, svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r'<svg height="[^"]*"', "<svg", re.sub(r' width="[\d.]+pt"', "", svg, count=1), count=1)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg


def _shorten_numbers(tag: re.Match[str]) -> str:
    """Return a tag with two decimals at most, a hundredth of a point."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag[0])
