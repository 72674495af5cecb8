"""Taps of a job: one for each recorded peer, all writing to one capture folder."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from specwire.runtime.capture import Tap


class Recorded(msgspec.Struct, frozen=True):
    """Messages that one tap recorded, and messages that it dropped."""

    tap: str
    protocol: str
    recorded: int
    dropped: int


class Taps:
    """Taps on one capture folder, closed at the end of the block."""

    def __init__(self, capture: Path) -> None:
        self._capture = capture
        self._taps: dict[Tap, str] = {}

    def open(self, protocol: str, name: str, edition: str) -> Tap:
        """Open a tap for the messages of one peer.

        Raises:
            CaptureError: nothing can be written to the folder.
        """
        tap = Tap.open(self._capture, protocol=protocol, name=name, edition=edition)
        self._taps[tap] = protocol
        return tap

    def counts(self) -> tuple[Recorded, ...]:
        """Return the counts of all taps; final after the block."""
        return tuple(
            Recorded(tap.id, protocol, tap.recorded, tap.dropped) for tap, protocol in self._taps.items()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for tap in self._taps:
            tap.close()
