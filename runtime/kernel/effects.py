"""Effects of an engine, and the suspensions of a story.

A host performs the effects of an engine in order. The last group never reaches a host:
`StoryEngine` handles these effects of a story itself. `commit` and `ask` are the typed way for a
story to wait for the host.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import Any, TypeVar

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.events import Answered, PeerId
from specwire.runtime.kernel.log import LogEvent


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message. If it cannot be delivered, the host emits `PeerDisconnected`.

    A message for a connection that is already closed is dropped.
    """

    peer: PeerId
    message: Any


class Connect(msgspec.Struct, frozen=True):
    """Open a connection under the name `peer.socket`, which no open socket has.

    Messages may be sent at once; they wait for the handshake. A connection that fails is reported
    as `PeerDisconnected` and is closed then; another attempt is another `Connect`.
    """

    peer: PeerId
    endpoint: str
    identity: bytes = b""


class DropPeer(msgspec.Struct, frozen=True):
    """Close a connection, or forget what waits to be sent to a peer of a listener. No event follows.

    Attributes:
        discard: messages to the peer that the host has not sent yet are dropped, too: the peer does
            not expect them any more.
    """

    peer: PeerId
    discard: bool = False


class AwaitRoom(msgspec.Struct, frozen=True, gc=False):
    """Emit `RoomMade` when a peer of a listener has room: the socket has taken everything for it.

    So a message that takes work or memory to make is made only when it can leave. There is one at a
    time for each peer, and none follows once the peer has gone.

    Attributes:
        octets: size of the next message. The host may offer less, and counts the offer as used
            until the next message to this peer. 0: any small message.
    """

    peer: PeerId
    octets: int = 0


class PauseReceiving(msgspec.Struct, frozen=True):
    """Receive nothing from a connection, or receive again. ZeroMQ then holds the other side back."""

    peer: PeerId
    paused: bool


class Ask(msgspec.Struct, frozen=True):
    """Call the host's handler for the type of `request`, which `Answered` answers.

    `StoryEngine` sets the ticket.
    """

    request: Any
    ticket: int = 0


class CancelAsk(msgspec.Struct, frozen=True):
    """Cancel the handler of an `Ask` that has not answered; no `Answered` follows.

    `StoryEngine` emits it when the story that asked is cancelled.
    """

    ticket: int


class Return(msgspec.Struct, frozen=True):
    """Result of a `Called`: a value, or the error that the caller gets."""

    call: int
    value: Any = None
    error: Exception | None = None


class Log(msgspec.Struct, frozen=True):
    """Something happened that is for the log and for the program."""

    event: LogEvent


class Stop(msgspec.Struct, frozen=True):
    """End the host; nothing follows."""

    reason: str


HostEffect = (
    Send | Connect | DropPeer | AwaitRoom | PauseReceiving | Commit | Ask | CancelAsk | Return | Log | Stop
)


class Now(msgspec.Struct, frozen=True):
    """Answered at once with the time."""


class Wait(msgspec.Struct, frozen=True):
    """Suspend until somebody wakes `key`, or until the time `until`, which is answered with `TIMED_OUT`.

    One story at a time waits for a key.
    """

    key: Hashable
    until: float | None = None


class Wake(msgspec.Struct, frozen=True):
    """Resume the story that waits for `key`, if any, with `value`, after this story suspends."""

    key: Hashable
    value: Any = None


class Fork(msgspec.Struct, frozen=True):
    """Begin another story, after this one suspends.

    Attributes:
        owner: `Cancel(owner)` ends the story. A `PeerId` is cancelled when the peer has gone.
    """

    story: Generator[Any, Any, None]
    owner: Hashable | None = None


class Cancel(msgspec.Struct, frozen=True):
    """Close the stories of `owner`, except the one that yields this effect.

    Their ``finally`` blocks may not suspend.
    """

    owner: Hashable


Effect = HostEffect | Now | Wait | Wake | Fork | Cancel

T = TypeVar("T")

Steps = Generator[Effect, Any, T]
"""A part of a story with a result, for ``yield from``."""

Story = Steps[None]


class TimedOut:
    """Type of `TIMED_OUT`."""


TIMED_OUT = TimedOut()


def commit(*records: Any, refusable: bool = False) -> Steps[str]:
    """Suspend until the records are durable together; return why they are not, "" where they are.

    Args:
        refusable: fail at once while the disk fails, because the story can report it.
    """
    failure: str = yield Commit(0, records, refusable)
    return failure


def ask(request: Any) -> Steps[Answered]:
    """Suspend until the host's handler has handled `request`; return its result."""
    answered: Answered = yield Ask(request)
    return answered
