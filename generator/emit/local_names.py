"""Local names of a generated function: each has one type, and one meaning at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count


class LocalNames:
    """Names of a function's local variables, distinct from field names.

    A name taken inside a `scope` can be reused after it for another value of the same type.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        self._fields = frozenset(fields)
        self._types: dict[str, str] = {}
        self._taken: set[str] = set()
        self._declared: set[str] = set()

    def local(self, name: str) -> str:
        """Return `name`, changed if a field has that name."""
        return f"{name}_" if name in self._fields else name

    def fresh(self, name: str, type: str) -> str:
        """Return an unused name like `name` that never had another type."""
        for number in count(1):
            found = self.local(name if number == 1 else f"{name}_{number}")
            if found not in self._taken and self._types.get(found, type) == type:
                self._taken.add(found)
                self._types[found] = type
                return found
        raise AssertionError("numbers do not end")

    def declare(self, name: str, type: str) -> str:
        """Return the left side of an assignment: with a type annotation the first time only."""
        known = name in self._declared
        self._declared.add(name)
        return name if known else f"{name}: {type}"

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Release the names taken inside at the end."""
        taken = set(self._taken)
        yield
        self._taken = taken
