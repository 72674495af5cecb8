"""Local names of a generated function: one thing at a time under each name, and always of one type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count


class LocalNames:
    """The names that a function's own variables have, none of them a field's.

    A name that was given inside a `scope` is free again behind it, for another thing of the same type.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        self._fields = frozenset(fields)
        self._types: dict[str, str] = {}
        self._taken: set[str] = set()
        self._declared: set[str] = set()

    def local(self, name: str) -> str:
        """Return `name` as no field has it."""
        return f"{name}_" if name in self._fields else name

    def fresh(self, name: str, type: str) -> str:
        """Return a name like `name` that stands for nothing else here, and stood for nothing of another type."""
        for number in count(1):
            found = self.local(name if number == 1 else f"{name}_{number}")
            if found not in self._taken and self._types.get(found, type) == type:
                self._taken.add(found)
                self._types[found] = type
                return found
        raise AssertionError("numbers do not end")

    def declare(self, name: str, type: str) -> str:
        """Return what declares the name on the left of an assignment: with its type the first time only."""
        known = name in self._declared
        self._declared.add(name)
        return name if known else f"{name}: {type}"

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Give the names that are taken inside free again at the end."""
        taken = set(self._taken)
        yield
        self._taken = taken
