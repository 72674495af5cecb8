"""Search for the command that a drawn dialog calls by another word, so that an erratum can be proposed.

For example, a document draws ``W: HEARTBEAT`` but has a table for KEEPALIVE, and the section named
after the command uses the word heartbeat. If several commands match, none is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_SHARED = 6
"""Minimum number of equal first letters of a heading's word and a command: ``Keepaliving`` and KEEPALIVE."""


def command_meant(
    word: str, commands: Sequence[str], headings: Sequence[tuple[int, str]], lines: Sequence[str]
) -> tuple[str, str] | None:
    """Return the command that `word` refers to and the heading of the section that shows it; None if unclear.

    Args:
        headings: the line numbers, from 1, and texts of the headings, in order.
    """
    found: dict[str, str] = {}
    for heading, text in _sections(headings, lines):
        if re.search(rf"\b{re.escape(word)}s?\b", text, re.IGNORECASE):
            for command in commands:
                if any(_alike(part, command) for part in re.findall(r"\w+", heading)):
                    found.setdefault(command, heading)
    return next(iter(found.items())) if len(found) == 1 else None


def _sections(headings: Sequence[tuple[int, str]], lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    ends = [*(number for number, _ in headings[1:]), len(lines) + 1][: len(headings)]
    for (number, heading), end in zip(headings, ends, strict=True):
        yield heading, "\n".join(lines[number : end - 1])


def _alike(word: str, command: str) -> bool:
    a, b = word.lower(), command.lower()
    return a == b or (len(a) >= _SHARED and len(b) >= _SHARED and a[:_SHARED] == b[:_SHARED])
