"""Text from the wire on its way to a person: a log, a terminal, a page.

Unprintable is what `str.isprintable` says: controls (C0, DEL, C1, such as the ESC of a terminal's commands), marks that turn
the direction of text (U+202A to U+202E, U+2066 to U+2069), every end of a line, and surrogates, which no output can encode.
Markup is a separate matter: a page escapes it, and Rich gets such text as `Text` or with ``markup=False``.
"""

from __future__ import annotations


def show(text: str, *, keep: str = "") -> str:
    """Return `text` with everything unprintable escaped as Python does it, so that it cannot forge log lines.

    Args:
        keep: unprintable characters that may stay, such as the line ends of a text that has several lines.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def show_json(text: str) -> str:
    """Return a JSON text with everything unprintable escaped as JSON does it; line ends between values stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _units(c) for c in text)


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
