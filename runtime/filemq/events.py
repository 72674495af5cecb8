"""Events of FILEMQ peers, for the log and for the program, and counts of commands and events.

`Refused` of the kernel is one of these events, too.

Names are full virtual paths, sizes are in octets, and `sha1` is in upper-case hexadecimal.
"""

from __future__ import annotations

from copy import copy
from typing import Annotated, Self

import msgspec

from specwire.generated.filemq import AnyMessage, Cheezburger, Icanhaz
from specwire.runtime.filemq.resync import RESYNC
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.kernel.status import Measure
from specwire.runtime.log.text import show_peer
from specwire.runtime.quantities import show_duration, show_octets, show_rate, show_share


class FileReceived(LogEvent, frozen=True):
    """A file is complete and in its place in the inbox.

    Attributes:
        verified: the digest was computed and is the announced one.
        copy: conflict copy, in the same folder, of a version that was changed in the inbox.
    """

    path: str
    size: int
    sha1: str
    verified: bool = True
    copy: str = ""

    def describe(self) -> str:
        """Return the text."""
        doubt = "" if self.verified else ", unverified"
        details = f"{self.size:,} octets, SHA-1 {self.sha1}{doubt}"
        return f"received {self.path} ({details}){_describe_copy(self.copy)}"


class FileDeleted(LogEvent, frozen=True):
    """A file of the server was removed from the inbox; `copy` as in `FileReceived`."""

    path: str
    copy: str = ""

    def describe(self) -> str:
        """Return the text."""
        return f"deleted {self.path}{_describe_copy(self.copy)}"


class FileRestored(LogEvent, frozen=True):
    """A deleted file is back in the inbox, because too many were deleted at once."""

    path: str
    sha1: str
    text = "restored {0.path}: too many files would be deleted"


class Subscribed(LogEvent, frozen=True):
    """The server has accepted a subscription; `peer` names the client in the server's log."""

    path: str
    peer: str = ""
    limit = "more subscriptions were accepted"

    def describe(self) -> str:
        """Return the text."""
        return (
            f"{show_peer(self.peer)} subscribed to {self.path}" if self.peer else f"subscribed to {self.path}"
        )


class PeerOpened(LogEvent, frozen=True):
    """A peering has begun; `user` is the authenticated name of the client."""

    peer: str
    user: str = ""
    limit = "more were connected"

    def describe(self) -> str:
        """Return the text."""
        return f"connected with {show_peer(self.peer)}{f' (user {self.user})' if self.user else ''}"


class PeerClosed(LogEvent, frozen=True):
    """A peering has ended; `final` if a client will not connect again."""

    peer: str
    reason: str
    final: bool = False
    limit = "more were disconnected"

    def describe(self) -> str:
        """Return the text."""
        return f"disconnected from {show_peer(self.peer)}: {self.reason}"


class FilePublished(LogEvent, frozen=True):
    """A file was added to a publication, or its content has changed."""

    path: str
    size: int
    sha1: str
    text = "published {0.path} ({0.size:,} octets, SHA-1 {0.sha1})"


class FileWithdrawn(LogEvent, frozen=True):
    """A file is no longer in a publication."""

    path: str
    text = "withdrawn {0.path}"


class FileSent(LogEvent, frozen=True):
    """The last chunk of a file was sent."""

    path: str
    size: int
    peer: str

    def describe(self) -> str:
        """Return the text."""
        return f"sent {self.path} to {show_peer(self.peer)} ({self.size:,} octets)"


class FileResumed(LogEvent, frozen=True):
    """An interrupted file continues at `offset` instead of at its beginning; `peer` as in `Subscribed`."""

    path: str
    offset: int
    peer: str = ""

    def describe(self) -> str:
        """Return the text."""
        client = f" to {show_peer(self.peer)}" if self.peer else ""
        return f"resumed {self.path}{client} at {self.offset:,} octets"


class Progress(LogEvent, frozen=True):
    """A transfer has taken more than a second, and `octets` of `size` were sent or received.

    There is at most one per second for each file, and none while nothing moves.

    Attributes:
        size: None if the server does not announce it.
        peer: as in `Subscribed`.
    """

    path: str
    octets: int
    size: int | None
    octets_per_s: float
    peer: str = ""

    def describe(self) -> str:
        """Return the text."""
        whose = f"sending {self.path} to {show_peer(self.peer)}" if self.peer else f"receiving {self.path}"
        if self.size is None:
            return f"{whose}: {show_octets(self.octets)}, {show_rate(self.octets_per_s)}"
        left = show_duration((self.size - self.octets) / self.octets_per_s)
        share = f"{show_share(self.octets, self.size)} of {show_octets(self.size)}"
        return f"{whose}: {share}, {show_rate(self.octets_per_s)}, {left} left"


