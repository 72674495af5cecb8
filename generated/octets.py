# Written by specwire from generator/support/octets.py. Do not edit; change that file and run `make generate`.
"""Values to octets and back, where `str` and `bytes` alone would take too much."""

from __future__ import annotations

from collections.abc import Sequence


def as_octets(value: object) -> bytes:
    """Return octets as they go on the wire.

    Raises:
        TypeError: `value` is not bytes, bytearray or memoryview.
    """
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
