"""A mapping that does not change and is cheap to extend: what is new lies in a small layer over what was there.

A stream adds a few entries to some hundred thousand with each of its batches, and goes back to those of before where
the batch fails. Both share the lower layer, which is never written to again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

LAYER = 4096
"""Entries of the upper layer, which is copied with each addition; beyond them both become one."""


class Layered(Generic[Key, Value]):
    """A mapping; `add` gives another."""

    def __init__(
        self, lower: Mapping[Key, Value] | None = None, upper: Mapping[Key, Value] | None = None
    ) -> None:
        self._lower = lower or {}
        self._upper = upper or {}

    def add(self, more: Mapping[Key, Value]) -> Layered[Key, Value]:
        """Return the mapping with these as well; a key that was there keeps its place and gets the new value."""
        upper = {**self._upper, **more}
        if len(upper) > LAYER:
            return Layered({**self._lower, **upper})
        return Layered(self._lower, upper)

    def get(self, key: Key) -> Value | None:
        """Return the value of a key; None where there is none."""
        return self._upper.get(key, self._lower.get(key))

    def values(self) -> Iterator[Value]:
        """Give the values, those of the oldest keys first."""
        below = (self._upper.get(key, value) for key, value in self._lower.items())
        return chain(below, (value for key, value in self._upper.items() if key not in self._lower))
