"""Why frames are no message of a protocol: the slow path that follows a failed decode.

`explain_decode` walks the frames with the protocol's layout and returns the first fault: message, field
with list index, frame, octet. `check_letter` does the same walk for ``strict``, where the grammar's
character classes and the demands of the prose count too. Nothing here is fast, and nothing allocates by
a number that the peer sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NoReturn

from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Pairs,
    ProtocolLayout,
    Rest,
    Span,
    Stack,
    Text,
    Type,
)

Octetlike = bytes | memoryview


def explain_decode(layout: ProtocolLayout, frames: Sequence[Octetlike], strict: bool = False) -> DecodeError:
    """Return the error that says what is wrong with `frames`."""
    try:
        check_letter(layout, frames, strict=strict)
    except DecodeError as error:
        return error
    # Both paths are tested to agree; this sentence is for the day when they do not.
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=None, frame=None, offset=None, kind="frames",
        expected="frames that both readings of the grammar accept", found="a disagreement between them; please report it",
        rule=layout.edition,
    )  # fmt: skip


def check_letter(layout: ProtocolLayout, frames: Sequence[Octetlike], *, strict: bool = True) -> None:
    """Walk over `frames`; with `strict` the letter of the specification counts.

    Raises:
        DecodeError: the first fault.
    """
    octets = [bytes(frame) for frame in frames]
    message = _find_message(layout, octets)
    _Walk(layout, message, octets, strict).message()


def _find_message(layout: ProtocolLayout, frames: list[bytes]) -> MessageLayout:
    """Return the layout of the message that the frames claim to be."""
    found = tuple(_select(frames, index, octets) for index, octets in layout.selectors)
    for message in layout.messages:
        if found in message.tags:
            return message
    raise _unknown(layout, frames)


def _select(frames: list[bytes], index: int, octets: int | None) -> bytes | None:
    if not -len(frames) <= index < len(frames):
        return None
    return frames[index][:octets]


def _unknown(layout: ProtocolLayout, frames: list[bytes]) -> DecodeError:
    """Say which constant in front of the message's own the frames miss, or that no message has the number.

    The constants that all messages begin with are checked by name first: a foreign signature is another
    finding than an unknown number after the right one.
    """
    heads = [list(_tag_fields(layout, message)) for message in layout.messages]
    for position in range(min(len(head) for head in heads)):
        same = [head[position] for head in heads]
        index, start, field, _ = same[0]
        options = tuple(dict.fromkeys(option for entry in same for option in entry[3]))
        frame = frames[index] if -len(frames) <= index < len(frames) else None
        width = len(options[0])
        whole = layout.selectors[0][1] is None
        found = None if frame is None else frame if whole else frame[start : start + width]
        if found in options:
            continue
        alike = len({entry[2].name for entry in same}) == 1 and (len(options) == 1 or whole)
        own = not alike or (len(options) > 1 and not whole) or (whole and position == len(heads[0]) - 1)
        kind: Kind = "tag" if own else "constant"
        if frame is None:
            kind = "frames"
        elif found is not None and len(found) < width and not whole and own:
            kind = "length"
        return DecodeError(
            protocol=layout.protocol, message_name=None, field=field.name,
            frame=None if frame is None else index % len(frames), offset=None if frame is None else start, kind=kind,
            expected=_one_of(options), found=_frames_word(frames) if found is None else _show(found),
            rule=f"{layout.edition} {field.rule}",
        )  # fmt: skip
    index, _ = layout.selectors[-1]
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=None, frame=index % len(frames), offset=0, kind="tag",
        expected="a header and a command that go together", found=" and ".join(_show(frames[selector]) for selector, _ in layout.selectors),
        rule=layout.edition,
    )  # fmt: skip


def _tag_fields(
    layout: ProtocolLayout, message: MessageLayout
) -> list[tuple[int, int, Field, tuple[bytes, ...]]]:
    """The constants that the selectors cover: frame, offset, field, spellings."""
    covered: list[tuple[int, int, Field, tuple[bytes, ...]]] = []
    for index, octets in layout.selectors:
        part = message.parts[index]
        if not isinstance(part, Frame):
            continue
        offset = 0
        for field in part.fields:
            if octets is not None and offset >= octets:
                break
            options = _spellings(field.type)
            if not options:
                break
            covered.append((index, offset, field, options))
            offset += len(options[0])
    return covered


def _spellings(type: Type) -> tuple[bytes, ...]:
    match type:
        case Constant(octets=octets):
            return (octets,)
        case Keyword(options=options):
            return tuple(option.encode() for option in options)
    return ()


class _Walk:
    """One pass over the frames of one message: where we are, for the error that may come."""

    def __init__(
        self, layout: ProtocolLayout, message: MessageLayout, frames: list[bytes], strict: bool
    ) -> None:
        self.layout = layout
        self.layout_of = message
        self.frames = frames
        self.strict = strict
        self.index = 0
        self.field: Field | None = None
        self.path = ""

    def message(self) -> None:
        """Check every part, then that no frame is left."""
        flags = self._flags()
        if flags is not None:
            self._check_flags(flags)
        following = self._required_after()
        for part, after in zip(self.layout_of.parts, following, strict=True):
            self.field, self.path = None, part.name
            if isinstance(part, Rest):
                for number in range(len(self.frames) - self.index):
                    self._element(part.field, number)
                continue
            if self._present(part, flags, after):
                self._part(part)
            elif self.strict and part.letter == "required":
                self._refuse("frames", f"the part {part.name}", "no such part", None)
        if self.index < len(self.frames):
            self.field, self.path = None, ""
            self._refuse("frames", _frames_word(self.frames[: self.index]), str(len(self.frames)), None)

    def _part(self, part: Frame | Stack) -> None:
        if self.strict and part.letter == "forbidden":
            self._refuse("frames", f"no {part.name}", "one", None)
        if isinstance(part, Frame):
            self._need_frame(f"a frame with {part.name}")
            self._frame(part)
            self.index += 1
            return
        if b"" not in self.frames[self.index :]:
            self.index = len(self.frames)
            self._need_frame(f"an empty frame that ends {part.name}")
        for number in range(self.frames.index(b"", self.index) - self.index):
            self._element(part.field, number)
        self.index += 1

    def _element(self, field: Field, number: int) -> None:
        self.field, self.path = field, f"{field.name}[{number}]"
        self._whole(field.type)
        self.index += 1

    def _need_frame(self, what: str) -> None:
        if self.index >= len(self.frames):
            self._refuse("frames", what, _frames_word(self.frames), None)

    def _required_after(self) -> list[int]:
        """For each part, how many frames the parts after it need at least."""
        needs: list[int] = []
        total = 0
        for part in reversed(self.layout_of.parts):
            needs.append(total)
            if not isinstance(part, Rest) and part.presence.kind == "always":
                total += 1
        return needs[::-1]

    def _present(self, part: Frame | Stack, flags: int | None, after: int) -> bool:
        match part.presence.kind:
            case "announced":
                return flags is not None and flags & part.presence.mask == part.presence.value
            case "counted":
                return self.index < len(self.frames) - after
        return True

    def _flags(self) -> int | None:
        """Return the flags octet, None for a protocol without; the frame that holds it must be there."""
        for position, part in enumerate(self.layout_of.parts):
            if not isinstance(part, Frame):
                continue
            offset = 0
            for field in part.fields:
                if field.flags:
                    return self._peek_flags(part, position, field, offset)
                offset += _fixed_size(field.type) or 0
        return None

    def _peek_flags(self, part: Frame, position: int, field: Field, offset: int) -> int:
        # Flags that end the message are found from its end: how many frames come before is theirs to say.
        last = position == len(self.layout_of.parts) - 1
        self.index = len(self.frames) - 1 if last else position
        frame = self.frames[self.index]
        if len(frame) <= offset:
            self.field, self.path = field, field.name
            self._refuse("length", "1 octet", _count(len(frame) - offset), offset)
        self.index = 0
        return frame[offset]

    def _check_flags(self, flags: int) -> None:
        """Bits that announce a part that the message has not, or half of what announces one."""
        allowed: dict[int, set[int]] = {}
        for part in self.layout_of.parts:
            if isinstance(part, Rest) or not part.presence.mask:
                continue
            values = allowed.setdefault(part.presence.mask, set())
            values.add(part.presence.value)
            if part.presence.kind == "announced":
                values.add(0)
        known = 0
        for mask, values in allowed.items():
            known |= mask
            if flags & mask not in values:
                self._refuse_flags(flags & mask, " or ".join(f"0x{value:02x}" for value in sorted(values)))
        if flags & self.layout.announcing & ~known:
            self._refuse_flags(flags & self.layout.announcing & ~known, "0x00: the message has no such part")

    def _refuse_flags(self, found: int, expected: str) -> NoReturn:
        for position, part in enumerate(self.layout_of.parts):
            if isinstance(part, Frame) and (field := next((f for f in part.fields if f.flags), None)):
                last = position == len(self.layout_of.parts) - 1
                self.index = len(self.frames) - 1 if last else position
                self.field, self.path = field, field.name
                offset = sum(_fixed_size(f.type) or 0 for f in part.fields[: part.fields.index(field)])
                self._refuse("range", expected, f"0x{found:02x}", offset)
        raise AssertionError("flags without a flags field")

    def _frame(self, part: Frame) -> None:
        position = 0
        for field in part.fields:
            self.field, self.path = field, field.name
            if len(part.fields) == 1 and _fills_frame(field.type):
                self._whole(field.type)
                return
            position = self._value(field.type, position)
        if position < len(self.frames[self.index]):
            self.field, self.path = None, ""
            left = len(self.frames[self.index]) - position
            self._refuse(
                "trailing", "the end of the frame", f"{left} more octet{'s' if left > 1 else ''}", position
            )

    def _whole(self, type: Type) -> None:
        """Check a value that fills its frame."""
        frame = self.frames[self.index]
        match type:
            case Keyword(options=options):
                if frame not in _spellings(type):
                    self._refuse("constant", _one_of(tuple(o.encode() for o in options)), _show(frame), 0)
            case Constant():
                if frame != type.octets:
                    self._refuse("constant", type.words, _show(frame), 0)
            case Octets(minimum=minimum):
                if len(frame) < minimum:
                    self._refuse("length", f"at least {_count(minimum)}", _count(len(frame)), 0)
            case Json():
                self._text(frame, 0)
                self._json(frame)
            case Text():
                self._checked_text(type, frame, 0)
            case _:
                self._value(type, 0)

    def _value(self, type: Type, at: int) -> int:
        """Check the value at octet `at`; return where the next one begins."""
        match type:
            case Constant(octets=octets, words=words):
                found = self.frames[self.index][at : at + len(octets)]
                if found != octets:
                    short = octets.startswith(found) and len(found) < len(octets)
                    shown = _count(len(found)) if short else _show(found)
                    self._refuse("length" if short else "constant", words, shown, at)
                return at + len(octets)
            case Integer(octets=octets, members=members):
                value = int.from_bytes(self._take(at, octets), "big")
                if members and value not in members:
                    self._refuse("range", " or ".join(map(str, members)), str(value), at)
                return at + octets
            case Text(span=span):
                start, raw = self._spanned(span, at)
                self._checked_text(type, raw, start)
                return start + len(raw)
            case Octets(span=span, minimum=minimum):
                start, raw = self._spanned(span, at)
                if len(raw) < minimum:
                    self._refuse("length", f"at least {_count(minimum)}", _count(len(raw)), at)
                return start + len(raw)
            case ListOf():
                return self._list(type, at)
            case Pairs():
                return self._pairs(type, at)
            case Json() | Keyword():
                raise AssertionError("fills a frame")

    def _list(self, type: ListOf, at: int) -> int:
        name = self.path
        count, at = self._count(type.count_octets, at)
        for index in range(count):
            self.path = f"{name}[{index}]"
            at = self._value(type.element, at)
        return at

    def _pairs(self, type: Pairs, at: int) -> int:
        name = self.path
        count, at = self._count(type.count_octets, at)
        for index in range(count):
            self.path = f"{name}[{index}]" + ("" if type.split else ".name")
            start = at
            at = self._value(type.name, at)
            if type.split:
                raw = self.frames[self.index][start:at]
                if b"=" not in raw[type.name.span.octets :]:
                    self._refuse("text", "name=value", _show(raw[type.name.span.octets :]), start)
            elif type.value is not None:
                self.path = f"{name}[{index}].value"
                at = self._value(type.value, at)
        return at

    def _count(self, octets: int, at: int) -> tuple[int, int]:
        count = int.from_bytes(self._take(at, octets), "big")
        left = len(self.frames[self.index]) - at - octets
        if count > left:
            self._refuse("count", f"at most {left} entries in the octets that are left", str(count), at)
        return count, at + octets

    def _spanned(self, span: Span, at: int) -> tuple[int, bytes]:
        if span.kind == "rest":
            return at, self.frames[self.index][at:]
        if span.kind == "fixed":
            return at, self._take(at, span.octets)
        length = int.from_bytes(self._take(at, span.octets), "big")
        at += span.octets
        return at, self._take(at, length)

    def _take(self, at: int, octets: int) -> bytes:
        found = self.frames[self.index][at : at + octets]
        if len(found) < octets:
            self._refuse("length", _count(octets), str(len(found)), at)
        return found

    def _checked_text(self, type: Text, raw: bytes, at: int) -> None:
        self._text(raw, at)
        if type.terminated:
            ended = raw.endswith(b"\0")
            raw = raw[:-1] if ended else raw
            if self.strict and not ended:
                self._refuse("text", "a NUL at the end", "none", at + len(raw))
            if b"\0" in raw:
                self._refuse("text", "text without NUL", "0x00", at + raw.index(b"\0"))
        if self.strict and type.pattern is not None and not re.fullmatch(type.pattern, raw, re.DOTALL):
            fits = re.match(type.pattern, raw, re.DOTALL)
            good = fits.end() if fits else 0
            found = _show(raw[good : good + 1]) if good < len(raw) else "the end"
            self._refuse("text", f"characters that the rule {self._rule()} allows", found, at + good)

    def _text(self, raw: bytes, at: int) -> None:
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self._refuse("text", "UTF-8", _show(raw[error.start : error.end]), at + error.start)

    def _json(self, raw: bytes) -> None:
        if not self.strict:
            return
        try:
            value = json.loads(raw.removesuffix(b"\0"))
        except (ValueError, RecursionError) as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else 0
            self._refuse("text", "JSON", _show(raw[at : at + 8]), at)
        if not isinstance(value, dict):
            self._refuse("text", "a JSON object", _show(raw[:8]), 0)

    def _rule(self) -> str:
        return self.field.rule if self.field else self.layout_of.name

    def _refuse(self, kind: Kind, expected: str, found: str, at: int | None) -> NoReturn:
        raise DecodeError(
            protocol=self.layout.protocol, message_name=self.layout_of.name, field=self.path or None,
            frame=min(self.index, len(self.frames)) if self.frames else None, offset=at, kind=kind,
            expected=expected, found=found, rule=f"{self.layout.edition} {self._rule()}",
        )  # fmt: skip


def _fills_frame(type: Type) -> bool:
    if isinstance(type, Text | Octets):
        return type.span.kind == "rest"
    return isinstance(type, Keyword | Json | Constant)


def _fixed_size(type: Type) -> int | None:
    match type:
        case Constant(octets=octets):
            return len(octets)
        case Integer(octets=octets):
            return octets
        case Octets(span=Span(kind="fixed", octets=octets)):
            return octets
    return None


def _frames_word(frames: list[bytes]) -> str:
    return f"{len(frames)} frame{'' if len(frames) == 1 else 's'}"


def _count(octets: int) -> str:
    return f"{octets} octet{'' if octets == 1 else 's'}"


def _one_of(options: tuple[bytes, ...]) -> str:
    return " or ".join(_show(option) for option in options)


def _show(octets: bytes) -> str:
    """Octets as a person reads them: text in quotes where it is text, else hexadecimal, never long."""
    if not octets:
        return "nothing"
    if len(octets) > 2 and all(0x20 <= octet <= 0x7E for octet in octets):
        text = octets.decode("ascii")
        return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"
    shown = octets[:16].hex()
    return f"0x{shown}" if len(octets) <= 16 else f"0x{shown}... ({_count(len(octets))})"
