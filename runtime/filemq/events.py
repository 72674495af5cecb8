"""What happened, told to whoever runs a server or a client; and a way to wait for it without sleeping."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec


class FileReceived(msgspec.Struct, frozen=True):
    """A file is in the inbox, whole.

    `verified` where its digest was taken and is the one that the server announced. `copy` is the
    conflict copy, in the same folder, of a version that was changed in the inbox.
    """

    path: str
    size: int
    sha1: str
    verified: bool = True
    copy: str = ""


class FileDeleted(msgspec.Struct, frozen=True):
    """A file that came from the server is out of its place; `copy` as in `FileReceived`."""

    path: str
    copy: str = ""


class FileRestored(msgspec.Struct, frozen=True):
    """A deleted file is back in the inbox, because too many were deleted at once."""

    path: str
    sha1: str


class Subscribed(msgspec.Struct, frozen=True):
    """The server accepted a subscription; `peer` names the client on the server's side."""

    path: str
    peer: str = ""


class Refused(msgspec.Struct, frozen=True):
    """A file, a path or a command was not accepted, and nothing was done with it."""

    name: str
    reason: str
    peer: str = ""


class PeerOpened(msgspec.Struct, frozen=True):
    """A peering was opened; `user` is the name that a client has proved to have."""

    peer: str
    user: str = ""


class PeerClosed(msgspec.Struct, frozen=True):
    """A peering ended; `final` on a client's side where it will not be opened again."""

    peer: str
    reason: str
    final: bool = False


class FilePublished(msgspec.Struct, frozen=True):
    """A file was added to a publication, or its content changed."""

    path: str
    size: int
    sha1: str


class FileWithdrawn(msgspec.Struct, frozen=True):
    """A file is no longer in a publication."""

    path: str


class FileSent(msgspec.Struct, frozen=True):
    """The last chunk of a file was handed to the network."""

    path: str
    size: int
    peer: str


class FileResumed(msgspec.Struct, frozen=True):
    """A file that was interrupted goes on at `offset` instead of from its beginning; `peer` as in `FileSent`."""

    path: str
    offset: int
    peer: str = ""


class Progress(msgspec.Struct, frozen=True):
    """A file has been under way for more than a second: `octets` of its `size` have been sent, or have come.

    There is one a second at most for each file, and none while nothing moves. `size` is None where the server does
    not tell it; `peer` names the client on the server's side, and is empty on the client's.
    """

    path: str
    octets: int
    size: int | None
    octets_per_s: float
    peer: str = ""


Event = (
    FileReceived
    | FileDeleted
    | FileRestored
    | Subscribed
    | Refused
    | PeerOpened
    | PeerClosed
    | FilePublished
    | FileWithdrawn
    | FileSent
    | FileResumed
    | Progress
)

MAX_UNREAD = 100_000


class Watch:
    """The events since this watch was made, in order; an async iterator that ends when the service stops.

    A watch that nobody reads keeps the newest `MAX_UNREAD` events and counts in `lost` what it dropped.
    """

    def __init__(self) -> None:
        self._unread: deque[Event] = deque(maxlen=MAX_UNREAD)
        self._changed = asyncio.Event()
        self._ended = False
        self.lost = 0

    def add(self, event: Event) -> None:
        """Take one event."""
        self.lost += len(self._unread) == MAX_UNREAD
        self._unread.append(event)
        self._changed.set()

    def end(self) -> None:
        """Let the iteration end after what is unread."""
        self._ended = True
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._unread:
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._unread.popleft()


class EventHub:
    """Passes each event to a callback and to every watch."""

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self._on_event = on_event
        self._watches: list[Watch] = []

    def watch(self) -> Watch:
        """Return a watch for the events from now on."""
        watch = Watch()
        self._watches.append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Stop passing events to `watch`, and end it."""
        self._watches.remove(watch)
        watch.end()

    def tell(self, event: Event) -> None:
        """Pass on one event."""
        for watch in self._watches:
            watch.add(event)
        if self._on_event is not None:
            self._on_event(event)

    def end(self) -> None:
        """End every watch."""
        for watch in self._watches:
            watch.end()
