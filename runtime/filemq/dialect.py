"""The wire format that a peer speaks, behind one interface.

The engines think in the commands of FILEMQ v2 as published (the package `specwire.generated.filemq`). A
`Dialect` turns frames into those commands and back, and says which habits the other side has. Another wire
format of the same protocol, such as the one that the C implementation publishes, is another `Dialect`: it
converts its own messages to these and watches its own dialog; the engines do not change, and never ask which
dialect it is. What peers of a dialect do beyond its messages is data, `Habits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from specwire.generated import filemq
from specwire.generated.errors import DecodeError, Violation
from specwire.runtime.filemq.names import MAX_CACHED_NAME_OCTETS, MAX_NAME_OCTETS, cut_reason

Command = filemq.AnyMessage

Role = Literal["C", "S"]
ErrorCommand = filemq.Srsly | filemq.Rtfm | filemq.Wat


class OutOfTurnError(Exception):
    """An engine was about to send what the dialog does not allow there: a fault of ours, never of the peer."""


class CacheRules(msgspec.Struct, frozen=True):
    """How the `cache` of ICANHAZ is filled: entries in one command, octets in a name, full names or not.

    `in_flight` is how many commands for one path may wait for their ICANHAZ-OK at a time.
    """

    entries: int = 255
    name_octets: int = MAX_CACHED_NAME_OCTETS
    full_names: bool = False
    in_flight: int = 16


class Habits(msgspec.Struct, frozen=True):
    """What the peers of a dialect do and expect beyond its messages; the defaults are those of FILEMQ v2."""

    longest_name_octets: int = MAX_NAME_OCTETS
    """What a file name or a path may have."""

    server_asks_for_life: bool = True
    """A server sends HUGZ to a client to which it sent nothing for a while."""
    server_says_goodbye: bool = True
    """A server that stops sends KTHXBAI."""
    writes_in_place: bool = False
    """A client writes chunks into the file itself, and the next ones too until an empty chunk closes it. So a
    file that is given up half-way is closed and deleted, and a new version comes after a deletion of the old,
    of which it would keep the tail. A client with the option `WHOLE` is known not to do so."""
    cannot_resync: bool = False
    """A client has no way to ask for the files there are, so without asking it gets them all."""

    options: tuple[tuple[str, str], ...] = ()
    """What our client adds to every ICANHAZ."""
    cache: CacheRules = CacheRules()
    credit_octets: int | None = None
    """What our client grants once for all, where a server stops for good when credit runs out; else None, and
    the client grants a window again and again."""
    queue_messages: int = 1000
    """Messages that our client's socket takes in advance: with endless credit only this bounds its memory."""
    server_filters: bool = True
    """A server sends only what was subscribed to; else the client passes over the rest without a word."""
    resumes: bool = True
    """A server that announces size and digest can go on with a file that was interrupted."""
    counts_commands: bool = True
    """A server that announces sizes also numbers its CHEEZBURGER commands without a gap."""
    deletes_reliably: bool = True
    """A server deletes only what is gone, and at RESYNC names again what it has withdrawn."""


class Dialog(Protocol):
    """Watches one peering for commands that come where they must not."""

    def receive(self, command: Command, /) -> Violation | None:
        """Take the peer's next command; return what is wrong with it, None where nothing is."""

    def send(self, command: Command, /) -> Violation | None:
        """Take our own next command; one with a violation is not to be sent."""


class Dialect(Protocol):
    """What the engines need to know of a wire format."""

    @property
    def name(self) -> str:
        """Name of the generated package."""

    @property
    def title(self) -> str:
        """What a person is told about it, in a few words."""

    @property
    def edition(self) -> str:
        """Edition of the specification, as captures state it."""

    @property
    def timers(self) -> Mapping[str, float]:
        """Seconds: ``heartbeat``, ``expiry``, ``reconnect``."""

    @property
    def habits(self) -> Habits:
        """What the other side does and expects."""

    def decode(self, frames: Sequence[bytes]) -> Sequence[Command]:
        """Return what `frames` say, in one command or in several; raises DecodeError."""

    def encode(self, command: Command) -> list[bytes]:
        """Return the frames of `command`; raises EncodeError."""

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """Return what `role` answers to a message that gave `error`, None for silence."""

    def open_dialog(self, role: Role) -> Dialog:
        """Return a watch over a new peering, kept by `role`."""


class Published:
    """FILEMQ v2 as the specification publishes it."""

    name = "filemq"
    title = "the specification"
    edition = filemq.EDITION
    timers: Mapping[str, float] = filemq.machine.TIMERS
    habits = Habits()

    def decode(self, frames: Sequence[bytes]) -> Sequence[Command]:
        """See `Dialect.decode`."""
        return (filemq.decode(frames, copy=False),)

    def encode(self, command: Command) -> list[bytes]:
        """See `Dialect.encode`."""
        return command.encode()

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """See `Dialect.answer`."""
        reply = filemq.answer(role, error)
        if reply is None or not issubclass(reply, ErrorCommand):
            return None
        return reply(reason=cut_reason(str(error)))

    def open_dialog(self, role: Role) -> Dialog:
        """See `Dialect.open_dialog`."""
        return filemq.machine.Session(role=role, reading="concurrent")


FILEMQ: Dialect = Published()