FileEvent = (
    FileReceived
    | FileDeleted
    | FilePublished
    | FileWithdrawn
    | FileSent
    | FileResumed
    | FileRestored
    | Progress
)
"""Events that each file causes, so that a folder causes thousands."""


def _describe_copy(copy: str) -> str:
    return f"; it was changed here, and that version is kept as {copy}" if copy else ""


COMMANDS = "Commands that were understood or sent."


def _directed(direction: str, help: str, name: str, label: str = "") -> Measure:
    return Measure("counter", help, name, {"direction": direction}, label)


ERRORS = ("SRSLY", "RTFM", "WAT")


class Counters(msgspec.Struct):
    """Counts since the start, which only grow.

    Attributes:
        octets_in, octets_out: of all frames.
        content_octets: of file content, in either direction.
        files: received or sent.
        deletions: files removed from the inbox or from a publication.
        refusals: what was not accepted here, whatever the other side was answered.
        cut_off: connections that were closed because a message did not end; refusals, too.
        octets_saved: content that was not sent again because a file was resumed.
        commands_in, commands_out: by the names of the specification.
    """

    messages_in: Annotated[int, _directed("in", "Messages by direction.", "messages")] = 0
    messages_out: Annotated[int, _directed("out", "Messages by direction.", "messages")] = 0
    octets_in: Annotated[int, _directed("in", "Octets of all frames.", "message_bytes")] = 0
    octets_out: Annotated[int, _directed("out", "Octets of all frames.", "message_bytes")] = 0
    chunks: int = 0
    content_octets: int = 0
    files: int = 0
    deletions: int = 0
    refusals: Annotated[int, Measure("counter", "Files, paths and commands that were not accepted.")] = 0
    malformed: Annotated[int, Measure("counter", "Messages that are no command.", "malformed_messages")] = 0
    cut_off: Annotated[
        int,
        Measure("counter", "Connections that were cut off for an unfinished message.", "cut_connections"),
    ] = 0
    peerings: Annotated[int, Measure("counter", "Peerings that were opened.")] = 0
    resyncs: Annotated[int, Measure("counter", "Subscriptions with a list of what is there.")] = 0
    resumed: Annotated[
        int, Measure("counter", "Files that went on where they had stopped.", "resumed_files")
    ] = 0
    octets_saved: Annotated[
        int, Measure("counter", "Content that did not travel again thanks to that.", "saved_bytes")
    ] = 0
    commands_in: Annotated[dict[str, int], _directed("in", COMMANDS, "commands", "command")] = {}
    commands_out: Annotated[dict[str, int], _directed("out", COMMANDS, "commands", "command")] = {}

    def count_command(self, command: AnyMessage, by_name: dict[str, int]) -> None:
        """Count a command in `commands_in` or `commands_out`, and the content in it."""
        name = command.NAME
        by_name[name] = by_name.get(name, 0) + 1
        if isinstance(command, Cheezburger):
            if command.chunk:  # an empty chunk ends a file
                self.chunks += 1
                self.content_octets += len(command.chunk)
        elif isinstance(command, Icanhaz) and RESYNC in command.options:
            self.resyncs += 1

    def count_event(self, event: LogEvent) -> None:
        """Count an event."""
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
        """Return the number of SRSLY, RTFM and WAT that were sent."""
        return sum(self.commands_out.get(name, 0) for name in ERRORS)

    def errors_received(self) -> int:
        """Return the number of SRSLY, RTFM and WAT that were received."""
        return sum(self.commands_in.get(name, 0) for name in ERRORS)

    def with_host(self, host: Host | None) -> Self:
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


class ServerCounters(Counters):
    """Counts of a server."""

    chunks: Annotated[int, Measure("counter", "Chunks of content that were sent.")] = 0
    content_octets: Annotated[int, Measure("counter", "Content of files that was sent.", "content_bytes")] = 0
    files: Annotated[int, Measure("counter", "Files that were sent, whole.")] = 0
    deletions: Annotated[int, Measure("counter", "Files that were withdrawn.")] = 0


class SubscriberCounters(Counters):
    """Counts of a subscriber."""

    chunks: Annotated[int, Measure("counter", "Chunks of content that were received.")] = 0
    content_octets: Annotated[
        int, Measure("counter", "Content of files that was received.", "content_bytes")
    ] = 0
    files: Annotated[int, Measure("counter", "Files that were received, whole.")] = 0
    deletions: Annotated[int, Measure("counter", "Files that were deleted.")] = 0
