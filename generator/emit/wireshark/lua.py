"""Lua source: literals that every version of Lua reads alike, and comments.

Literals are ASCII, whatever the value. So no text of a specification can end a string or change the
direction of the surrounding text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Lua = str | int | bool | None | Sequence["Lua"] | Mapping[str, "Lua"] | Mapping[int, "Lua"]
"""Lua value: a mapping is a table with keys, a sequence a table that counts from 1."""

WIDTH = 110
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEYWORDS = frozenset((
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not",
    "or", "repeat", "return", "then", "true", "until", "while",
))  # fmt: skip


def literal(value: Lua, indent: int = 0) -> str:
    """Return a value as an expression, wrapped if it does not fit on a line.

    Entries that would be nil are omitted.
    """
    items: list[tuple[str, Lua]]
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return string(value)
        case Mapping():
            items = [(f"{_key(key)} = ", item) for key, item in value.items() if item is not None]
        case _:
            items = [("", item) for item in value]
    whole = ", ".join(f"{key}{literal(item)}" for key, item in items)
    if not items:
        return "{}"
    if len(whole) + 2 * indent + 4 <= WIDTH:
        return f"{{ {whole} }}"
    pad = "  " * (indent + 1)
    lines = [f"{pad}{key}{literal(item, indent + 1)}," for key, item in items]
    return "\n".join(("{", *lines, "  " * indent + "}"))


def string(text: str) -> str:
    """Return a text as a string literal, with escapes for octets beyond ASCII."""
    octets = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(map(_character, octets)) + '"'


def comment(text: str) -> str:
    """Return a text as comment lines, in printable ASCII."""
    lines = text.encode("ascii", "backslashreplace").decode().splitlines()
    return "\n".join("-- " + "".join(c if c.isprintable() else " " for c in line) for line in lines)


def _character(octet: int) -> str:
    if octet in b'"\\' or not 0x20 <= octet <= 0x7E:
        return f"\\{octet:03d}"
    return chr(octet)


def _key(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return key if _NAME.match(key) and key not in _KEYWORDS else f"[{string(key)}]"
