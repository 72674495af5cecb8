"""Codec of FILEMQ peers: the commands of a dialect, counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import msgspec

from specwire.generated.errors import DecodeError
from specwire.generated.filemq import Cheezburger, Icanhaz
from specwire.runtime.filemq.dialect import Command, Dialect
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileReceived,
    FileResumed,
    FileSent,
    FileWithdrawn,
    PeerOpened,
)
from specwire.runtime.filemq.resync import RESYNC
from specwire.runtime.kernel.events import PeerId
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import LogEvent, Refused


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


ERRORS = ("SRSLY", "RTFM", "WAT")


class Counters(msgspec.Struct):
    """Counts since the start, which only grow.

    Attributes:
        octets_in, octets_out: of all frames.
        content_octets: of file content, in either direction.
        files: received or sent.
        deletions: files removed from the inbox or from a publication.
        refusals: what was not accepted here, whatever the other side was answered.
        malformed: messages that are no command.
        cut_off: connections that were closed because a message did not end; refusals, too.
        octets_saved: content that was not sent again because a file was resumed.
        commands_in, commands_out: by the names of the specification.
    """

    messages_in: int = 0
    messages_out: int = 0
    octets_in: int = 0
    octets_out: int = 0
    chunks: int = 0
    content_octets: int = 0
    files: int = 0
    deletions: int = 0
    refusals: int = 0
    malformed: int = 0
    cut_off: int = 0
    peerings: int = 0
    resyncs: int = 0
    resumed: int = 0
    octets_saved: int = 0
    commands_in: dict[str, int] = {}
    commands_out: dict[str, int] = {}

    def count_command_in(self, command: Command) -> None:
        """Count a command that was understood, and the content in it."""
        self._count(command, self.commands_in)

    def count_command_out(self, command: Command) -> None:
        """Count a command that is being sent, and the content in it."""
        self._count(command, self.commands_out)

    def count_event(self, event: LogEvent) -> None:
        """Count what an event stands for."""
        match event:
            case FileReceived() | FileSent():
                self.files += 1
            case FileDeleted() | FileWithdrawn():
                self.deletions += 1
            case Refused():
                self.refusals += 1
            case PeerOpened():
                self.peerings += 1
            case FileResumed(offset=offset):
                self.resumed += 1
                self.octets_saved += offset

    def errors_sent(self) -> int:
        """Return how often the other side was told SRSLY, RTFM or WAT."""
        return sum(self.commands_out.get(name, 0) for name in ERRORS)

    def errors_received(self) -> int:
        """Return how often the other side said SRSLY, RTFM or WAT."""
        return sum(self.commands_in.get(name, 0) for name in ERRORS)

    def with_host(self, host: Host | None) -> Counters:
        """Return the counts of this moment, with those of the host."""
        counts = copy(self)
        counts.commands_in, counts.commands_out = dict(self.commands_in), dict(self.commands_out)
        counts.add_host(host)
        return counts

    def add_host(self, host: Host | None) -> None:
        """Add the counts of a host that was started."""
        if host is None or not host.was_started:
            return
        status = host.status()
        self.messages_in += status.messages_in
        self.messages_out += status.messages_out
        self.octets_in += status.octets_in
        self.octets_out += status.octets_out
        self.cut_off += status.counters.cut_off

    def to_dict(self) -> dict[str, Any]:
        """Return the counts by name."""
        return msgspec.structs.asdict(self)

    def _count(self, command: Command, counts: dict[str, int]) -> None:
        name = command.NAME
        counts[name] = counts.get(name, 0) + 1
        if isinstance(command, Cheezburger):
            if command.chunk:  # an empty chunk ends a file
                self.chunks += 1
                self.content_octets += len(command.chunk)
        elif isinstance(command, Icanhaz) and RESYNC in command.options:
            self.resyncs += 1
