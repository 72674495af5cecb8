# Written by specwire from generator/support/selection.py. Do not edit; change that file and run `make generate`.
"""Message selection by the octets at a protocol's selectors.

If no message matches them, the constants with which all messages begin are checked first: a foreign
signature is a different fault than an unknown number after the right signature.
"""

from __future__ import annotations

import msgspec
from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Keyword,
    MessageLayout,
    ProtocolLayout,
    Type,
)
from specwire.generated.patterns import explain_pattern, match_pattern
from specwire.generated.shapes import class_of, explain_shape
from specwire.generated.words import frames_word, one_of, show


def find_message(layout: ProtocolLayout, frames: list[bytes], sender: str | None = None) -> MessageLayout:
    """Return the layout of the message that `frames` claim to be.

    `sender` is the role that sent them, if known.

    Raises:
        DecodeError: no message matches the octets at the selectors.
    """
    if layout.shapes:
        try:
            name = class_of(layout, frames, sender)
        except LookupError:
            raise explain_shape(layout, frames, sender) from None
        return next(message for message in layout.messages if message.class_name == name)
    if any(message.patterns for message in layout.messages):
        return _find_pattern(layout, frames)
    found = tuple(_frame_at(frames, index, octets) for index, octets in layout.selectors)
    for message in layout.messages:
        if found in message.tags:
            return message
    raise _unknown(layout, frames)


def _find_pattern(layout: ProtocolLayout, frames: list[bytes]) -> MessageLayout:
    if not frames:
        raise DecodeError(
            protocol=layout.protocol, message_name=None, field=None, frame=None, offset=None, kind="frames",
            expected="a frame", found=frames_word(frames), rule=layout.edition,
        )  # fmt: skip
    found = match_pattern(layout, frames[0])
    if found is None:
        raise explain_pattern(layout, frames[0])
    return found[0]


def spellings(type: Type) -> tuple[bytes, ...]:
    """Return the octets that a constant or keyword may have; nothing for other types."""
    match type:
        case Constant(octets=octets):
            return (octets,)
        case Keyword(options=options):
            return tuple(option.encode() for option in options)
    return ()


class _Tag(msgspec.Struct, frozen=True):
    """Constant that a selector covers, and its position."""

    field: Field
    frame: int
    offset: int
    spellings: tuple[bytes, ...]
    whole: bool
    """The constant fills its frame."""

    def found(self, frames: list[bytes]) -> bytes | None:
        """Return the octets at its position, None if the frame is missing."""
        if self.whole:
            return _frame_at(frames, self.frame, None)
        octets = _frame_at(frames, self.frame, self.offset + len(self.spellings[0]))
        return None if octets is None else octets[self.offset :]


def _frame_at(frames: list[bytes], index: int, octets: int | None) -> bytes | None:
    if not -len(frames) <= index < len(frames):
        return None
    return frames[index][:octets]


def _unknown(layout: ProtocolLayout, frames: list[bytes]) -> DecodeError:
    """Return the error for an unknown tag, or for known tags that do not belong together."""
    rows = list(zip(*(_tags(layout, message) for message in layout.messages), strict=False))
    for number, row in enumerate(rows):
        options = tuple(dict.fromkeys(option for tag in row for option in tag.spellings))
        found = row[0].found(frames)
        if found not in options:
            # The last tag is the message number; those before it identify the protocol.
            return _no_such_tag(layout, frames, row[0], options, number == len(rows) - 1)
    *tags, last = [row[0] for row in rows]
    others = [f"{tag.field.name} {show(tag.found(frames) or b'')}" for tag in tags]
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=last.field.name, frame=last.frame % len(frames),
        offset=last.offset, kind="tag", expected=f"one that goes with {' and '.join(others)}",
        found=show(last.found(frames) or b""),
        rule=f"{layout.edition} {last.field.rule}",
    )  # fmt: skip


def _no_such_tag(
    layout: ProtocolLayout, frames: list[bytes], tag: _Tag, options: tuple[bytes, ...], own: bool
) -> DecodeError:
    found = tag.found(frames)
    kind: Kind = "tag" if own else "constant"
    if found is None:
        kind = "frames"
    elif own and not tag.whole and len(found) < len(options[0]):
        kind = "length"
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=tag.field.name,
        frame=None if found is None else tag.frame % len(frames), offset=None if found is None else tag.offset,
        kind=kind, expected=f"a frame with {tag.field.name}" if found is None else one_of(options),
        found=frames_word(frames) if found is None else show(found),
        rule=f"{layout.edition} {tag.field.rule}",
    )  # fmt: skip


def _tags(layout: ProtocolLayout, message: MessageLayout) -> list[_Tag]:
    """Return the constants of a message that the selectors cover."""
    tags: list[_Tag] = []
    for index, octets in layout.selectors:
        part = message.parts[index]
        offset = 0
        for field in part.fields if isinstance(part, Frame) else ():
            options = spellings(field.type)
            if not options or (octets is not None and offset >= octets):
                break
            tags.append(_Tag(field, index, offset, options, octets is None))
            offset += len(options[0])
    return tags
