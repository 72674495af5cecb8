"""What the taps of a server have done so far, for its status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec


class TapCounts(msgspec.Struct, frozen=True):
    """Messages that a tap took, that are in finished segments, and that will be in none."""

    tap: str
    recorded: int
    written: int
    dropped: int


@runtime_checkable
class Counted(Protocol):
    """A recorder that counts, as `Tap` does."""

    @property
    def recorded(self) -> int:
        """Messages that it took."""

    @property
    def written(self) -> int:
        """Messages in finished segments."""

    @property
    def dropped(self) -> int:
        """Messages that will be in no segment."""


@runtime_checkable
class Several(Protocol):
    """A recorder that hands what it gets to others."""

    @property
    def taps(self) -> Sequence[object]:
        """Those others."""


def count_taps(recorder: object) -> tuple[TapCounts, ...]:
    """Return the counts of each tap behind `recorder`; none where nothing is captured, or nobody counts."""
    if isinstance(recorder, Several):
        return tuple(counts for tap in recorder.taps for counts in count_taps(tap))
    if isinstance(recorder, Counted):
        return (
            TapCounts(
                str(getattr(recorder, "id", "")), recorder.recorded, recorder.written, recorder.dropped
            ),
        )
    return ()
