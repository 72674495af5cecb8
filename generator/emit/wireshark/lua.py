"""Lua source: values as literals that every release of Lua reads alike, and comments.

A literal is ASCII whatever the value holds, so nothing in a specification's words can end a string or turn the
direction of the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Lua = str | int | bool | None | Sequence["Lua"] | Mapping[str, "Lua"] | Mapping[int, "Lua"]
"""A value: a mapping with names or numbers for keys is a table, a sequence one that counts from 1."""

WIDTH = 110
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEYWORDS = frozenset((
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not",
    "or", "repeat", "return", "then", "true", "until", "while",
))  # fmt: skip


def literal(value: Lua, indent: int = 0) -> str:
    """Return a value as an expression; what does not fit in a line is laid out below each other.

    What a table would hold as nil is left out.
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
    """Return a text as a string literal; octets beyond ASCII by their numbers."""
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
