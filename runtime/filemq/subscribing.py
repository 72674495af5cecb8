"""The ICANHAZ exchanges of one connection, one at a time.

A path is subscribed to with one ICANHAZ, or with several where the inbox holds more files than fit in one cache
(`resync`). Each waits for its ICANHAZ-OK before the next leaves, so that an error can be told to belong to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from specwire.generated.filemq import Icanhaz
from specwire.runtime.filemq.dialect import Habits
from specwire.runtime.filemq.resync import ask_for_missing


class Subscribing:
    """Paths still to be subscribed to, and the one being asked for."""

    def __init__(self, *, resync: bool, habits: Habits) -> None:
        self.asking: str | None = None
        self._resync, self._habits = resync, habits
        self._paths: deque[str] = deque()
        self._parts: Iterator[Icanhaz] = iter(())

    def add(self, path: str) -> None:
        """Queue a path; one that waits already is not queued twice."""
        if path not in self._paths:
            self._paths.append(path)

    def begin(self) -> Icanhaz | str | None:
        """Turn to the next path.

        Returns:
            The command to send; or the path for which `held` is to be called; or None where a path is being
            asked for already, or none is left.
        """
        if self.asking is not None or not self._paths:
            return None
        self.asking = self._paths.popleft()
        if self._resync:
            return self.asking
        return Icanhaz(path=self.asking, options=self._habits.options, cache=())

    def held(self, path: str, digests: Mapping[str, str]) -> Icanhaz | None:
        """Return the first command for `path` now that it is known what the inbox holds of it."""
        if path != self.asking:
            return None
        self._parts = ask_for_missing(path, digests, self._habits)
        return next(self._parts, None)

    def confirm(self) -> Icanhaz | None:
        """The server accepted the last command: return the next of the same path, None after the last."""
        return next(self._parts, None)

    def finish(self) -> str | None:
        """Be done with the path that was asked for, and return it."""
        path, self.asking = self.asking, None
        self._parts = iter(())
        return path
