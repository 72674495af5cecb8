"""SVG as elements: text is escaped by the library that writes them, and every drawing has a name.

Colours and fonts are left to the page's style sheet, which knows light, dark and paper; a drawing says
by classes what its shapes are. Sizes are in pixels. Text is set in a monospace font, so that its width
is known here: `text_width`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

CHARACTER = 7.25
"""The width of a character at 12 pixels, in the widest of the usual monospace fonts."""

SMALLEST = 0.75
"""How much of its size a drawing keeps on a narrow page."""

Attributes = Mapping[str, str | float]


def text_width(text: str) -> float:
    """Return how wide a text is; characters of East Asia take two places."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text) * CHARACTER


def shortened(text: str, width: float) -> str:
    """Return the text, cut with an ellipsis where it is wider than `width`."""
    if text_width(text) <= width:
        return text
    while text and text_width(text) > width - CHARACTER:
        text = text[:-1]
    return f"{text.rstrip()}…"


def drawing(width: float, height: float, name: str, *, kind: str, links: bool = False) -> Element:
    """Return an empty drawing; `name` is read aloud. With `links`, its parts can be reached as well."""
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
    """Return the style of a drawing that shrinks where room is scarce, as long as it can be read."""
    return f"min-width:{number(width * SMALLEST)}px"


def add(parent: Element, tag: str, attributes: Attributes, text: str = "") -> Element:
    """Append an element and return it."""
    written = {key: value if isinstance(value, str) else number(value) for key, value in attributes.items()}
    child = SubElement(parent, tag, written)
    child.text = text or None
    return child


def add_text(parent: Element, x: float, y: float, text: str, width: float, *, kind: str) -> Element:
    """Append a text around `x`, cut to `width`; what was cut shows when the pointer rests on it."""
    shown = shortened(text, width)
    child = add(parent, "text", {"x": x, "y": y, "class": kind}, shown)
    if shown != text:
        add(child, "title", {}, text).tail = child.text
        child.text = None
    return child


def written(drawing: Element) -> Markup:
    """Return the drawing as text that stands in a page as it is."""
    return Markup(tostring(drawing, encoding="unicode"))


def number(value: float) -> str:
    """Return a coordinate with two decimals at most, the same on every machine."""
    return f"{round(value, 2):.10g}"
