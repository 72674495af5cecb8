"""What one side of a ZMTP 3 connection says: octets in, handshake and messages out.

Each side names its mechanism in its own greeting, so each direction is read for itself. NULL and PLAIN are read; of
CURVE, and of mechanisms that are not known, nothing behind the greeting can be, and ZMTP 1 and 2 are told by their names.
Units are cut and decoded by the package that is generated from the specification (`specwire.generated.zmtp`).

Octets may be missing, and the recording may begin in the middle. Then the side *searches*: where the units that
begin with a TCP segment end exactly with it, and one of the messages among them is `plausible`, they are taken, and the
stream goes on. The first message found so may lack its beginning, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from specwire.generated import zmtp
from specwire.generated.errors import DecodeError
from specwire.generated.zmtp.stream import FRAMING

GREETING_OCTETS = 64
MAX_OCTETS = 256 << 20
"""Octets of the longest message that is put together."""
MAX_FRAMES = 65_536
READABLE = {"NULL", "PLAIN"}

_SIGNATURE_OCTETS = 10
_MAJOR, _MINOR = 10, 11
_FIRST = {head.prefix[0] for head in FRAMING.heads}
_SUBSCRIBERS = {"SUB", "XSUB"}


class Message(msgspec.Struct, frozen=True):
    """A multipart message; `after_loss` where frames at its beginning may be missing."""

    frames: tuple[bytes, ...]
    after_loss: bool = False


class Greeted(msgspec.Struct, frozen=True):
    """The side has greeted: its version as ``3.1``, and its mechanism."""

    version: str
    mechanism: str


class Introduced(msgspec.Struct, frozen=True):
    """The side has said which socket it is, by READY or INITIATE."""

    socket_type: str
    identity: bytes


class Unreadable(msgspec.Struct, frozen=True):
    """Nothing more of this side can be read; `why` is the end of a sentence."""

    why: str


class Broken(msgspec.Struct, frozen=True):
    """Here the octets were no ZMTP; what follows is searched for a place to go on."""

    why: str


class Command(msgspec.Struct, frozen=True):
    """A command that is no message, such as PING; one that takes or gives back a subscription is SUBSCRIBE or CANCEL."""

    name: str


Event = Message | Greeted | Introduced | Unreadable | Broken | Command


class ZmtpSide:
    """Reads one direction.

    Args:
        is_whole: whether its first octets are the beginning of the connection.
        plausible: whether frames are a message that may be on this connection.
        max_octets: of the longest message that is put together.
    """

    def __init__(
        self,
        *,
        is_whole: bool,
        plausible: Callable[[Sequence[bytes]], bool],
        max_octets: int = MAX_OCTETS,
    ) -> None:
        self._plausible, self._max_octets = plausible, max_octets
        self._greeting = bytearray()
        self._read: Callable[[bytes], Iterator[Event]] = self._greet if is_whole else self._search
        self._units = zmtp.StreamDecoder(max_octets=self._max_octets)
        self._frames: list[bytes] = []
        self._held = 0
        self._after_loss = False
        self._subscribes = False

    def feed(self, octets: bytes, *, lost: int = 0) -> Iterator[Event]:
        """Take octets, before which `lost` are missing, and yield what they say; iterate to the end each time."""
        if lost and self._read != self._ignore:
            if self._read == self._greet:
                self._greeting.clear()
            yield from self._lose()
        if octets:
            yield from self._read(octets)

    def end(self) -> str | None:
        """Say what is not whole where the octets end here; None where nothing is missing."""
        if self._greeting:
            return "it ends in the middle of the greeting"
        if self._frames:
            return "it ends between the frames of a message"
        try:
            self._units.eof()
        except DecodeError as error:
            return f"it ends in the middle of a frame, {error.offset} octets after its beginning"
        return None

    def _ignore(self, octets: bytes) -> Iterator[Event]:
        return iter(())

    def _greet(self, octets: bytes) -> Iterator[Event]:
        """The greeting, in whatever portions it comes."""
        self._greeting += octets
        why = _refuse(self._greeting)
        if why is not None:
            self._read = self._ignore
            yield Unreadable(why)
        elif len(self._greeting) >= GREETING_OCTETS:
            greeting, rest = bytes(self._greeting[:GREETING_OCTETS]), bytes(self._greeting[GREETING_OCTETS:])
            self._greeting.clear()
            self._read = self._follow
            yield from self._accept(greeting)
            yield from self._read(rest)

    def _accept(self, greeting: bytes) -> Iterator[Event]:
        # The package knows 3.1; 3.0 differs in the number and in commands that do not occur in it.
        minor = greeting[_MINOR]
        try:
            known = zmtp.decode([greeting[:_MINOR] + b"\x01" + greeting[_MINOR + 1 :]])
        except DecodeError as error:
            self._read = self._ignore
            yield Unreadable(f"the greeting is damaged: {error}")
            return
        assert isinstance(known, zmtp.Greeting), "no other message begins so"
        yield Greeted(f"3.{minor}", known.mechanism)
        if known.mechanism not in READABLE:
            self._read = self._ignore
            encrypted = known.mechanism == "CURVE"
            why = f"its mechanism is {known.mechanism!r}, which is not known"
            yield Unreadable("it is encrypted (CURVE)" if encrypted else why)

    def _follow(self, octets: bytes) -> Iterator[Event]:
        """Units, as they come."""
        try:
            units = self._units.feed(octets)
        except DecodeError as error:
            yield from self._lose(str(error))
            return
        for unit in units:
            yield from self._take(unit)
        if self._units.fault is not None:
            yield from self._lose(str(self._units.fault))

    def _take(self, unit: zmtp.AnyMessage) -> Iterator[Event]:
        match unit:
            case zmtp.MessageMore(message_body=body):
                yield from self._gather(body)
            case zmtp.MessageLast(message_body=body):
                yield from self._gather(body)
                if self._frames:
                    frames, self._frames, self._held = tuple(self._frames), [], 0
                    after_loss, self._after_loss = self._after_loss, False
                    yield self._message(frames, after_loss)
            case zmtp.Ready(metadata=metadata):
                yield self._introduce(metadata)
            case zmtp.Command(command_name="INITIATE", command_data=data):
                yield from self._initiate(data)
            case zmtp.Error(error_reason=reason):
                yield Unreadable(f"it was refused: {reason!r}")
            case zmtp.Command(command_name=name):
                yield Command(name)
            case zmtp.Greeting():
                yield from self._lose("a greeting in the middle of the stream")
            case _:
                yield Command(unit.NAME.upper())

    def _gather(self, body: bytes) -> Iterator[Event]:
        self._frames.append(body)
        self._held += len(body)
        if self._held > self._max_octets or len(self._frames) > MAX_FRAMES:
            yield from self._lose(f"a message of more than {MAX_FRAMES} frames or {self._max_octets} octets")

    def _message(self, frames: tuple[bytes, ...], after_loss: bool) -> Event:
        # In ZMTP 3.0 subscriptions are messages.
        if self._subscribes and len(frames) == 1 and frames[0][:1] in (b"\x00", b"\x01"):
            return Command("SUBSCRIBE" if frames[0][0] else "CANCEL")
        return Message(frames, after_loss)

    def _introduce(self, metadata: Sequence[tuple[str, bytes]]) -> Introduced:
        known = {name.lower(): value for name, value in metadata}
        socket_type = known.get("socket-type", b"").decode("ascii", "replace")
        self._subscribes = socket_type in _SUBSCRIBERS
        return Introduced(socket_type, known.get("identity", b""))

    def _initiate(self, data: bytes) -> Iterator[Event]:
        """PLAIN's INITIATE carries what READY does."""
        body = b"\x05READY" + data
        try:
            ready = zmtp.decode([b"\x06" + len(body).to_bytes(8, "big") + body])
        except DecodeError as error:
            yield Broken(f"INITIATE: {error}")
            return
        assert isinstance(ready, zmtp.Ready), "no other message begins so"
        yield self._introduce(ready.metadata)

    def _lose(self, why: str | None = None) -> Iterator[Event]:
        """Begin to search; `why` where that is for octets that are no ZMTP."""
        self._frames, self._held = [], 0
        self._units = zmtp.StreamDecoder(max_octets=self._max_octets)
        self._read = self._search
        if why is not None:
            yield Broken(why)

    def _search(self, octets: bytes) -> Iterator[Event]:
        """See whether a segment is made of whole units, and begin with it if one of their messages is plausible."""
        if is_greeting(octets):
            self._greeting.clear()
            self._read = self._greet
            yield from self._greet(octets)
            return
        if not _is_of_units(octets):
            return
        found = ZmtpSide(is_whole=True, plausible=self._plausible)
        found._read, found._after_loss = found._follow, True
        events = list(found.feed(octets))
        if events and all(map(_is_boxed, events)):
            self._read = self._ignore
            yield Unreadable("it is encrypted (CURVE)")
            return
        messages = (event.frames for event in events if isinstance(event, Message))
        if not any(map(self._plausible, messages)):
            return
        self._frames, self._held, self._after_loss = found._frames, found._held, found._after_loss
        self._read = self._follow
        yield from events


