"""What the readers of one protocol make of the same frames, in a form in which they can be compared.

There are four: the codec in Python, the compiled one, the columns and the Construct declarations. The codec in
Python is what the others are held against; it is itself held against recorded vectors, and against Construct, which
shares no code with it. All four must take the same frames and find the same values. Refusals must be equal as far as
a reader gives reasons: the compiled codec in every attribute, the columns in their struct; Construct just refuses.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from types import ModuleType
from typing import Any

import pyarrow as pa

from specwire.generated.layout import ListOf, Pairs, Record, Type, Union
from tests.generated.agreement import Frames, Reading, assert_explained, held, layout_of, read, value_fields

ARRAY = pa.list_(pa.binary())


def assert_explained_all(module: ModuleType, readings: Iterable[Reading]) -> None:
    """Check that every refusal says all it must, and points into the frames."""
    for reading in readings:
        if reading.error is not None:
            assert_explained(module, reading.frames, reading.error)


def assert_codec_agrees(module: ModuleType, readings: Sequence[Reading]) -> None:
    """Check another build against the readings of the first, refusals in every attribute."""
    for reading, other in zip(readings, read(module, (r.frames for r in readings)), strict=True):
        assert other.told == reading.told, list(reading.frames)


def assert_columns_agree(module: ModuleType, readings: Sequence[Reading]) -> None:
    """Check the columns against the readings: each row, and what the rows encode to."""
    array = pa.array([list(reading.frames) for reading in readings], ARRAY)
    batch = module.columns.decode(array)
    batch.validate(full=True)
    for reading, row in zip(readings, batch.to_pylist(), strict=True):
        assert _told(module, row) == _expected(module, reading), list(reading.frames)
    written = module.columns.encode(batch).to_pylist()
    for reading, frames in zip(readings, written, strict=True):
        assert frames == (list(reading.frames) if reading.error else reading.encoded)


def _expected(module: ModuleType, reading: Reading) -> tuple[object, ...]:
    """What a row must tell of a reading."""
    if (error := reading.error) is None:
        return (reading.class_name, None, None, {reading.class_name}, held(module, reading))
    told = {
        "message": error.message_name, "field": error.field, "frame": error.frame, "offset": error.offset,
        "kind": error.kind, "text": str(error),
    }  # fmt: skip
    return (None, told, list(reading.frames), set(), {})


def _told(module: ModuleType, row: dict[str, Any]) -> tuple[object, ...]:
    """What a row tells, values in the form of `held`."""
    there = {class_name for class_name in module.MESSAGES if row[class_name] is not None}
    values: dict[str, Any] = {}
    for class_name in there:
        cells = row[class_name]
        values = {
            field.name: _cell(field.type, cells[field.name]) for field in value_fields(module, class_name)
        }
        assert values or cells == {"_present": True}
    return (row["_message"], row["_error"], row["_frames"], there, values)


def _cell(of: Type, cell: Any) -> Any:
    """A cell's value in the form of `held`; frames that are a list of values have a list of any type."""
    if cell is None:
        return None
    match of:
        case ListOf(element=element):
            return [_cell(element, item) for item in cell]
        case Pairs():
            return [(item["name"], item["value"]) for item in cell]
        case Record(fields=fields):
            return {field.name: _cell(field.type, cell[field.name]) for field in fields if not field.implied}
        case Union(options=options):
            # A struct for each, in their order, and all but one of them null.
            ((option, inside),) = (
                (o, i) for o, i in zip(options, cell.values(), strict=True) if i is not None
            )
            return option.class_name, _cell(option, inside)
    return int(cell) if isinstance(cell, Decimal) else cell


def shortest(module: ModuleType, corpus: Iterable[tuple[bytes, ...]]) -> list[tuple[bytes, ...]]:
    """Return the shortest message of each class in `corpus`; fails where a class has none."""
    found: dict[str, tuple[bytes, ...]] = {}
    for reading in read(module, sorted(corpus, key=octets_of)):
        if reading.message is not None:
            found.setdefault(reading.class_name, tuple(reading.frames))
    assert found.keys() == {entry.class_name for entry in layout_of(module).messages}
    return list(found.values())


def octets_of(frames: Frames) -> int:
    """How many octets there are in all frames."""
    return sum(map(len, frames))


def with_other_octets(frames: Frames, values: Iterable[int] = range(256)) -> Iterator[Frames]:
    """Yield the frames with each of their octets changed to each of `values`."""
    kept = tuple(values)
    for index, frame in enumerate(frames):
        for at in range(len(frame)):
            yield from (_with_octet(frames, index, at, value) for value in kept if value != frame[at])


def some_with_other_octets(corpus: Sequence[Frames], count: int, seed: int) -> list[Frames]:
    """Return `count` messages of `corpus`, each with an octet changed, the same ones for a `seed`."""
    chance = random.Random(seed)
    long = [frames for frames in corpus if octets_of(frames)]
    found: list[Frames] = []
    while len(found) < count:
        frames = chance.choice(long)
        index = chance.choice([number for number, frame in enumerate(frames) if frame])
        at = chance.randrange(len(frames[index]))
        found.append(_with_octet(frames, index, at, frames[index][at] ^ chance.randint(1, 255)))
    return found


def _with_octet(frames: Frames, index: int, at: int, value: int) -> Frames:
    frame = frames[index]
    return (*frames[:index], frame[:at] + bytes((value,)) + frame[at + 1 :], *frames[index + 1 :])
