"""A dialect that counts the commands that pass through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specwire.generated.errors import DecodeError
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.dialect import Command, Dialect, Dialog, ErrorCommand, Habits, Role


class CountingDialect:
    """Does what `dialect` does, and tells `counters`."""

    def __init__(self, dialect: Dialect, counters: Counters) -> None:
        self._dialect, self._counters = dialect, counters
        self.name, self.title, self.edition = dialect.name, dialect.title, dialect.edition
        self.timers: Mapping[str, float] = dialect.timers
        self.habits: Habits = dialect.habits

    def decode(self, frames: Sequence[bytes]) -> Sequence[Command]:
        """See `Dialect.decode`."""
        try:
            commands = self._dialect.decode(frames)
        except DecodeError:
            self._counters.malformed += 1
            raise
        for command in commands:
            self._counters.count_command_in(command)
        return commands

    def encode(self, command: Command) -> list[bytes]:
        """See `Dialect.encode`."""
        frames = self._dialect.encode(command)
        self._counters.count_command_out(command)
        return frames

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """See `Dialect.answer`."""
        return self._dialect.answer(role, error)

    def open_dialog(self, role: Role) -> Dialog:
        """See `Dialect.open_dialog`."""
        return self._dialect.open_dialog(role)
