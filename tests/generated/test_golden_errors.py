"""What a user reads of each thing that can be wrong with a message: ``tests/golden/errors``, a file for each package.

The faults are put into messages that are written from the IR (see ``places.py``), each at a known place; the test
holds every error to that place, and the files hold the sentences. A sentence that only differs from another in the
name of the message is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest

from specwire.generated.errors import DecodeError
from tests.generated.builds import package
from tests.generated.places import Frame, Piece, octets_of, written
from tests.generated.test_truncation import protocol
from tests.generated.vectors import PACKAGES
from tests.golden_files import GOLDEN, check_golden


@dataclass(frozen=True)
class Spoiled:
    """Frames with one fault: what it is, and where; no path where it is the number of frames."""

    what: str
    frames: list[bytes]
    path: str | None = None
    frame: int | None = None
    offset: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


NUMBER = re.compile(r"\b\d+\b")

Spoil = Callable[[Piece], tuple[str, bytes, str, int] | None]
"""What is wrong, the octets in place of a piece's, the path, and how far into them; None where it does not apply."""


def spoil_constant(piece: Piece) -> tuple[str, bytes, str, int] | None:
    if piece.of != "constant" or not piece.octets:
        return None
    return "a constant that is another", bytes((piece.octets[0] ^ 0x20,)) + piece.octets[1:], piece.path, 0


def spoil_text(piece: Piece) -> tuple[str, bytes, str, int] | None:
    if piece.of != "text":
        return None
    return "text that is not UTF-8", piece.octets[:1] + b"\xff" + piece.octets[2:], piece.path, 1


def spoil_member(piece: Piece) -> tuple[str, bytes, str, int] | None:
    if piece.of != "member":
        return None
    return "a number that has no meaning", b"\xee" * len(piece.octets), piece.path, 0


def spoil_count(piece: Piece) -> tuple[str, bytes, str, int] | None:
    if not piece.entries:
        return None
    return "a count of more than there is", b"\xff" * len(piece.octets), piece.path, 0


def spoil_pair(piece: Piece) -> tuple[str, bytes, str, int] | None:
    if piece.of != "pair":
        return None
    return "an entry that is no name=value", piece.octets.replace(b"=", b":"), piece.path, 0


def spoil_value(piece: Piece) -> tuple[str, bytes, str, int] | None:
    if piece.of != "pair":
        return None
    return (
        "a value that is not UTF-8",
        piece.octets[:-1] + b"\xe9",
        f"{piece.path}.value",
        len(piece.octets) - 1,
    )


SPOILS: tuple[Spoil, ...] = (
    spoil_constant, spoil_member, spoil_count, spoil_pair, spoil_text, spoil_value,
)  # fmt: skip


def faults(message: list[Frame]) -> Iterator[Spoiled]:
    """Yield the frames of a message with one fault each."""
    octets = [octets_of(frame) for frame in message]
    for index, frame in enumerate(message):
        for changed, what, path, offset in spoiled_frames(frame):
            yield Spoiled(what, put(octets, index, changed), path, index, offset)
        for number, piece in enumerate(frame):
            start = sum(len(before.octets) for before in frame[:number])
            if len(piece.octets) > 1 and piece.open is None and not piece.whole:
                cut = octets[index][: start + len(piece.octets) - 1]
                yield Spoiled("a frame that ends too early", put(octets, index, cut))
        if all(piece.open is None for piece in frame):
            yield Spoiled("octets behind the end", put(octets, index, octets[index] + b"\x01"))
        yield Spoiled("a frame that is missing", [*octets[:index], *octets[index + 1 :]])
    yield Spoiled("a frame too many", [*octets, b"more"])
    yield Spoiled("a frame too many, in front", [b"more", *octets])
    yield Spoiled("no frame at all", [])
    yield Spoiled("more frames than the caller wants", octets, options={"max_frames": len(octets) - 1})
    yield Spoiled(
        "more octets than the caller wants", octets, options={"max_octets": sum(map(len, octets)) - 1}
    )


def put(octets: list[bytes], index: int, frame: bytes) -> list[bytes]:
    """Return the frames with another one in its place."""
    return [*octets[:index], frame, *octets[index + 1 :]]


def spoiled_frames(frame: Frame) -> Iterator[tuple[bytes, str, str, int]]:
    """Yield a frame with one piece spoiled: its octets, what is wrong, the path and the octet."""
    starts = accumulate((len(piece.octets) for piece in frame), initial=0)
    for number, (piece, start) in enumerate(zip(frame, starts, strict=False)):
        for spoil in SPOILS:
            if found := spoil(piece):
                what, octets, path, at = found
                yield (
                    octets_of(frame[:number]) + octets + octets_of(frame[number + 1 :]),
                    what,
                    path,
                    start + at,
                )


def sentences(
    module: ModuleType, messages: Iterator[list[Frame]], open_names: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield each fault with what the package says of it, the first of those that say the same.

    `open_names` are messages that any other becomes whose own name is spoiled.
    """
    seen: set[tuple[str, ...]] = set()
    for message in messages:
        for spoiled in faults(message):
            try:
                module.decode(spoiled.frames, **spoiled.options)
            except DecodeError as error:
                if spoiled.path is not None and error.message_name not in open_names:
                    assert (error.field, error.frame, error.offset) == (
                        spoiled.path,
                        spoiled.frame,
                        spoiled.offset,
                    )
                said = tuple(
                    NUMBER.sub("", f"{word}")
                    for word in (spoiled.what, error.field, error.kind, error.expected)
                )
                if said not in seen:
                    yield spoiled.what, str(error)
                seen.add(said)
            else:
                # Another message of the protocol, or more of this one.
                assert spoiled.path is None


@pytest.mark.parametrize("name", PACKAGES)
def test_sentences(name: str, build: str) -> None:
    messages: Iterator[list[Frame]] = (
        frames for message in protocol(name).messages for frames in written(protocol(name), message)
    )
    found: dict[str, list[str]] = {}
    open_names = {message.name for message in protocol(name).messages if message.shadowed}
    for what, sentence in sentences(package(name, build), messages, open_names):
        found.setdefault(what, []).append(sentence)
    text = "\n".join(
        f"{what}\n" + "".join(f"    {line}\n" for line in lines) for what, lines in found.items()
    )
    check_golden(GOLDEN / "errors" / f"{name}.txt", text)
