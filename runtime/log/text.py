"""Text from the wire on its way to a log or a terminal."""

from __future__ import annotations


def show(text: str) -> str:
    """Return `text` with everything unprintable escaped, so that it cannot forge log lines."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
