"""Take the content out of captured messages, and leave messages that still decode.

The message is decoded, the fields that are content are replaced, and it is encoded again, so that lengths and counts in
it fit what is left. Names, numbers and headers stay: they are what a capture is for. What does not decode, and what is
of a protocol whose profile names no such fields (`redact`), may be content in any place: there each frame is treated as content, and the
message stays as one that does not decode.

A digest is ``sha256:`` with 64 hexadecimal digits, a space and the number of octets; equal contents have equal
digests, and a short content can be found again by trying. An empty content stays empty under every policy, because
protocols give it a meaning of its own (the end of a file).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.capture.policy import Payload
from specwire.runtime.package_search import PackageError
from specwire.runtime.packages import load_package, load_part

Reduce = Callable[[Sequence[bytes]], tuple[bytes, ...]]


def make_reducer(protocol: str, payload: Payload) -> Reduce | None:
    """Return what takes the frames of a message and returns those that are written; None where they are the same."""
    if payload.kind == "keep":
        return None
    fields = redacted_fields(protocol)
    if fields is None:
        return partial(_reduce_frames, payload)
    return partial(_reduce_message, payload, load_package(protocol).decode, fields)


def redacted_fields(protocol: str) -> Mapping[str, Sequence[str]] | None:
    """Return the attributes with content by message class, as the profile names them; None if it does not."""
    try:
        redact = load_part(protocol, "layout").LAYOUT.redact
    except PackageError:
        return None
    return None if redact is None else dict(redact)


def _reduce_message(
    payload: Payload,
    decode: Callable[..., Any],
    fields: Mapping[str, Sequence[str]],
    frames: Sequence[bytes],
) -> tuple[bytes, ...]:
    try:
        message = decode(frames)
        names = fields.get(type(message).__name__, ())
        content = {name: value for name in sorted(names) if (value := getattr(message, name, None))}
        if not content:
            return tuple(frames)
        left = {name: _reduce_value(payload, value) for name, value in content.items()}
        return tuple(message.replace(**left).encode())
    except (DecodeError, EncodeError):
        return _reduce_frames(payload, frames)


def _reduce_value(payload: Payload, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_reduce_value(payload, part) for part in value)
    if isinstance(value, str):
        return reduce_octets(payload, value.encode()).decode(errors="ignore")
    return reduce_octets(payload, value)


def _reduce_frames(payload: Payload, frames: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(reduce_octets(payload, frame) for frame in frames)


def reduce_octets(payload: Payload, octets: bytes) -> bytes:
    """Return what is written of one content."""
    match payload.kind:
        case "keep":
            return octets
        case "cut":
            return octets[: payload.octets]
        case "omit":
            return b""
        case "hash":
            return f"sha256:{sha256(octets).hexdigest()} {len(octets)}".encode() if octets else octets
