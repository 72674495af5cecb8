"""Message selection by the shape of the whole message.

A shape says how each of the first frames begins, and how many frames there are. The shapes of a
protocol are ordered from most to least specific, and the first that matches is chosen. Shapes of
messages that the sender does not send are skipped. If two messages have the same shape, the sender
decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import ProtocolLayout, Shape
from specwire.generated.octets import count_fitting, count_open, pattern_atom, pattern_start
from specwire.generated.words import either, frames_word, octets_word, one_start_of, show


def class_of(layout: ProtocolLayout, frames: Sequence[bytes], sender: str | None = None) -> str:
    """Return the name of the class that `frames` match.

    A `sender` that is no role of the protocol excludes no message, and does not count as a known
    sender.

    Raises:
        LookupError: the frames match no message that `sender` sends, or only a known sender could
            decide.
    """
    for class_name, shape in layout.shapes:
        if fits(shape, frames, folded=layout.folded):
            if shape.needs_sender and sender is None:
                break
            if shape.may_be_from(sender, layout.roles):
                return class_name
    raise LookupError("no message looks so")


def explain_shape(layout: ProtocolLayout, frames: Sequence[bytes], sender: str | None) -> DecodeError:
    """Return the error for frames that match no message: where the nearest shapes fail."""
    fitting = list(_sent(layout, frames))
    if fitting:
        expected = " or ".join(f"{' or '.join(senders)} for {name}" for name, senders in fitting)
        return _error(layout, "tag", 0, f"a sender: {expected}", "none" if sender is None else repr(sender))
    comparable = [frame.lower() for frame in frames] if layout.folded else frames
    good = {name: _good(shape, comparable) for name, shape in layout.shapes}
    index = max(good.values())
    nearest = [shape for name, shape in layout.shapes if good[name] == index]
    options = [shape.frames[index] for shape in nearest if index < len(shape.frames)]
    if index < len(frames) and options and not any(_begins(*head, comparable[index]) for head in options):
        return _explain_head(layout, index, tuple(dict.fromkeys(options)), frames[index], comparable[index])
    counts = sorted({shape.least for shape in nearest})
    return _error(
        layout, "frames", None, f"{' or '.join(map(str, counts))} frames", frames_word(list(frames))
    )


def _explain_head(
    layout: ProtocolLayout, index: int, heads: Sequence[tuple[str, bool]], frame: bytes, comparable: bytes
) -> DecodeError:
    """Return the error for a frame with none of these heads; octets that are open in all are skipped."""
    skipped = min(count_open(octets) for octets, _ in heads)
    fitting = {
        (len(octets) // 2, whole)
        for octets, whole in heads
        if count_fitting(octets, comparable) == min(len(comparable), len(octets) // 2)
    }
    if skipped and fitting:
        sizes = [
            octets_word(size) if whole else f"at least {octets_word(size)}" for size, whole in sorted(fitting)
        ]
        return _error(layout, "length", index, either(sizes), str(len(frame)))
    starts = tuple(dict.fromkeys(pattern_start(octets[2 * skipped :]) for octets, _ in heads))
    found = frame[skipped : skipped + max(map(len, starts)) // 2] if skipped else frame
    return _error(layout, "tag", index, one_start_of(starts), show(found), skipped)


def _sent(layout: ProtocolLayout, frames: Sequence[bytes]) -> Iterator[tuple[str, list[str]]]:
    """Yield the classes that `frames` match, each with the senders for which they do."""
    known: set[str] = set()
    for class_name, shape in layout.shapes:
        senders = [sender for sender in shape.senders if sender not in known]
        if senders and fits(shape, frames, folded=layout.folded):
            known.update(senders)
            yield class_name, senders


def _error(
    layout: ProtocolLayout, kind: Kind, frame: int | None, expected: str, found: str, offset: int = 0
) -> DecodeError:
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=None, frame=frame,
        offset=None if frame is None else offset, kind=kind, expected=expected, found=found, rule=layout.edition,
    )  # fmt: skip


def fits(shape: Shape, frames: Sequence[bytes], *, folded: bool = False) -> bool:
    """Return whether frames match a shape, whoever sent them; if `folded`, with letters in either case."""
    count = len(frames)
    if count < shape.least or (shape.most is not None and count > shape.most):
        return False
    if folded:
        frames = [frame.lower() for frame in frames[: len(shape.frames)]]
    return _good(shape, frames) == len(shape.frames)


def _good(shape: Shape, frames: Sequence[bytes]) -> int:
    """Return how many frames of a shape match, from the first on."""
    for number, ((octets, whole), frame) in enumerate(zip(shape.frames, frames, strict=False)):
        if not _begins(octets, whole, frame):
            return number
    return min(len(shape.frames), len(frames))


def _begins(octets: str, whole: bool, frame: bytes) -> bool:
    return _expression(octets, whole).match(frame) is not None


@cache
def _expression(octets: str, whole: bool) -> re.Pattern[bytes]:
    """Return how a frame begins, as a regular expression."""
    text = "".join(pattern_atom(octets[at : at + 2]) for at in range(0, len(octets), 2))
    return re.compile((text + r"\Z" * whole).encode(), re.DOTALL)
