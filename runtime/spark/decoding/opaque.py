"""Fields that are a whole frame of opaque octets at a place that the layout tells: Java has them and can take them itself.

Such a frame is counted from the first one where all frames before it are always there, else from the last one where
each frame behind it is there always or by the flags. What the flags announce is told by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from specwire.generated.layout import Field, Frame, MessageLayout, Octets, Part, Presence, Span

WHOLE = Span("rest")


def opaque_fields(message: MessageLayout) -> frozenset[str]:
    """Return the fields of a message that `take_opaque` gives."""
    return frozenset(field.name for _, field in _opaque(message))


def take_opaque(message: MessageLayout, frames: Column, flags: Column | None) -> Mapping[str, Column]:
    """Return the opaque fields of a row that is this message, by name, of its frames and its octet of flags."""
    return {field.name: _take(message.parts, at, frames, flags) for at, field in _opaque(message)}


def flags_of(message: MessageLayout) -> Field | None:
    """Return the field whose bits announce parts."""
    fields = (field for part in message.parts if isinstance(part, Frame) for field in part.fields)
    return next((field for field in fields if field.flags and not field.implied), None)


def _opaque(message: MessageLayout) -> Iterator[tuple[int, Field]]:
    """Yield the number of each part that is such a frame, and its field."""
    flagged = flags_of(message) is not None
    for at, part in enumerate(message.parts):
        if not (isinstance(part, Frame) and len(part.fields) == 1):
            continue
        (field,) = part.fields
        placed = _known(message.parts[:at], announced=False) or _known(
            message.parts[at + 1 :], announced=flagged
        )
        if (
            isinstance(field.type, Octets)
            and field.type.span == WHOLE
            and placed
            and _known([part], announced=flagged)
        ):
            yield at, field


def _known(parts: Sequence[Part], *, announced: bool) -> bool:
    """Whether each part is one frame that is always there, or `announced`."""
    kinds = ("always", "announced") if announced else ("always",)
    return all(isinstance(part, Frame) and part.presence.kind in kinds for part in parts)


def _take(parts: Sequence[Part], at: int, frames: Column, flags: Column | None) -> Column:
    part, behind = parts[at], parts[at + 1 :]
    assert isinstance(part, Frame)
    if _known(parts[:at], announced=False):
        frame = F.get(frames, F.lit(at))
    else:
        index = F.size(frames) - 1
        for other in behind:
            assert isinstance(other, Frame)
            index = index - (1 if _always(other) else _there(other.presence, flags).cast("int"))
        frame = F.get(frames, index)
    return frame if _always(part) else F.when(_there(part.presence, flags), frame)


def _always(part: Frame) -> bool:
    return part.presence.kind == "always"


def _there(presence: Presence, flags: Column | None) -> Column:
    assert flags is not None
    return flags.bitwiseAND(presence.mask) == presence.value
