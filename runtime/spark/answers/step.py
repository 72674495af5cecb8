"""The one shape of an answer that is continued: what is certain, what is still open, and what the next run needs.

Traffic arrives in portions, and a conversation or a request may begin in one and end in another. So an answer
is a function `advance`: given the typed tables of new messages and the state that it left behind last time, it
returns a `Step`. Run over a capture in portions, each in order, it gives in the end the same rows, closed and
open together, as run once over everything.

The frames of a step are plans over data that the step holds in Spark's cache (`cached`): write them all, then
call `release`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame

Frames = Mapping[str, DataFrame]
"""DataFrames by the name of their table."""


class Step(NamedTuple):
    """One step of an answer.

    Attributes:
        closed: by answer table, rows that never change again; they are appended to the table.
        open: by answer table, rows as they stand of what is not over; the next step's `open` replaces them.
            It has the same tables as `closed`.
        state: by state table, what the next step needs; it replaces the state that was given.
        cached: what was persisted, so that the frames above are computed once.
    """

    closed: Frames
    open: Frames
    state: Frames
    cached: tuple[DataFrame, ...] = ()

    def whole(self) -> dict[str, DataFrame]:
        """Return each answer table as it stands now: what is closed and what is open."""
        return {name: rows.unionByName(self.open[name]) for name, rows in self.closed.items()}

    def release(self) -> None:
        """Give back what is cached, once everything is written."""
        for frame in self.cached:
            frame.unpersist()


class Advance(Protocol):
    """A function that continues an answer."""

    def __call__(self, typed: Frames, protocol: str, state: Frames | None, /) -> Step:
        """Return the step over new messages.

        Args:
            typed: the typed tables of the new messages, `_errors` included; from memory or from a store.
            protocol: name of their generated package.
            state: `Step.state` of the step before, None at the beginning.
        """
