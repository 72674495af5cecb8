"""What must hold for any octets on a byte stream: the same messages however they are cut, and no more held than
one message may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from specwire.generated.errors import DecodeError
from tests.fuzz.codecs import demand, same
from tests.generated.vectors import package

MAX_OCTETS = 4096


def stream_check(name: str) -> Callable[[bytes], None]:
    """Return the check of a package's `StreamDecoder`.

    The first octet of the input says into how long pieces the others are cut.
    """
    module = package(name)

    def check(octets: bytes) -> None:
        size, stream = (octets[0] or 1, octets[1:]) if octets else (1, b"")
        whole = list(_said(module, [stream]))
        cut = list(_said(module, [stream[at : at + size] for at in range(0, len(stream), size)]))
        demand(len(whole) == len(cut), "as many messages however the stream is cut")
        demand(all(map(same, whole, cut)), "the same messages however the stream is cut")
        for message in whole[:-1]:
            again = module.StreamDecoder().feed(module.frame(message))
            demand(again == [message], "a message that was framed is read again")

    return check


def _said(module: Any, pieces: list[bytes]) -> Iterator[Any]:
    """The messages in a stream, and last how it ends: with an error, or None."""
    decoder = module.StreamDecoder(max_octets=MAX_OCTETS)
    try:
        for piece in pieces:
            yield from decoder.feed(piece)
        decoder.eof()
    except DecodeError as error:
        yield error
    else:
        yield None
