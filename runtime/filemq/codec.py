"""Wire formats of FILEMQ peers behind one interface, and their codec.

The engines use the commands of FILEMQ v2 as published (the package `specwire.generated.filemq`). A
`Dialect` converts frames to those commands and back, and observes its own dialog. Another wire
format of the same protocol is a subclass; the engines do not change, and never depend on which
dialect it is. Other differences in behaviour are data: `Habits`. `DIALECTS` has all by name.

The messages of the C implementation are those of `specwire.generated.libfilemq`: one frame each, a
version of two octets, long names, a number in NOM, and a CHEEZBURGER with its content, whose `eof`
marks the last one of a file. There is no WAT, and a C server sends neither HUGZ nor KTHXBAI.

Its habits are what the C programs were observed to do. A C server stops for good when a chunk is
larger than the credit that is left. It sends changes of everything that it publishes, whatever was
subscribed to, and sometimes deletes a file that is still there. A C client writes chunks into the
file itself, under any name, until an empty chunk, and cannot ask for files that are there already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from specwire.generated import filemq, libfilemq
from specwire.generated.errors import DecodeError
from specwire.generated.session import DialogSession
from specwire.runtime.filemq.events import Counters
from specwire.runtime.filemq.names import (
    LONGEST_NAME_OCTETS,
    MAX_CACHED_NAME_OCTETS,
    MAX_NAME_OCTETS,
    cut_reason,
)
from specwire.runtime.filemq.resync import WHOLE
from specwire.runtime.kernel.events import PeerId

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

ENDLESS_CREDIT = 2**62
"""Far from 2^64, where the C server's sum would wrap."""


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
            self._counters.count_command(command, self._counters.commands_in)
        return commands

    def encode(self, peer: PeerId, message: Command) -> Sequence[bytes]:
        """Return the frames of a command; raises EncodeError."""
        frames = self._dialect.encode(message)
        self._counters.count_command(message, self._counters.commands_out)
        return frames


class LibfilemqDialect(Dialect):
    """Conversion between the messages of `specwire.generated.libfilemq` and the commands of FILEMQ v2."""

    name = "libfilemq"
    title = "the C implementation"
    edition = libfilemq.EDITION
    timers: Mapping[str, float] = libfilemq.machine.TIMERS
    habits = Habits(
        longest_name_octets=LONGEST_NAME_OCTETS,
        server_asks_for_life=False,
        server_says_goodbye=False,
        writes_in_place=True,
        cannot_resync=True,
        options=(WHOLE,),
        # Names are strings of one octet's length, and the C server renames those that are not full.
        cache=CacheRules(entries=1000, name_octets=MAX_NAME_OCTETS, full_names=True, in_flight=1),
        credit_octets=ENDLESS_CREDIT,
        queue_messages=8,
        server_filters=False,
        resumes=False,
        counts_commands=False,
        deletes_reliably=False,
    )

    def decode(self, frames: Sequence[bytes]) -> Sequence[Command]:
        """Return the commands. A last chunk that has content is a chunk and an empty one behind it."""
        message = libfilemq.decode(frames)
        command = to_command(message)
        if isinstance(message, libfilemq.Cheezburger) and message.eof and message.chunk:
            end = to_command(message.replace(offset=message.offset + len(message.chunk), chunk=b""))
            return command, end
        return (command,)

    def encode(self, command: Command) -> list[bytes]:
        """Return the frames. A command that this dialect does not have is a fault of ours (KeyError)."""
        return to_message(command).encode()

    def answer(self, role: Role, error: DecodeError) -> ErrorCommand | None:
        """Return RTFM, or None for no answer."""
        reply = libfilemq.answer(role, error)
        return None if reply is None else filemq.Rtfm(reason=cut_reason(str(error)))

    def open_dialog(self, role: Role) -> DialogSession:
        """Return an observer of a new peering.

        A dialog's tables go by the names of messages, which are those of the commands; so what this
        dialect does not have is a violation.
        """
        return libfilemq.machine.Session(role=role, reading="concurrent")


def to_command(message: libfilemq.AnyMessage) -> Command:
    """Return what `message` is in FILEMQ v2."""
    match message:
        case libfilemq.Icanhaz(path=path, options=options, cache=cache):
            return filemq.Icanhaz(path=path, options=options, cache=cache)
        case libfilemq.Nom(credit=credit):
            return filemq.Nom(credit=credit)
        case libfilemq.Cheezburger():
            return filemq.Cheezburger(
                sequence=message.sequence,
                operation=message.operation,
                filename=message.filename,
                offset=message.offset,
                headers=message.headers,
                chunk=message.chunk,
            )
        case libfilemq.Srsly(reason=reason):
            return filemq.Srsly(reason=reason)
        case libfilemq.Rtfm(reason=reason):
            return filemq.Rtfm(reason=reason)
    return PLAIN_COMMANDS[message.NAME]


def to_message(command: Command) -> libfilemq.AnyMessage:
    """Return the message for `command`; KeyError for WAT, which has none."""
    match command:
        case filemq.Icanhaz(path=path, options=options, cache=cache):
            return libfilemq.Icanhaz(path=path, options=options, cache=cache)
        case filemq.Nom(credit=credit):
            return libfilemq.Nom(credit=credit)
        case filemq.Cheezburger():
            ends = command.operation == filemq.Operation.CREATE and not command.chunk
            return libfilemq.Cheezburger(
                sequence=command.sequence,
                operation=command.operation,
                filename=command.filename,
                offset=command.offset,
                eof=int(ends),
                headers=command.headers,
                chunk=command.chunk,
            )
        case filemq.Srsly(reason=reason):
            return libfilemq.Srsly(reason=reason)
        case filemq.Rtfm(reason=reason):
            return libfilemq.Rtfm(reason=reason)
    return PLAIN_MESSAGES[command.NAME]


PLAIN_COMMANDS: Mapping[str, Command] = {
    command.NAME: command
    for command in (
        filemq.Ohai(),
        filemq.OhaiOk(),
        filemq.IcanhazOk(),
        filemq.Hugz(),
        filemq.HugzOk(),
        filemq.Kthxbai(),
    )
}
"""The commands without fields, by name."""

PLAIN_MESSAGES: Mapping[str, libfilemq.AnyMessage] = {
    message.NAME: message
    for message in (
        libfilemq.Ohai(),
        libfilemq.OhaiOk(),
        libfilemq.IcanhazOk(),
        libfilemq.Hugz(),
        libfilemq.HugzOk(),
        libfilemq.Kthxbai(),
    )
}

LIBFILEMQ = LibfilemqDialect()

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (FILEMQ, LIBFILEMQ)}


def find_dialect(name: str) -> Dialect:
    """Return the dialect of the generated package `name`; raises ValueError for one that is not spoken."""
    try:
        return DIALECTS[name]
    except KeyError:
        spoken = ", ".join(sorted(DIALECTS))
        raise ValueError(f"no FILEMQ peer speaks {name!r}; known: {spoken}") from None
