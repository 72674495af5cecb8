"""Requests of the server's engine for the content of published files, and their answers."""

from __future__ import annotations

from typing import Any

import msgspec

from specwire.runtime.filemq.catalogue import Entry


class ReadingState(msgspec.Struct):
    """What a reader knows of a file after some chunks; only the reader uses it.

    Attributes:
        sha1: `hashlib` object over all chunks; None if the digest is not computed on the way.
        touched_ns: time at which the file's state had changed last when reading began.
    """

    sha1: Any
    touched_ns: int


class ReadChunk(msgspec.Struct, frozen=True):
    """Request: read `size` octets at `offset` of a file. Answered with `Chunk`, or None if the file has changed.

    Attributes:
        state: of the answer to the request before; None for the first one.
    """

    entry: Entry
    offset: int
    size: int
    state: ReadingState | None = None


class Chunk(msgspec.Struct, frozen=True):
    """Octets of a file, exactly as many as requested."""

    octets: bytes
    state: ReadingState


class CheckPart(msgspec.Struct, frozen=True):
    """Request: compute the SHA-1 of the first `size` octets of a file.

    Answered with upper-case hexadecimal, or None if the file has changed.
    """

    entry: Entry
    size: int
