"""SVG drawings as element trees: the library escapes text, and every drawing has an accessible name.

Colours and fonts come from the style sheet of the page, which supports light, dark and print; a
drawing sets classes only. Sizes are in pixels. Text is in a monospace font, so its width can be
computed: `text_width`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

CHARACTER = 7.25
"""Width of a character at 12 pixels, in the widest of the usual monospace fonts."""

SMALLEST = 0.75
"""Smallest scale of a drawing on a narrow page."""

Attributes = Mapping[str, str | float]


def text_width(text: str) -> float:
    """Return the width of a text; East Asian characters count twice."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text) * CHARACTER


def shortened(text: str, width: float) -> str:
    """Return the text, shortened with an ellipsis if it is wider than `width`."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) > width - CHARACTER:
        text = text[:-1]
    return f"{text.rstrip()}…"


def drawing(width: float, height: float, name: str, *, kind: str, links: bool = False) -> Element:
    """Return an empty drawing with the accessible name `name`; with `links`, its parts are accessible."""
    return Element(
        "svg",
        {
            "class": kind,
            "role": "group" if links else "img",
            "aria-label": name,
            "width": number(width),
            "height": number(height),
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "style": least_width(width),
        },
    )


def least_width(width: float) -> str:
    """Return the style of a drawing that shrinks on narrow pages while it remains readable."""
    return f"min-width:{number(width * SMALLEST)}px"


def add(parent: Element, tag: str, attributes: Attributes, text: str = "") -> Element:
    """Append an element and return it."""
    written = {key: value if isinstance(value, str) else number(value) for key, value in attributes.items()}
    child = SubElement(parent, tag, written)
    child.text = text or None
    return child


def add_text(parent: Element, x: float, y: float, text: str, width: float, *, kind: str) -> Element:
    """Append a text centred at `x`, shortened to `width`; the full text is its tooltip."""
    shown = shortened(text, width)
    child = add(parent, "text", {"x": x, "y": y, "class": kind}, shown)
    if shown != text:
        add(child, "title", {}, text).tail = child.text
        child.text = None
    return child


def written(drawing: Element) -> Markup:
    """Return the drawing as markup that needs no escaping."""
    return Markup(tostring(drawing, encoding="unicode"))


def number(value: float) -> str:
    """Return a coordinate with at most two decimals, the same on every machine."""
    return f"{round(value, 2):.10g}"
