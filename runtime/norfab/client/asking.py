"""What the broker is to be asked about jobs, POST or GET, and what it was asked and has not answered.

Only so many questions are out at a time, so that neither a socket nor a broker gets ten thousand at once; the rest waits
in order. The first message about a job answers its question, whatever it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Kind = Literal["post", "get"]


class Asked(NamedTuple):
    """A question that is out."""

    kind: Kind
    at: float


class Asking:
    """Questions about jobs, one for each at a time.

    Args:
        ask: sends a question; False where there is no cause any more.
    """

    __slots__ = ("_ask", "_out", "_wanted")

    def __init__(self, ask: Callable[[str, Kind], bool]) -> None:
        self._ask = ask
        self._wanted: dict[str, Kind] = {}
        self._out: dict[str, Asked] = {}

    def __len__(self) -> int:
        return len(self._out)

    def want(self, uuid: str, kind: Kind) -> None:
        """Have this asked when it is its turn; a POST is not overtaken by a GET."""
        if self._wanted.get(uuid) != "post":
            self._wanted[uuid] = kind

    def is_open(self, uuid: str) -> bool:
        """Whether a question is out or waits."""
        return uuid in self._wanted or uuid in self._out

    def answered(self, uuid: str) -> Kind | None:
        """The broker speaks of the job; return what it was asked."""
        asked = self._out.pop(uuid, None)
        return None if asked is None else asked.kind

    def drop(self, uuid: str) -> None:
        """Nobody wants to know any more."""
        self._wanted.pop(uuid, None)
        self._out.pop(uuid, None)

    def pump(self, window: int, now: float) -> None:
        """Ask what may be asked now."""
        if not self._wanted:
            return
        held: dict[str, Kind] = {}
        while self._wanted and len(self._out) < window:
            uuid = next(iter(self._wanted))
            kind = self._wanted.pop(uuid)
            if uuid in self._out:
                held[uuid] = kind  # the answer to the question that is out comes first
            elif self._ask(uuid, kind):
                self._out[uuid] = Asked(kind, now)
        self._wanted |= held

    def reset(self) -> None:
        """The connection is lost, and with it every question."""
        self._wanted.clear()
        self._out.clear()

    def overdue(self, before: float) -> list[tuple[str, Asked]]:
        """Return what was asked up to `before` and not answered, the oldest first."""
        found = []
        for uuid, asked in self._out.items():
            if asked.at > before:
                break
            found.append((uuid, asked))
        return found
