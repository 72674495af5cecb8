"""Step of a continued answer: its final rows, its open rows, and the state for the next run.

Traffic arrives in portions, and a conversation or a request may begin in one and end in another. So
an answer is a function `advance`: from the typed tables of new messages and the state of the last
step, it returns a `Step`. Run over a capture in portions, each in order, it gives in the end the
same rows, closed and open together, as run once over everything.

The frames of a step are plans. Those that would be computed more than once stand on data that the
step holds in Spark's cache (`cached`): write them all, then call `release`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

OPEN = "_open"
"""Additional column of an answer table: whether the row is open, that is, may still change."""

Frames = Mapping[str, DataFrame]
"""DataFrames by the name of their table."""


class Step(NamedTuple):
    """One step of an answer.

    Closed and open rows are one frame, because they come out of one pass over the messages; whoever
    writes them takes them apart as they come.

    Attributes:
        rows: by answer table, its rows with the column `OPEN` after its own.
        state: by state table, what the next step needs; it replaces the state that was given. A
            state table that has the name of an answer table is its open rows, and need not be
            computed where these were written.
        cached: what was persisted, so that the frames above are computed once.
    """

    rows: Frames
    state: Frames
    cached: tuple[DataFrame, ...] = ()

    @property
    def closed(self) -> dict[str, DataFrame]:
        """By answer table, rows that never change again; they are appended to the table."""
        return {name: rows.where(~F.col(OPEN)).drop(OPEN) for name, rows in self.rows.items()}

    @property
    def open(self) -> dict[str, DataFrame]:
        """By answer table, rows as they stand of what is not over.

        The rows of the next step replace them.
        """
        return {name: rows.where(OPEN).drop(OPEN) for name, rows in self.rows.items()}

    def whole(self) -> dict[str, DataFrame]:
        """Return each answer table as it stands now: what is closed and what is open."""
        return {name: rows.drop(OPEN) for name, rows in self.rows.items()}

    def release(self) -> None:
        """Release the cached data, after everything is written."""
        for frame in self.cached:
            frame.unpersist()


class Advance(Protocol):
    """A function that continues an answer."""

    def __call__(self, typed: Frames, protocol: str, state: Frames | None, /) -> Step:
        """Return the step over new messages.

        Args:
            typed: the typed tables of the new messages, `_errors` included; from memory or from a
                store.
            protocol: name of their generated package.
            state: `Step.state` of the step before, None at the beginning.
        """
