"""Messages that make a decoder work: long ones of next to nothing, and short ones that claim to be long.

Each is written out from the rules of its protocol; `n` is how much there is of what it repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MAX = b"\xff"
ZMTP_READY = b"\x05READY"
FLUX = b"\x8e\x01\x01"


@dataclass(frozen=True)
class Shape:
    """Frames that grow with a number, and whether they are a message."""

    package: str
    frames: Callable[[int], list[bytes]]
    good: bool


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _zmtp(body: bytes) -> list[bytes]:
    return [b"\x06" + len(body).to_bytes(8, "big") + body]


def _icanhaz(n: int, claimed: int | None = None) -> bytes:
    """libfilemq: a path, n options without name and value in five octets each, an empty cache."""
    return b"\xaa\xa3\x05" + _u32(0) + _u32(n if claimed is None else claimed) + bytes(5 * n) + _u32(0)


GROWING: dict[str, Shape] = {
    # libfilemq: dictionary = 4OCTET *( name 4OCTET text ); the shortest entry has five octets.
    "empty pairs": Shape("libfilemq", lambda n: [_icanhaz(n)], good=True),
    "empty pairs, one too few": Shape("libfilemq", lambda n: [_icanhaz(n, n + 1)], good=False),
    "empty pairs, one octet too many": Shape("libfilemq", lambda n: [_icanhaz(n) + b"\0"], good=False),
    # ZRE: strings = 4OCTET *( 4OCTET text ), behind signature, number, version, sequence and an endpoint.
    "empty texts": Shape("zre", lambda n: [b"\xaa\xa1\x01\x02\x00\x01\x00" + _u32(n) + bytes(4 * n) + b"\x01\x00" + _u32(0)], good=True),
    "empty texts, the end missing": Shape("zre", lambda n: [b"\xaa\xa1\x01\x02\x00\x01\x00" + _u32(n) + bytes(4 * n)], good=False),
    # ZMTP: metadata = *( 1OCTET name 4OCTET value ) up to the end of the command; a name has an octet or more.
    "properties": Shape("zmtp", lambda n: _zmtp(ZMTP_READY + b"\x01a\x00\x00\x00\x00" * n), good=True),
    "properties, the last cut": Shape("zmtp", lambda n: _zmtp(ZMTP_READY + b"\x01a\x00\x00\x00\x00" * n + b"\x01"), good=False),
    # Flux: routes, an empty frame, the header with the flag 0x08.
    "routes": Shape("flux", lambda n: [b"a"] * n + [b"", FLUX + b"\x08" + bytes(16)], good=True),
    "routes without an end": Shape("flux", lambda n: [b"a"] * n + [FLUX + b"\x08" + bytes(16)], good=False),
    "frames that no flag announces": Shape("flux", lambda n: [b"a"] * n + [FLUX + b"\x00" + bytes(16)], good=False),
    "a long topic": Shape("flux", lambda n: [b"a" * n, FLUX + b"\x01" + bytes(16)], good=True),
    "a long topic that ends in half a character": Shape("flux", lambda n: [b"a" * n + b"\xc3", FLUX + b"\x01" + bytes(16)], good=False),
    "a topic of NUL": Shape("flux", lambda n: [bytes(n + 1), FLUX + b"\x01" + bytes(16)], good=False),
    # NORFAB: more frames than the body, as many as one likes.
    "empty frames": Shape("norfab", lambda n: [b"", b"NFPC01", b"\x04", b"s", b"t", b"u", b"{}", *[b""] * n], good=True),
    "empty frames, and a bad text": Shape("norfab", lambda n: [b"", b"NFPC01", b"\x04", b"s", b"\xff", b"u", b"{}", *[b""] * n], good=False),
    "frames of nothing": Shape("filemq", lambda n: [b""] * (n + 1), good=False),
    # FILEMQ: a number of entries has one octet, and so has a length: this is the longest that there is.
    "entries without '='": Shape("filemq", lambda n: [b"\xaa\xa3\x05\x00" + bytes((min(n, 255),)) + b"\xff" + b"=" * 255 + (b"\xff" + b"a" * 255) * n], good=False),
}  # fmt: skip
"""What grows, by its name."""

CLAIMING: dict[str, tuple[str, list[bytes]]] = {
    "4 GiB of options": ("libfilemq", [_icanhaz(0, 0xFFFFFFFF)]),
    "4 GiB of options and some": ("libfilemq", [_icanhaz(1000, 0xFFFFFFFF)]),
    "a path of 4 GiB": ("libfilemq", [b"\xaa\xa3\x05" + MAX * 4 + b"/"]),
    "a chunk of 4 GiB": (
        "libfilemq", [b"\xaa\xa3\x08" + bytes(8) + b"\x01" + bytes(4) + bytes(9) + bytes(4) + MAX * 4],
    ),
    "a value of 4 GiB": ("libfilemq", [b"\xaa\xa3\x05" + _u32(0) + _u32(1) + b"\x01a" + MAX * 4]),
    "counts in counts": ("libfilemq", [b"\xaa\xa3\x05" + _u32(0) + _u32(5) + bytes(25) + MAX * 4]),
    "255 entries of one octet": ("filemq", [b"\xaa\xa3\x05\x00\xff" + b"\x01=" * 254]),
    "4 GiB of groups": ("zre", [b"\xaa\xa1\x01\x02\x00\x01\x00" + MAX * 4 + bytes(100)]),
    "a group of 4 GiB": ("zre", [b"\xaa\xa1\x01\x02\x00\x01\x00" + _u32(1) + MAX * 4]),
    "a command of 2**63 octets": ("zmtp", [b"\x06\x80" + bytes(7) + ZMTP_READY]),
    "a message of 2**64 - 1 octets": ("zmtp", [b"\x02" + MAX * 8]),
    "a property of 4 GiB": ("zmtp", _zmtp(ZMTP_READY + b"\x01a" + MAX * 4)),
}  # fmt: skip
"""What claims more than there is: all of it is refused."""
