"""Escaping of text from the wire before a person reads it in a log, a terminal or a page.

Unprintable characters are those that `str.isprintable` rejects: controls (C0, DEL and C1, such as
the ESC of terminal commands), bidirectional marks (U+202A to U+202E, U+2066 to U+2069), line
separators, and surrogates, which no output can encode. Markup is not handled here: a page escapes
it, and Rich gets such text as `Text` or with ``markup=False``.
"""

from __future__ import annotations

import re

LONGEST_PEER = 40
_HEXADECIMAL = re.compile("[0-9a-f]+")


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


def show_peer(peer: str) -> str:
    """Return a routing id in hexadecimal for a line of the log: 20 octets or fewer are shown as they are.

    A longer one that is printable ASCII is shown as text. What is too long loses its middle, so that ids with
    the same beginning can be told apart, and its length is added.
    """
    if len(peer) <= LONGEST_PEER or len(peer) % 2 or not _HEXADECIMAL.fullmatch(peer):
        return peer
    octets = bytes.fromhex(peer)
    if all(0x21 <= octet <= 0x7E for octet in octets):
        text = octets.decode()
        return text if len(text) <= LONGEST_PEER else f"{text[:16]}…{text[-16:]} ({len(octets)} octets)"
    return f"{peer[:16]}…{peer[-8:]} ({len(octets)} octets)"
