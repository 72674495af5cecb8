"""What is wrong with an inventory, and where."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A place in a file; line and column from 1. `rendered` where it counts in what the template gave, not in the file."""

    file: str
    line: int = 1
    column: int = 1
    rendered: bool = False

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where} of the rendered text" if self.rendered else where


class InventoryError(Exception):
    """An inventory cannot be used as it is; the text begins with the place.

    Attributes:
        place: where.
        reason: what is wrong, and what to do.
    """

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place, self.reason = place, reason
