"""Cache of answers about elements of the syntax tree.

A rule that many others use is examined at each use, and nested elements multiply that. A cache keeps the
work in proportion to the grammar. Its keys are the identities of nodes: equal nodes occur in several places,
and hashing a node takes time in proportion to its size. The cache holds each node, so that no identity is reused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Memo(Generic[Answer]):
    """Cache of the answers to one question."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[tuple[object, ...], Answer]] = {}

    def find(self, nodes: tuple[object, ...], words: tuple[str, ...], read: Callable[[], Answer]) -> Answer:
        """Return the cached answer about `nodes` and `words`; call `read` for it the first time."""
        key = (*map(id, nodes), *words)
        if key not in self._known:
            self._known[key] = (nodes, read())
        return self._known[key][1]