def _is_boxed(event: Event) -> bool:
    """Whether this is CURVE's MESSAGE, which libzmq sends as a message, not as the command that the specification has."""
    if isinstance(event, Message):
        return len(event.frames) == 1 and event.frames[0].startswith(b"\x07MESSAGE")
    return event == Command("MESSAGE")


def is_greeting(beginning: bytes) -> bool:
    """Say whether a stream that begins so begins with a greeting of ZMTP 2 or 3."""
    return (
        beginning[:1] == b"\xff"
        and len(beginning) >= _SIGNATURE_OCTETS
        and _refuse(beginning[:_MAJOR]) is None
    )


def _refuse(beginning: bytes | bytearray) -> str | None:
    """Return why a stream that begins so is not read, None as far as it is ZMTP 3."""
    if beginning[0] != 0xFF and len(beginning) > 1:
        # A ZMTP 1 peer sends its identity as a frame: length, flags, identity.
        old = beginning[0] > 0 and beginning[1] == 0
        return "it is ZMTP 1 (libzmq 2), or no ZMTP" if old else "it is no ZMTP"
    if len(beginning) >= _SIGNATURE_OCTETS and not beginning[_SIGNATURE_OCTETS - 1] & 1:
        return "it is ZMTP 1 (libzmq 2)"
    if len(beginning) > _MAJOR and beginning[_MAJOR] < 3:
        return "it is ZMTP 2 (libzmq 3)"
    return None


def _is_of_units(octets: bytes) -> bool:
    if octets[0] not in _FIRST:
        return False
    buffer, at = bytearray(octets), 0
    try:
        while at < len(buffer) and (found := FRAMING.cut(buffer, at, len(buffer))):
            at = found[0]
    except DecodeError:
        return False
    return at == len(buffer)
