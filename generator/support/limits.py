"""Limits of the decoders, and conversion of frames to the form that decoders read.

Frames become `bytes`, or views if nothing is copied. The limits bound the memory and time that a
peer can make a program spend on one message. They are checked before decoding; the caller can pass
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from specwire.generated.errors import DecodeError
from specwire.generated.layout import ProtocolLayout
from specwire.generated.words import number_of, octets_word

MAX_FRAMES = 65_536
"""Default for the largest number of frames of one message."""

MAX_OCTETS = 2**31
"""Default for the largest number of octets of one message, all frames together."""

if TYPE_CHECKING:

    class _Buffer(Protocol):
        """Object that supports the buffer protocol."""

        def __buffer__(self, flags: int, /) -> memoryview: ...

    class _Frame(Protocol):
        """`zmq.Frame` for type checkers, whose stubs do not show that it is a buffer."""

        @property
        def buffer(self) -> memoryview: ...

    Frames = Sequence[_Buffer | _Frame]
else:
    Frames = Sequence[bytes | bytearray | memoryview]
"""ZeroMQ frames of one message, without the routing id of a ROUTER."""


def admit(
    layout: ProtocolLayout,
    frames: Frames,
    copy: bool,
    max_frames: int,
    max_octets: int,
    heads: tuple[int, ...] = (),
) -> Sequence[Any]:
    """Return `frames` in the form that decoders read: `bytes`, or read-only views without `copy`.

    The frames at `heads` are always returned as `bytes`: they identify the message and hold no
    field that could be a view.

    Raises:
        DecodeError: the frames exceed a limit.
        TypeError: `frames` is no sequence (an iterator can be read only once), or an item is not
            octets.
    """
    if (type(frames) is list or type(frames) is tuple) and len(frames) <= max_frames:
        left = max_octets
        for frame in frames:
            if type(frame) is not bytes:
                break
            left -= len(frame)
        else:
            if left >= 0:
                return frames
    return _convert(layout, frames, copy, max_frames, max_octets, heads)


def _convert(
    layout: ProtocolLayout,
    frames: Frames,
    copy: bool,
    max_frames: int,
    max_octets: int,
    heads: tuple[int, ...],
) -> Sequence[Any]:
    """Return frames that `admit` cannot pass through unchanged."""
    if not isinstance(frames, Sequence):
        raise TypeError(f"a sequence of frames wanted, not {type(frames).__name__}")
    if len(frames) > max_frames:
        _refuse(layout, None, number_of(max_frames, "frame"), str(len(frames)))
    given: Sequence[Any] = frames
    views = [memoryview(frame) for frame in given]
    octets = 0
    for number, view in enumerate(views):
        octets += view.nbytes
        if octets > max_octets:
            found = f"{octets} up to the end of this one"
            _refuse(layout, number, f"{octets_word(max_octets)} in all frames", found)
    copied = range(len(given)) if copy else {head % len(given) for head in heads if given}
    return [
        frame if type(frame) is bytes else bytes(view) if number in copied else _lent(view)
        for number, (frame, view) in enumerate(zip(given, views, strict=True))
    ]


def _lent(view: memoryview) -> memoryview | bytes:
    """Return a read-only view of single octets; a copy if the octets are not contiguous."""
    if view.format == "B" and view.ndim == 1 and view.c_contiguous:
        return view.toreadonly()
    if view.nbytes and view.c_contiguous:
        return view.cast("B").toreadonly()
    return bytes(view)


def _refuse(layout: ProtocolLayout, frame: int | None, most: str, found: str) -> NoReturn:
    raise DecodeError(
        protocol=layout.protocol, message_name=None, field=None, frame=frame, offset=None, kind="limit",
        expected=f"at most {most}", found=found, rule=layout.edition,
    )  # fmt: skip
