"""Codec of FILEMQ peers: the commands of a dialect, counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specwire.generated.errors import DecodeError
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.dialect import Command, Dialect
from specwire.runtime.kernel.events import PeerId


class FilemqCodec:
    """`MessageCodec` of a dialect; each command is counted."""

    def __init__(self, dialect: Dialect, counters: Counters) -> None:
        self._dialect, self._counters = dialect, counters

    def decode(self, peer: PeerId, frames: Sequence[bytes]) -> Iterable[Command]:
        """Return the commands in the frames; raises DecodeError."""
        try:
            commands = self._dialect.decode(frames)
        except DecodeError:
            self._counters.malformed += 1
            raise
        for command in commands:
            self._counters.count_command_in(command)
        return commands

    def encode(self, peer: PeerId, message: Command) -> Sequence[bytes]:
        """Return the frames of a command; raises EncodeError."""
        frames = self._dialect.encode(message)
        self._counters.count_command_out(message)
        return frames
