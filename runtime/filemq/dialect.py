"""Wire format of a peer behind one interface.

The engines use the commands of FILEMQ v2 as published (the package `specwire.generated.filemq`). A
`Dialect` converts frames to those commands and back, and observes its own dialog. Another wire
format of the same protocol, such as that of the C implementation, is a subclass; the engines do not
change, and never depend on which dialect it is. Other differences in behaviour are data: `Habits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from specwire.generated import filemq
from specwire.generated.errors import DecodeError
from specwire.generated.session import DialogSession
from specwire.runtime.filemq.names import MAX_CACHED_NAME_OCTETS, MAX_NAME_OCTETS, cut_reason

Command = filemq.AnyMessage

Role = Literal["C", "S"]
ErrorCommand = filemq.Srsly | filemq.Rtfm | filemq.Wat


class OutOfTurnError(Exception):
    """An engine tried to send a command that the dialog does not allow: our fault, never the peer's."""


class CacheRules(msgspec.Struct, frozen=True):
    """How the `cache` of ICANHAZ is filled: entries in one command, octets in a name, full names or not.

    `in_flight` is how many commands for one path may wait for their ICANHAZ-OK at a time.
    """

    entries: int = 255
    name_octets: int = MAX_CACHED_NAME_OCTETS
    full_names: bool = False
    in_flight: int = 16


class Habits(msgspec.Struct, frozen=True):
    """Behaviour of the peers of a dialect beyond its messages; the defaults are those of FILEMQ v2."""

    longest_name_octets: int = MAX_NAME_OCTETS
    """Maximum length of a file name or a path."""

    server_asks_for_life: bool = True
    """A server sends HUGZ to a client to which it sent nothing for a while."""
    server_says_goodbye: bool = True
    """A server that stops sends KTHXBAI."""
    writes_in_place: bool = False
    """A client writes chunks into the file itself until an empty chunk closes it. So the server closes and
    deletes a file that it gives up, and sends a new version after a deletion of the old one, whose
    tail would stay otherwise. A client with the option `WHOLE` does not write in place."""
    cannot_resync: bool = False
    """A client cannot request the existing files, so it is sent all of them."""

    options: tuple[tuple[str, str], ...] = ()
    """Options that our client adds to every ICANHAZ."""
    cache: CacheRules = CacheRules()
    credit_octets: int | None = None
    """Credit that our client grants once, if a server stops for good when credit runs out. None: the client
    grants a window repeatedly."""
    queue_messages: int = 1000
    """Messages that our client's socket queues. With endless credit, only this bounds its memory."""
    server_filters: bool = True
    """A server sends only subscribed files. Otherwise the client ignores the others without a log line."""
    resumes: bool = True
    """A server that announces size and digest can resume an interrupted file."""
    counts_commands: bool = True
    """A server that announces sizes also numbers its CHEEZBURGER commands without gaps."""
    deletes_reliably: bool = True
    """A server deletes only files that are gone, and repeats withdrawn files at RESYNC."""


class Dialect:
    """FILEMQ v2 as the specification publishes it, and the base of other wire formats.

    Attributes:
        name: of the generated package.
        title: short description for people.
        edition: of the specification, as captures state it.
        timers: seconds: ``heartbeat``, ``expiry``, ``reconnect``.
        habits: behaviour of the other side.
    """

    name = "filemq"
    title = "the specification"
    edition = filemq.EDITION
    timers: Mapping[str, float] = filemq.machine.TIMERS
    habits = Habits()

    def decode(self, frames: Sequence[bytes]) -> Sequence[Command]:
        """Return the commands in `frames`; raises DecodeError."""
        return (filemq.decode(frames, copy=False),)

    def encode(self, command: Command) -> list[bytes]:
        """Return the frames of `command`; raises EncodeError."""
        return command.encode()

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """Return the answer of `role` to a message that raised `error`; None for no answer."""
        reply = filemq.answer(role, error)
        if reply is None or not issubclass(reply, ErrorCommand):
            return None
        return reply(reason=cut_reason(str(error)))

    def open_dialog(self, role: Role) -> DialogSession:
        """Return an observer of a new peering of `role`."""
        return filemq.machine.Session(role=role, reading="concurrent")


FILEMQ = Dialect()
