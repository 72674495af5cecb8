"""From recorded packets to the messages in them: the steps of this package, put together.

Packets become TCP segments, segments the octets of each side, octets ZMTP units, units multipart messages, and those
the messages of a protocol. A message has the time of the packet that completed it, and messages come out in the
order of these packets, both directions together. Only what cannot be read at the beginning of a connection waits, until a
message tells which protocol it is an error of (`holding`).

What is no message is counted, and told at the end: connections that cannot be read and why, octets that the recorder
missed, packets that are none of TCP's. `Traffic.notes` says it in sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import msgspec

from specwire.runtime.pcap.choosing import Chooser, Roles, protocol_name
from specwire.runtime.pcap.connections import Connection, Connections, Piece
from specwire.runtime.pcap.holding import Held, Holding
from specwire.runtime.pcap.packets import Packet
from specwire.runtime.pcap.rows import Row
from specwire.runtime.pcap.segments import Address, Unread, read_segment
from specwire.runtime.pcap.zmtp_side import (
    Broken,
    Command,
    Event,
    Greeted,
    Introduced,
    Message,
    Unreadable,
    ZmtpSide,
)
from specwire.runtime.quantities import show_count

NO_ZMTP = "it is no ZMTP"
MAX_NOTES = 20
"""Listeners and reasons that are told of connections that cannot be read; of the rest only how many there were."""

_NAMED_BY_TEXT = {"flux", "cmb1", "cmb1_json"}
"""Protocols whose peers have UUIDs as text for identities, and are known by these; others have octets."""

Choose = Callable[[Address, Address], Sequence[ModuleType]]
"""Which packages come into question for a connection, by its two addresses."""


class _Conversation:
    """One connection as ZMTP."""

    def __init__(self, connection: Connection, packages: Sequence[ModuleType]) -> None:
        self.connection = connection
        self.chooser = Chooser(packages)
        self.roles = Roles()
        self.sides = {
            side: ZmtpSide(is_whole=connection.is_whole, plausible=self.chooser.reads)
            for side in (connection.opener, connection.listener)
        }
        self.identities = {connection.opener: b"", connection.listener: b""}
        self.mechanism = ""
        self.why: str | None = None
        self.is_zmtp = False
        self.messages = 0
        self.searched = 0

    @property
    def name(self) -> str:
        return f"{self.connection.number}-{self.connection.opener}-{self.connection.listener}"

    def peer(self, protocol: str | None) -> str:
        """The side that connected: the identity that it gave itself, as taps of its protocol write it, or its address."""
        identity = self.identities[self.connection.opener]
        if protocol in _NAMED_BY_TEXT and identity.isascii():
            return identity.decode("ascii") or str(self.connection.opener)
        return identity.hex() or str(self.connection.opener)

    def read_again(self, held: Held) -> Row:
        """Return a message as it is read now that the protocol is known."""
        row, package = held.row, self.chooser.package
        assert package is not None, "messages wait until there is one"
        sender = self.roles.of(package, None, is_listener=held.is_listener)
        row = msgspec.structs.replace(row, sender=sender, peer=self.peer(protocol_name(package)))
        if not row.frames:
            return row  # No ZMTP, which no package reads.
        protocol, message, error = self.chooser.decode(row.frames, sender or None)
        return msgspec.structs.replace(row, protocol=protocol, message=message, error=error)


class Traffic:
    """Takes packets and yields messages.

    Args:
        choose: says which packages come into question for a connection.
        port: the only port whose connections are read; None reads all.
    """

    def __init__(self, choose: Choose, *, port: int | None = None) -> None:
        self._choose = choose
        self._port = port
        self._connections = Connections()
        self._conversations: dict[int, _Conversation] = {}
        self._holding = Holding()
        self._unread: Counter[Unread] = Counter()
        self._links: set[int] = set()
        self._packets = 0
        self._lost = 0
        self._torn = 0
        self._other = 0
        self._commands: Counter[str] = Counter()
        self._refused: dict[tuple[Address, str], tuple[Address, int]] = {}
        """For listeners and reasons, the first who connected and how many did."""
        self._unsaid = 0

    def take(self, packet: Packet) -> Iterator[Row]:
        """Take a packet and yield the messages that it completes; iterate to the end before the next call."""
        self._packets += 1
        segment = read_segment(packet)
        if isinstance(segment, Unread):
            self._unread[segment] += 1
            if segment is Unread.LINK:
                self._links.add(packet.link)
            return
        if self._port is None or self._port in (segment.source.port, segment.target.port):
            for piece in self._connections.add(segment):
                yield from self._read(piece)

    def end(self) -> Iterator[Row]:
        """Yield what the last packets left open."""
        for piece in self._connections.end():
            yield from self._read(piece)

    def notes(self) -> list[str]:
        """Say what was not read, and why, in sentences."""
        told = [
            f"{opener if count == 1 else f'{count:,} connections'} to {listener} cannot be read: {why}"
            for (listener, why), (opener, count) in self._refused.items()
        ]
        if self._unsaid:
            told.append(f"{show_count(self._unsaid, 'more connection')} cannot be read")
        if self._other:
            told.append(f"{show_count(self._other, 'TCP connection')} passed over: no ZMTP was recognised")
        if self._lost:
            told.append(
                f"{show_count(self._lost, 'octet')} of TCP are missing from the recording, in"
                f" {show_count(self._torn, 'place')}; messages there are lost"
            )
        for reason, count in self._unread.items():
            if reason is Unread.LINK:
                links = ", ".join(map(str, sorted(self._links)))
                told.append(f"{show_count(count, 'packet')} of {reason.value} ({links})")
            elif reason is not Unread.OTHER:
                told.append(f"{show_count(count, 'packet')}: {reason.value}")
        if not self._connections.count:
            told.append(f"no TCP connection with octets in {show_count(self._packets, 'packet')}")
        return told

    # ---- one piece of a stream

    def _read(self, piece: Piece) -> Iterator[Row]:
        connection = piece.connection
        conversation = self._conversations.get(connection.number)
        if piece.sender is None:
            if self._conversations.pop(connection.number, None) is not None and conversation is not None:
                self._conclude(conversation)
            for held in self._holding.release(connection.number):
                yield held.row
            return
        if conversation is None:
            packages = self._choose(connection.opener, connection.listener)
            conversation = self._conversations[connection.number] = _Conversation(connection, packages)
        if conversation.why is not None:
            return
        if piece.lost and conversation.is_zmtp:
            self._lost += piece.lost
            self._torn += 1
        for event in conversation.sides[piece.sender].feed(piece.octets, lost=piece.lost):
            row = self._note(conversation, piece, event)
            if row is not None:
                yield from self._in_turn(conversation, row, is_listener=piece.sender == connection.listener)

    def _in_turn(self, conversation: _Conversation, row: Row, *, is_listener: bool) -> Iterator[Row]:
        """Yield a row behind those that waited for it, or have it wait."""
        number = conversation.connection.number
        if conversation.chooser.is_open:
            for held in self._holding.hold(number, Held(row, is_listener)):
                yield held.row
            return
        for held in self._holding.release(number):
            yield conversation.read_again(held)
        yield row

    def _note(self, conversation: _Conversation, piece: Piece, event: Event) -> Row | None:
        assert piece.sender is not None, "the end of a connection has no events"
        conversation.is_zmtp = conversation.is_zmtp or not isinstance(event, Unreadable)
        match event:
            case Message():
                return self._row(conversation, piece, event)
            case Broken(why=why):
                return self._broken_row(conversation, piece, why)
            case Greeted(mechanism=mechanism):
                conversation.mechanism = mechanism
            case Introduced(identity=identity):
                conversation.identities[piece.sender] = identity
            case Command(name=name):
                self._commands[name] += 1
            case Unreadable(why=why):
                conversation.why = why
        return None

    def _row(self, conversation: _Conversation, piece: Piece, message: Message) -> Row | None:
        sender = piece.sender
        is_listener = sender == conversation.connection.listener
        roles, chooser = conversation.roles, conversation.chooser
        role = roles.of(chooser.package, None, is_listener=is_listener)
        protocol, decoded, error = chooser.decode(message.frames, role or None)
        if error is not None and message.after_loss:
            return None  # Its beginning is among the octets that are missing, and is told with them.
        conversation.messages += 1
        return Row(
            ts=piece.time_ns // 1000,
            mono=piece.time_ns,
            protocol=protocol,
            conversation=conversation.name,
            sender=roles.of(chooser.package, decoded, is_listener=is_listener),
            peer=conversation.peer(protocol),
            listener=str(conversation.connection.listener),
            frames=message.frames,
            message=decoded,
            error=error,
        )

    def _broken_row(self, conversation: _Conversation, piece: Piece, why: str) -> Row:
        package = conversation.chooser.package
        is_listener = piece.sender == conversation.connection.listener
        return Row(
            ts=piece.time_ns // 1000,
            mono=piece.time_ns,
            conversation=conversation.name,
            sender=conversation.roles.of(package, None, is_listener=is_listener),
            peer=conversation.peer(None if package is None else protocol_name(package)),
            listener=str(conversation.connection.listener),
            frames=(),
            error=f"no ZMTP here: {why}",
        )

    def _conclude(self, conversation: _Conversation) -> None:
        """Keep what is to be told of a connection that is over."""
        why, connection = conversation.why, conversation.connection
        if why is None and not connection.is_whole and not conversation.messages:
            why = "the recording began after it did, and no message was recognised"
        elif why is None and not conversation.is_zmtp:
            why = NO_ZMTP
        if why is None:
            return
        if why == NO_ZMTP or (self._port is None and not connection.is_whole and not conversation.is_zmtp):
            self._other += 1
        elif (key := (connection.listener, why)) in self._refused or len(self._refused) < MAX_NOTES:
            first, count = self._refused.get(key, (connection.opener, 0))
            self._refused[key] = first, count + 1
        else:
            self._unsaid += 1
