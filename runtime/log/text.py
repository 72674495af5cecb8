"""Escaping of text from the wire before a person reads it in a log, a terminal or a page.

Unprintable characters are those that `str.isprintable` rejects: controls (C0, DEL and C1, such as
the ESC of terminal commands), bidirectional marks (U+202A to U+202E, U+2066 to U+2069), line
separators, and surrogates, which no output can encode. Markup is not handled here: a page escapes
it, and Rich gets such text as `Text` or with ``markup=False``.
"""

from __future__ import annotations


def show(text: str, *, keep: str = "") -> str:
    """Escape unprintable characters as Python does, so that `text` cannot forge log lines.

    Args:
        keep: unprintable characters that stay, such as the line ends of a text with several lines.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def show_json(text: str) -> str:
    """Escape unprintable characters of a JSON text as JSON does; line ends between values stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
