"""Read-only classes as the compiler of Kaitai Struct writes them for Python, on its runtime: a yardstick.

A class reads its fields one after another from a stream, each by a call; constants are compared as ``contents``
does, enumerations looked up, repetitions appended to a list. What the format language cannot say (a text that is
divided at its ``=``) is left to the caller. A message begins with what all messages have, and its own fields are
a type of their own, switched on its number. Flux is read from one stream of frames, each behind its length in
four octets: the format language knows no frames.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from kaitaistruct import (
    BytesIO,
    KaitaiStream,
    KaitaiStruct,
    ValidationNotEqualError,
    ValidationNotInEnumError,
)


class FluxHeader(KaitaiStruct):
    """The last frame of a Flux message."""

    class Types(IntEnum):
        """The messages of Flux."""

        request = 1
        response = 2
        event = 4
        control = 8

    def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
        super().__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self) -> None:
        self.magic = self._io.read_bytes(1)
        if self.magic != b"\x8e":
            raise ValidationNotEqualError(b"\x8e", self.magic, self._io, "/seq/0")
        self.version = self._io.read_u1()
        if self.version != 1:
            raise ValidationNotEqualError(1, self.version, self._io, "/seq/1")
        self.type = KaitaiStream.resolve_enum(FluxHeader.Types, self._io.read_u1())
        if not isinstance(self.type, FluxHeader.Types):
            raise ValidationNotInEnumError(self.type, self._io, "/seq/2")
        self.flags = self._io.read_u1()
        self.userid = self._io.read_u4be()
        self.rolemask = self._io.read_u4be()
        _on = self.type
        if _on == FluxHeader.Types.request:
            self.tail = FluxHeader.RequestTail(self._io, self, self._root)

    class RequestTail(KaitaiStruct):
        """The numbers that only a request has."""

        def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
            super().__init__(_io)
            self._parent = _parent
            self._root = _root or self
            self._read()

        def _read(self) -> None:
            self.nodeid = self._io.read_u4be()
            self.matchtag = self._io.read_u4be()


class FluxRequest(KaitaiStruct):
    """A Flux request with routes, topic and payload as its flags say, each frame behind its length."""

    def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
        super().__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self) -> None:
        self.routes = []
        i = 0
        while True:
            _ = FluxRequest.Frame(self._io, self, self._root)
            self.routes.append(_)
            if _.len_body == 0:
                break
            i += 1
        self.len_topic = self._io.read_u4be()
        self.topic = (self._io.read_bytes(self.len_topic)).decode("UTF-8")
        self.len_payload = self._io.read_u4be()
        self.payload = self._io.read_bytes(self.len_payload)
        self.len_header = self._io.read_u4be()
        self._raw_header = self._io.read_bytes(self.len_header)
        _io__raw_header = KaitaiStream(BytesIO(self._raw_header))
        self.header = FluxHeader(_io__raw_header, self, self._root)

    class Frame(KaitaiStruct):
        """A frame of the route stack."""

        def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
            super().__init__(_io)
            self._parent = _parent
            self._root = _root or self
            self._read()

        def _read(self) -> None:
            self.len_body = self._io.read_u4be()
            self.body = (self._io.read_bytes(self.len_body)).decode("UTF-8")


class KeyValue(KaitaiStruct):
    """A text of FILEMQ behind its length in one octet, which holds a name and a value."""

    def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
        super().__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self) -> None:
        self.len_text = self._io.read_u1()
        self.text = (self._io.read_bytes(self.len_text)).decode("UTF-8")


class FilemqMessage(KaitaiStruct):
    """A command of FILEMQ: its first frame, then the frames behind it to the end of the stream."""

    class Commands(IntEnum):
        """Two of the commands."""

        icanhaz = 5
        cheezburger = 8

    class Operations(IntEnum):
        """What a chunk is for."""

        create = 1
        delete = 2

    def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
        super().__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self) -> None:
        self.signature = self._io.read_bytes(2)
        if self.signature != b"\xaa\xa3":
            raise ValidationNotEqualError(b"\xaa\xa3", self.signature, self._io, "/seq/0")
        self.id = KaitaiStream.resolve_enum(FilemqMessage.Commands, self._io.read_u1())
        if not isinstance(self.id, FilemqMessage.Commands):
            raise ValidationNotInEnumError(self.id, self._io, "/seq/1")
        _on = self.id
        if _on == FilemqMessage.Commands.icanhaz:
            self.body = FilemqMessage.Icanhaz(self._io, self, self._root)
        elif _on == FilemqMessage.Commands.cheezburger:
            self.body = FilemqMessage.Cheezburger(self._io, self, self._root)

    class Cheezburger(KaitaiStruct):
        """What CHEEZBURGER has."""

        def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
            super().__init__(_io)
            self._parent = _parent
            self._root = _root or self
            self._read()

        def _read(self) -> None:
            self.sequence = self._io.read_u8be()
            self.operation = KaitaiStream.resolve_enum(FilemqMessage.Operations, self._io.read_u1())
            if not isinstance(self.operation, FilemqMessage.Operations):
                raise ValidationNotInEnumError(self.operation, self._io, "/types/cheezburger/seq/1")
            self.len_filename = self._io.read_u1()
            self.filename = (self._io.read_bytes(self.len_filename)).decode("UTF-8")
            self.offset = self._io.read_u8be()
            self.num_headers = self._io.read_u1()
            self.headers = []
            for _ in range(self.num_headers):
                self.headers.append(KeyValue(self._io, self, self._root))
            self.chunk = self._io.read_bytes_full()

    class Icanhaz(KaitaiStruct):
        """What ICANHAZ has."""

        def __init__(self, _io: Any, _parent: Any = None, _root: Any = None) -> None:
            super().__init__(_io)
            self._parent = _parent
            self._root = _root or self
            self._read()

        def _read(self) -> None:
            self.len_path = self._io.read_u1()
            self.path = (self._io.read_bytes(self.len_path)).decode("UTF-8")
            self.num_options = self._io.read_u1()
            self.options = []
            for _ in range(self.num_options):
                self.options.append(KeyValue(self._io, self, self._root))
            self.num_cache = self._io.read_u1()
            self.cache = []
            for _ in range(self.num_cache):
                self.cache.append(KeyValue(self._io, self, self._root))


def _texts(pairs: Any) -> list[str]:
    return [f"{name}={value}" for name, value in pairs]


def _same_header(read: Any, message: Any) -> bool:
    numbers = (read.flags, read.userid, read.rolemask, read.tail.nodeid, read.tail.matchtag)
    return numbers == (
        message.wire_flags, message.userid, message.rolemask, message.nodeid, message.matchtag,
    )  # fmt: skip


def _same_request(read: Any, message: Any) -> bool:
    routes = tuple(frame.body for frame in read.routes[:-1])
    values = (routes, read.topic, read.payload)
    return values == (message.routes, message.topic, message.payload) and _same_header(read.header, message)


def _same_cheezburger(read: Any, message: Any) -> bool:
    read = read.body
    values = (read.sequence, read.operation, read.filename, read.offset, read.chunk)
    return values == (
        message.sequence, message.operation, message.filename, message.offset, message.chunk,
    ) and [pair.text for pair in read.headers] == _texts(message.headers)  # fmt: skip


def _same_icanhaz(read: Any, message: Any) -> bool:
    read = read.body
    options, cache = ([pair.text for pair in pairs] for pairs in (read.options, read.cache))
    return (read.path, options, cache) == (message.path, _texts(message.options), _texts(message.cache))


def _joined(frames: list[bytes]) -> bytes:
    return b"".join(frames)


def _framed(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


Comparison = Callable[[Any, Any], bool]
STYLES: dict[str, tuple[Any, Callable[[list[bytes]], bytes], Comparison]] = {
    "flux request, header alone": (FluxHeader, _joined, _same_header),
    "flux request": (FluxRequest, _framed, _same_request),
    "filemq CHEEZBURGER": (FilemqMessage, _joined, _same_cheezburger),
    "filemq ICANHAZ, 3 options, 20 cached": (FilemqMessage, _joined, _same_icanhaz),
}
"""For a case, its class, what makes the class's stream of the frames, and whether it read the same values."""


def reader(
    case: str, message: Any, frames: list[bytes]
) -> tuple[Callable[[bytes], object], tuple[bytes]] | None:
    """Return what reads a case in this style, and the octets to read; None where there is no class for it.

    Raises:
        AssertionError: it reads other values than `message` has.
    """
    if case not in STYLES:
        return None
    style, stream, same = STYLES[case]
    octets = stream(frames)
    assert same(style.from_bytes(octets), message), case
    return style.from_bytes, (octets,)
