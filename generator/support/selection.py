"""Choice of the message that frames claim to be, and the reason if they are none.

Octets at fixed positions, the *selectors*, tell the messages of a protocol apart; or patterns of
how the first frame begins; or shapes of the whole message (see `specwire.generated.shapes`).

A pattern is hexadecimal, with ``?`` for any half octet. The longest matching pattern decides. So a
message whose name is open matches only if no message with a fixed name does.

If no message matches, the constants with which all messages begin are checked first: a foreign
signature is a different fault than an unknown number after the right signature.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import Field, MessageLayout, ProtocolLayout
from specwire.generated.named_plan import NamedMessage, NamedPlan, Value, values
from specwire.generated.octets import count_fitting, pattern_start
from specwire.generated.plan import Expect, Number, Sized, Word, fixed_octets
from specwire.generated.shapes import class_of, explain_shape
from specwire.generated.words import frames_word, octets_word, one_of, one_start_of, show


def find_message(plan: NamedPlan, frames: list[bytes], sender: str | None = None) -> NamedMessage:
    """Return the message that `frames` claim to be; `sender` is the role that sent them, if known.

    Raises:
        DecodeError: no message matches.
    """
    return plan.messages[_class_of(plan, frames, sender)]


def _class_of(plan: NamedPlan, frames: list[bytes], sender: str | None) -> str:
    layout = plan.layout
    if layout.shapes:
        try:
            return class_of(layout, frames, sender)
        except LookupError:
            raise explain_shape(layout, frames, sender) from None
    if any(message.patterns for message in layout.messages):
        return _find_pattern(plan, frames).class_name
    comparable = _comparable(layout, frames)
    pieces = tuple(_frame_at(comparable, index, octets) for index, octets in layout.selectors)
    for message in layout.messages:
        if pieces in message.tags:
            return message.class_name
    raise _unknown(plan, frames)


def _comparable(layout: ProtocolLayout, frames: list[bytes]) -> list[bytes]:
    """Return frames with letters in lower case if the protocol compares them so."""
    return [frame.lower() for frame in frames] if layout.folded else frames


# Patterns


def match_pattern(layout: ProtocolLayout, octets: bytes) -> tuple[MessageLayout, str] | None:
    """Return the message with the longest pattern that matches `octets`, and the pattern, or None."""
    (octets,) = _comparable(layout, [octets])
    fitting = [
        (message, pattern)
        for message in layout.messages
        for pattern in message.patterns
        if count_fitting(pattern, octets) == len(pattern) // 2
    ]
    return max(fitting, key=lambda row: len(row[1]), default=None)


def _find_pattern(plan: NamedPlan, frames: list[bytes]) -> MessageLayout:
    layout = plan.layout
    if not frames:
        raise DecodeError(
            protocol=layout.protocol, message_name=None, field=None, frame=None, offset=None, kind="frames",
            expected="a frame", found=frames_word(frames), rule=layout.edition,
        )  # fmt: skip
    found = match_pattern(layout, frames[0])
    if found is None:
        raise _explain_pattern(plan, frames[0])
    return found[0]


def _explain_pattern(plan: NamedPlan, frame: bytes) -> DecodeError:
    """Return the error for a first frame that matches no pattern: where the nearest patterns fail."""
    rows = [(message, pattern) for message in plan.messages.values() for pattern in message.layout.patterns]
    (octets,) = _comparable(plan.layout, [frame])
    at = max(count_fitting(pattern, octets) for _, pattern in rows)
    nearest = [(message, pattern) for message, pattern in rows if count_fitting(pattern, octets) == at]
    field, start, size = _field_at(*nearest[0], at)
    options = tuple(dict.fromkeys(pattern_start(pattern[2 * start :]) for _, pattern in nearest))
    expected, found = one_start_of(options), show(frame[start : start + max(map(len, options)) // 2])
    if at == len(frame) and size and not all(options):
        # The pattern allows any octet here; the frame is too short.
        expected, found = octets_word(size), str(len(frame) - start)
    return DecodeError(
        protocol=plan.layout.protocol, message_name=None, field=field.name, frame=0, offset=start,
        kind="length" if at == len(frame) else "tag", expected=expected, found=found,
        rule=f"{plan.layout.edition} {field.rule}",
    )  # fmt: skip


def _field_at(message: NamedMessage, pattern: str, at: int) -> tuple[Field, int, int | None]:
    """Return the field of octet `at` of the first frame, where it begins in the pattern, and its octets.

    The number of octets is None if it varies.
    """
    start, size, slot = 0, None, ""
    for op in values(message.parts[0].body):
        slot, size = op.slot.removesuffix("#"), _octets_of(op, pattern[2 * start :])
        if size is None or at < start + size:
            break
        start += size
    return message.fields[slot], start, size


def _octets_of(op: Value, pattern: str) -> int | None:
    """Return how many octets of a pattern an operation covers, None if its size varies."""
    if isinstance(op, Sized):
        forms = (len(tag) + octets for tag, octets in op.forms if pattern.startswith(tag.hex()))
        return next(forms, None)
    is_prefix = op.slot.endswith("#") and not (isinstance(op, Number) and op.bits)
    return None if is_prefix else fixed_octets(op)


# Octets at the selectors


class _Tag(msgspec.Struct, frozen=True):
    """Constant that a selector covers, and its position."""

    field: Field
    frame: int
    offset: int
    spellings: tuple[bytes, ...]
    folded: bool
    """Letters are read in either case."""
    whole: bool
    """The constant fills its frame."""

    def fits(self, frames: list[bytes], spellings: tuple[bytes, ...]) -> bool:
        """Return whether one of `spellings` is at its position."""
        found = self.found(frames)
        if found is None or not self.folded:
            return found in spellings
        return found.lower() in [spelling.lower() for spelling in spellings]

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


def _unknown(plan: NamedPlan, frames: list[bytes]) -> DecodeError:
    """Return the error for an unknown tag, or for known tags that do not belong together."""
    layout = plan.layout
    rows = list(zip(*(list(_tags(layout, message)) for message in plan.messages.values()), strict=False))
    for number, row in enumerate(rows):
        options = tuple(dict.fromkeys(option for tag in row for option in tag.spellings))
        if not row[0].fits(frames, options):
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


def _tags(layout: ProtocolLayout, message: NamedMessage) -> Iterator[_Tag]:
    """Yield the constants of a message that the selectors cover."""
    for index, octets in layout.selectors:
        offset = 0
        for op in values(message.parts[index].body):
            options = _spellings(op)
            if not options or (octets is not None and offset >= octets):
                break
            yield _Tag(message.fields[op.slot], index, offset, options, layout.folded, octets is None)
            offset += len(options[0])


def _spellings(op: Value) -> tuple[bytes, ...]:
    """Return the octets that a constant or word may have; nothing for other operations."""
    match op:
        case Expect(octets=octets):
            return (octets,)
        case Word(options=options):
            return tuple(option.encode() for option in options)
    return ()
