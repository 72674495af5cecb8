"""Answers about elements of the syntax tree, each found once.

A rule that others use often has its elements asked about as often, and elements within elements multiply that.
Nodes are kept by identity: they compare equal wherever they stand, and hashing one costs as much as it is large. A
kept node cannot give its identity to another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Memo(Generic[Answer]):
    """Answers to one question."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[tuple[object, ...], Answer]] = {}

    def find(self, nodes: tuple[object, ...], words: tuple[str, ...], read: Callable[[], Answer]) -> Answer:
        """Return the answer about `nodes` and `words`; `read` gives it the first time."""
        key = (*map(id, nodes), *words)
        if key not in self._known:
            self._known[key] = (nodes, read())
        return self._known[key][1]
