"""The ICANHAZ exchanges of one connection, one path at a time.

A path is subscribed to with one ICANHAZ, or with several where the inbox holds more files than fit in one cache
(`resync`), or the rest of a file is asked for first (`resuming`). Those of one path follow each other without
waiting, as many as the dialect's servers take (`CacheRules.in_flight`); the next path waits for the last ICANHAZ-OK
of the path before, so that an error can be told to belong to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from specwire.generated.filemq import Icanhaz
from specwire.runtime.filemq.dialect import Habits
from specwire.runtime.filemq.resync import ask_for_missing


class Subscribing:
    """Paths still to be subscribed to, and the one being asked for."""

    def __init__(self, *, resync: bool, habits: Habits) -> None:
        self.asking: str | None = None
        self._resync, self._habits = resync, habits
        self._paths: deque[str] = deque()
        self._commands: Iterator[Icanhaz]
        self._begin_path()

    @property
    def done(self) -> bool:
        """Whether all commands for the path that is asked for were accepted."""
        return self._sent > 0 and self._sent == self._accepted

    @property
    def resuming(self) -> bool:
        """Whether the next answer is one to the request for the rest of a file."""
        return self._sent > self._accepted == self._resume_at

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
        self._sent = 1
        return Icanhaz(path=self.asking, options=self._habits.options, cache=())

    def held(self, path: str, digests: Mapping[str, str], rest: Sequence[Icanhaz] = ()) -> list[Icanhaz]:
        """Return the first commands for `path` now that it is known what the inbox holds of it.

        Args:
            rest: commands that go before, the last of which asks for the rest of a file.
        """
        if path != self.asking or self._sent:
            return []
        self._resume_at = len(rest) - 1
        self._commands = chain(rest, ask_for_missing(path, digests, self._habits))
        return self._take_commands()

    def confirm(self) -> list[Icanhaz]:
        """The server accepted a command: return the next ones of the same path."""
        if self._sent == self._accepted:
            return []
        self._accepted += 1
        return self._take_commands()

    def finish(self) -> str | None:
        """Be done with the path that was asked for, and return it."""
        path, self.asking = self.asking, None
        self._begin_path()
        return path

    def _begin_path(self) -> None:
        self._commands = iter(())
        self._sent = self._accepted = 0
        self._resume_at = -1

    def _take_commands(self) -> list[Icanhaz]:
        room = self._habits.cache.in_flight - (self._sent - self._accepted)
        commands = list(islice(self._commands, room))
        self._sent += len(commands)
        return commands
