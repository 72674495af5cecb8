"""Values to octets and back, where `str` and `bytes` alone would take too much."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex

OCTETS = tuple(bytes((octet,)) for octet in range(256))
"""Every octet by its number."""


def as_octets(value: object) -> bytes:
    """Return octets as they go on the wire.

    Raises:
        TypeError: `value` is not bytes, bytearray or memoryview.
    """
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"octets wanted, not {type(value).__name__}")


def as_frames(frames: Sequence[bytes]) -> list[bytes]:
    """Return `frames` as octets that nobody else can change; views and byte arrays are copied.

    Raises:
        TypeError: `frames` is no sequence (an iterator can be read only once), or an item is not octets.
    """
    if not isinstance(frames, Sequence):
        raise TypeError(f"a sequence of frames wanted, not {type(frames).__name__}")
    return [as_octets(frame) for frame in frames]


def unsigned(value: SupportsIndex, octets: int) -> bytes:
    """Return an integer as so many octets, most significant first; as `struct` does for the widths it has.

    Raises:
        OverflowError: it is negative, or too large for them.
        TypeError: it is no integer.
    """
    return index(value).to_bytes(octets, "big")


def view_of(octets: Any) -> Any:
    """Return a read-only view of octets, whose slices take their place without being copied.

    It passes for `bytes` with a type checker, as the fields do that it ends up in.
    """
    return memoryview(octets).toreadonly()


def terminated(text: str, strict: bool) -> bytes:
    """Return the octets of a text that the letter ends with NUL: with it under `strict`, else without.

    Raises:
        ValueError: NUL stands in the text.
    """
    if "\0" in text:
        raise ValueError("NUL inside a text")
    return text.encode() + b"\0" if strict else text.encode()


def without_nul(text: str) -> str:
    """Return `text` less one NUL at its end.

    Raises:
        ValueError: NUL stands elsewhere in it.
    """
    text = text.removesuffix("\0")
    if "\0" in text:
        raise ValueError("NUL inside a text")
    return text


def index_of(frame: bytes | memoryview, end: bytes, at: int) -> int:
    """Return where the octets `end` stand first, from octet `at` on, without copying more than twice as much.

    Raises:
        ValueError: they stand nowhere.
    """
    width = 64
    while (found := bytes(frame[at : at + width]).find(end)) < 0:
        if at + width >= len(frame):
            raise ValueError("the octets that end a text are missing")
        width *= 2
    return at + found


def padded(text: str, octets: int, fill: bytes) -> bytes:
    """Return a text with padding up to so many octets.

    Raises:
        ValueError: the text is longer, or ends as padding does.
    """
    raw = text.encode()
    if len(raw) > octets or raw.endswith(fill):
        raise ValueError("a text that its place cannot hold")
    return raw.ljust(octets, fill)


def sized(octets: bytes, forms: tuple[tuple[bytes, int], ...]) -> bytes:
    """Return octets with their number in front: in the first form (tag, octets of the number) that can hold it.

    A form without a tag is not used where its number would begin as another's tag.

    Raises:
        OverflowError: no form can hold the number.
    """
    for tag, width in forms:
        if len(octets) < 256**width:
            number = len(octets).to_bytes(width, "big")
            if tag or not any(other and number.startswith(other) for other, _ in forms):
                return tag + number + octets
    raise OverflowError("more octets than their size can say")
