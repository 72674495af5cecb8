"""Hypothesis strategies for frames: those of messages, and damaged ones.

The damage is what happens on a wire and in faulty programs: a frame is truncated, an octet is
changed, octets are inserted or removed, a frame is lost, duplicated or reordered. Damaged frames
can still be a message of the same or another class. `malformed` draws only those that no decoder
accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message

TELLING = (0x00, 0x01, 0x02, 0x08, 0x3D, 0x7F, 0x80, 0xC3, 0xFF)
"""Octets at which parsing changes: flags, counts, NUL, ``=``, UTF-8."""


def encoded(messages: SearchStrategy[Message], *, strict: bool = False) -> SearchStrategy[list[bytes]]:
    """Draw the frames of messages."""
    return messages.map(lambda message: message.encode(strict=strict))


@st.composite
def mutated(draw: st.DrawFn, frames: SearchStrategy[list[bytes]]) -> list[bytes]:
    """Draw frames with one to three changes, never the original frames."""
    original = draw(frames)
    changed = list(original)
    for _ in range(draw(st.integers(1, 3))):
        change = draw(st.sampled_from(_CHANGES))
        change(draw, changed)
    return changed if changed != original else [*changed, b""]


def malformed(
    frames: SearchStrategy[list[bytes]], decode: Callable[..., Any], senders: Sequence[str] = ()
) -> SearchStrategy[list[bytes]]:
    """Draw those of `frames` that `decode` rejects, for each of `senders`."""

    def refused(found: list[bytes]) -> bool:
        for said in [{"sender": sender} for sender in senders] or [{}]:
            try:
                decode(found, **said)
            except DecodeError:
                continue
            return False
        return True

    return frames.filter(refused)


def _cut(draw: st.DrawFn, frames: list[bytes]) -> None:
    index = _index(draw, frames)
    frames[index] = frames[index][: _place(draw, frames[index])]


def _change_octet(draw: st.DrawFn, frames: list[bytes]) -> None:
    index = _index(draw, frames)
    at = _place(draw, frames[index])
    octet = draw(st.sampled_from(TELLING) | st.integers(0, 255))
    frames[index] = frames[index][:at] + bytes((octet,)) + frames[index][at + 1 :]


def _insert(draw: st.DrawFn, frames: list[bytes]) -> None:
    index = _index(draw, frames)
    at = _place(draw, frames[index])
    frames[index] = frames[index][:at] + draw(st.binary(min_size=1, max_size=4)) + frames[index][at:]


def _remove(draw: st.DrawFn, frames: list[bytes]) -> None:
    index = _index(draw, frames)
    at = _place(draw, frames[index])
    frames[index] = frames[index][:at] + frames[index][at + draw(st.integers(1, 4)) :]


def _drop_frame(draw: st.DrawFn, frames: list[bytes]) -> None:
    del frames[_index(draw, frames)]


def _add_frame(draw: st.DrawFn, frames: list[bytes]) -> None:
    frame = draw(st.sampled_from((b"", b"\0", *frames)) | st.binary(max_size=40))
    frames.insert(draw(st.integers(0, len(frames))), frame)


def _exchange(draw: st.DrawFn, frames: list[bytes]) -> None:
    one, other = _index(draw, frames), _index(draw, frames)
    frames[one], frames[other] = frames[other], frames[one]


_CHANGES = (_cut, _change_octet, _insert, _remove, _drop_frame, _add_frame, _exchange)


def _index(draw: st.DrawFn, frames: list[bytes]) -> int:
    """Draw the index of a frame; if there are no frames, first add an empty one."""
    if not frames:
        frames.append(b"")
    return draw(st.integers(0, len(frames) - 1))


def _place(draw: st.DrawFn, frame: bytes) -> int:
    """Draw the position of an octet; often one of the first, which hold tags, lengths and flags."""
    return draw(st.integers(0, min(len(frame), 20)) | st.integers(0, len(frame)))
