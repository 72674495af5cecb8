"""The octets of the C implementation of FILEMQ, built and read by hand: nothing here uses our own codec."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

SIGNATURE = b"\xaa\xa3"
OHAI, OHAI_OK, ICANHAZ, ICANHAZ_OK, NOM, CHEEZBURGER, HUGZ, HUGZ_OK, KTHXBAI = 1, 4, 5, 6, 7, 8, 9, 10, 11
SRSLY, RTFM = 128, 129
CREATE, DELETE = 1, 2


class MalformedError(Exception):
    """Octets that the C codec does not take."""


@dataclass(frozen=True)
class Patch:
    """A CHEEZBURGER."""

    sequence: int
    operation: int
    name: str
    offset: int
    eof: int
    chunk: bytes
    headers: dict[str, str] = field(default_factory=dict)


def plain(number: int) -> bytes:
    """A message that has no fields."""
    return SIGNATURE + bytes([number])


def ohai() -> bytes:
    return plain(OHAI) + b"\x06FILEMQ\x00\x02"


def icanhaz(path: str) -> bytes:
    """As the C client sends it: no options, no cache."""
    name = path.encode()
    return plain(ICANHAZ) + struct.pack(">I", len(name)) + name + struct.pack(">II", 0, 0)


def nom(credit: int) -> bytes:
    return plain(NOM) + struct.pack(">QQ", credit, 0)


def rtfm(reason: bytes = b"") -> bytes:
    return plain(RTFM) + bytes([len(reason)]) + reason


def cheezburger(patch: Patch) -> bytes:
    name = patch.name.encode("utf-8", "surrogateescape")
    return b"".join(
        (
            plain(CHEEZBURGER),
            struct.pack(">QBI", patch.sequence, patch.operation, len(name)),
            name,
            struct.pack(">QBI", patch.offset, patch.eof, 0),
            struct.pack(">I", len(patch.chunk)),
            patch.chunk,
        )
    )


class Reader:
    """Takes one field after the other off a frame."""

    def __init__(self, frames: list[bytes]) -> None:
        if len(frames) != 1:
            raise MalformedError(f"{len(frames)} frames")
        self._rest = memoryview(frames[0])
        if self.octets(2) != SIGNATURE:
            raise MalformedError("signature")
        self.number = self.integer(1)

    def octets(self, count: int) -> bytes:
        if count > len(self._rest):
            raise MalformedError("too short")
        taken, self._rest = bytes(self._rest[:count]), self._rest[count:]
        return taken

    def integer(self, size: int) -> int:
        return int.from_bytes(self.octets(size), "big")

    def text(self, size: int) -> str:
        return self.octets(self.integer(size)).decode()

    def pairs(self) -> dict[str, str]:
        return {self.text(1): self.text(4) for _ in range(self.integer(4))}

    def end(self) -> None:
        if self._rest:
            raise MalformedError("octets behind the message")


def read_patch(reader: Reader) -> Patch:
    """The fields of a CHEEZBURGER, in their order on the wire."""
    sequence, operation, name = reader.integer(8), reader.integer(1), reader.text(4)
    offset, eof, headers = reader.integer(8), reader.integer(1), reader.pairs()
    chunk = reader.octets(reader.integer(4))
    reader.end()
    return Patch(sequence, operation, name, offset, eof, chunk, headers)
