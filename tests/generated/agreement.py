"""The reference against the fast path: what Construct reads, the codec reads, and nothing else.

The declarations are interpreted by Construct and share no code with the codec, so where both accept the
same octets and find the same values, a mistake would have to be made twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import construct as cs

from specwire.generated.constructs import parse_frames
from specwire.generated.errors import DecodeError
from specwire.generated.layout import (
    Enclosing,
    Field,
    Frame,
    ListOf,
    MessageLayout,
    Pairs,
    ProtocolLayout,
    Record,
    Type,
    Union,
)
from specwire.generated.messages import Message
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import recorded

Frames = Sequence[bytes]

TAKEN_BY_CONSTRUCT = {
    "limit": "a declaration has no bound on the frames and octets of a message; a codec has, so that a peer "
    "cannot make it hold what the program has no room for",
}
"""Kinds of errors for frames that Construct takes all the same, each with the reason why that is right."""


def layout_of(module: ModuleType) -> ProtocolLayout:
    """Return a package's layout table."""
    layout = module.codec.LAYOUT
    assert isinstance(layout, ProtocolLayout)
    return layout


def message_layout(module: ModuleType, name: str) -> MessageLayout:
    """Return the layout of a message by its class name."""
    return next(entry for entry in layout_of(module).messages if entry.class_name == name)


def fields_of(entry: MessageLayout) -> Iterator[Field]:
    """Yield the fields that a message object has, what is implied left out."""
    for part in entry.parts:
        for field in part.fields if isinstance(part, Frame) else (part.field,):
            if not field.implied:
                yield field


@dataclass(frozen=True)
class Reading:
    """What a codec makes of frames: a message, or the error that says why not."""

    frames: Frames
    message: Message | None
    error: DecodeError | None

    @property
    def told(self) -> tuple[object, ...]:
        """All that can be seen of it, in a form that is equal for both builds; `repr` tells types apart."""
        if self.error is not None:
            return ("refused", self.error.attributes(), str(self.error))
        return (repr(self.message), self.values, self.encoded)

    @property
    def class_name(self) -> str:
        return type(self.message).__name__

    @property
    def values(self) -> tuple[object, ...]:
        """The values in wire order, the flags as on the wire."""
        message: Any = self.message
        names = type(message).__match_args__
        return (*(getattr(message, name) for name in names), getattr(message, "wire_flags", None))

    @property
    def encoded(self) -> list[bytes]:
        assert self.message is not None
        return self.message.encode()


def read(module: ModuleType, corpus: Iterable[Frames]) -> list[Reading]:
    """Return what a package's `decode` makes of each."""
    return [_read(module, frames) for frames in corpus]


def _read(module: ModuleType, frames: Frames) -> Reading:
    try:
        return Reading(frames, module.decode(frames), None)
    except DecodeError as error:
        return Reading(frames, None, error)


def assert_agreement(module: ModuleType, frames: Frames) -> bool:
    """Check that both readings of `frames` are the same; return whether they are a message.

    A refusal must come with its place from the slow path, and an accepted message must be built by the
    declarations as the codec encodes it.
    """
    (reading,) = read(module, [frames])
    if reading.error is not None:
        assert_explained(module, frames, reading.error)
    assert_construct_agrees(module, [reading])
    return reading.error is None


def assert_construct_agrees(module: ModuleType, readings: Iterable[Reading]) -> None:
    """Check the declarations against the readings: what they take, the values, and what they build."""
    for reading in readings:
        if reading.error is None:
            _assert_construct_reads(module, reading)
        elif reading.error.kind not in TAKEN_BY_CONSTRUCT:
            assert not construct_takes(module, reading.frames), list(reading.frames)


def construct_takes(module: ModuleType, frames: Frames) -> bool:
    """Whether a declaration of any message reads the frames."""
    try:
        module.constructs.parse(frames)
    except cs.ConstructError:
        return False
    return True


def _assert_construct_reads(module: ModuleType, reading: Reading) -> None:
    name = reading.class_name
    # No other declaration is tried: that would be the same messages again, and most of the time.
    declaration = {name: module.constructs.MESSAGES[name]}
    _, values = parse_frames(declaration, module.constructs.FLAGS, reading.frames)
    named = _named(layout_of(module))
    built = {
        field.name: _built(named, field.type, values[field.name]) for field in value_fields(module, name)
    }
    assert built == held(module, reading), list(reading.frames)
    assert module.constructs.build(name, values) == reading.encoded, list(reading.frames)


def value_fields(module: ModuleType, class_name: str) -> tuple[Field, ...]:
    """Return the fields of a class in wire order."""
    return tuple(fields_of(message_layout(module, class_name)))


def held(module: ModuleType, reading: Reading) -> dict[str, Any]:
    """A message's values under the grammar's names, without classes."""
    message: Any = reading.message
    named = _named(layout_of(module))
    return {
        field.name: _plain(
            named, field.type, message.wire_flags if field.flags else getattr(message, field.attribute)
        )
        for field in value_fields(module, reading.class_name)
    }


