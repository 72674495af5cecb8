"""Events of FILEMQ peers, for the log and for the program. `Refused` of the kernel belongs to them, too.

Names are full virtual paths, sizes are in octets, and `sha1` is in upper-case hexadecimal.
"""

from __future__ import annotations

from specwire.runtime.kernel.log import LogEvent
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