def assert_explained(module: ModuleType, frames: Frames, error: DecodeError) -> None:
    """Check that an error says all it must, and that it points into the frames."""
    text = str(error)
    assert "disagreement" not in text, list(frames)
    assert "\n" not in text
    assert len(text) < 500
    assert error.protocol == layout_of(module).protocol
    assert error.rule.startswith(layout_of(module).edition)
    assert error.expected
    assert error.found
    assert error.message_name is None or error.message_name in {m.name for m in layout_of(module).messages}
    # A limit of values inside each other has a place, that of all frames has none.
    if error.kind == "frames" or (error.kind == "limit" and error.field is None):
        assert error.offset is None
        assert error.frame is None or 0 <= error.frame <= len(frames)
    else:
        assert error.frame is not None
        assert error.offset is not None
        assert 0 <= error.offset <= len(frames[error.frame])
        assert error.field is not None or error.kind == "trailing"


Named = Mapping[str, Type]
"""The records and unions of a protocol by their names, for values that contain themselves."""


@cache
def _named(layout: ProtocolLayout) -> Named:
    found: dict[str, Type] = {}
    fields = [field for entry in layout.messages for field in fields_of(entry)]
    waiting: list[Type] = [field.type for field in reversed(fields)]
    while waiting:
        type = waiting.pop()
        match type:
            case ListOf(element=element):
                waiting.append(element)
            case Record(class_name=name, fields=inside) if name not in found:
                found[name] = type
                waiting += [field.type for field in inside]
            case Union(name=name, options=options):
                found.setdefault(name, type)
                waiting += options
    return found


def _plain(named: Named, type: Type, value: Any) -> Any:
    """A message's value without classes: records as dictionaries, tuples as lists."""

    def fields(of: Record, held: Any) -> Any:
        return {f.name: _plain(named, f.type, getattr(held, f.attribute)) for f in of.fields if not f.implied}

    return _each(named, type, value, fields, lambda held: (held.__class__.__name__, held))


def _built(named: Named, type: Type, value: Any) -> Any:
    """A value of the declarations in the same form: without what is implied."""

    def fields(of: Record, built: Any) -> Any:
        return {f.name: _built(named, f.type, built[f.name]) for f in of.fields if not f.implied}

    return _each(named, type, value, fields, lambda built: next(iter(built.items())))


def _each(
    named: Named,
    of: Type,
    value: Any,
    fields: Callable[[Record, Any], Any],
    chosen: Callable[[Any], tuple[str, Any]],
) -> Any:
    """A value with its records taken apart by `fields`; `chosen` says which of several records it is."""
    of = named[of.name] if isinstance(of, Enclosing) else of
    if value is None:
        return None
    match of:
        case ListOf(element=element):
            return [_each(named, element, item, fields, chosen) for item in value]
        case Pairs():
            return [tuple(item) for item in value]
        case Record():
            return fields(of, value)
        case Union(options=options):
            name, inside = chosen(value)
            (option,) = (option for option in options if option.class_name == name)
            return name, fields(option, inside)
    return list(value) if isinstance(value, list | tuple) else value


@cache
def corpus(name: str) -> tuple[tuple[bytes, ...], ...]:
    """Return all recorded and written messages of a package, each once; those it refuses too."""
    vectors = [*recorded(name), *(vector for vector in HAND if vector.package == name)]
    return tuple(dict.fromkeys(vector.frames for vector in vectors))


def truncations(frames: Frames) -> Iterator[tuple[bytes, ...]]:
    """Yield the frames with each left out, and with each cut at each of its octets."""
    return (_truncated(frames, number) for number in range(_ways_to_truncate(frames)))


def some_truncations(frames: Frames, most: int, chance: random.Random) -> Iterator[tuple[bytes, ...]]:
    """Yield so many of the truncations at most; all those of a frame of 200 kB have 20 GB."""
    ways = range(_ways_to_truncate(frames))
    return (_truncated(frames, number) for number in chance.sample(ways, min(most, len(ways))))


def _ways_to_truncate(frames: Frames) -> int:
    return sum(1 + len(frame) for frame in frames)


def _truncated(frames: Frames, number: int) -> tuple[bytes, ...]:
    """Return a truncation by its number: of each frame first the one without it."""
    for index, frame in enumerate(frames):
        if number <= len(frame):
            cut = [frame[: number - 1]] if number else []
            return (*frames[:index], *cut, *frames[index + 1 :])
        number -= 1 + len(frame)
    raise IndexError(number)


ODD = (0x00, 0x01, 0x02, 0x08, 0x3D, 0x7F, 0x80, 0xC3, 0xFF)
"""Octets at which something changes: flags, counts, NUL, ``=``, UTF-8."""


def mutated(frames: Frames, chance: random.Random) -> list[bytes]:
    """Return the frames with one to three random changes of octets, of lengths, of frames."""
    changed = [bytearray(frame) for frame in frames]
    for _ in range(chance.randint(1, 3)):
        if not changed:
            break
        index = chance.randrange(len(changed))
        frame, kind = changed[index], chance.random()
        if kind < 0.5 and frame:
            # The first octets carry tags, lengths and flags: they are worth more than the content.
            at = chance.randrange(min(len(frame), chance.choice((4, 20, len(frame)))))
            frame[at] = chance.choice((*ODD, chance.randrange(256)))
        elif kind < 0.65:
            del frame[chance.randrange(len(frame) + 1) :]
        elif kind < 0.8:
            at = chance.randrange(len(frame) + 1)
            frame[at:at] = bytes((chance.choice(ODD),))
        elif kind < 0.9:
            del changed[index]
        else:
            changed.insert(index, bytearray(chance.choice((b"", b"\0", b"x", bytes(frame)))))
    return [bytes(frame) for frame in changed]
