"""Readers for the columns of a protocol, built once from its layout and schema.

Adjacent fields of fixed size become one reader. Constants that message selection has compared are
not compared again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from specwire.generated.columns.arrow import ArrowType
from specwire.generated.columns.lists import ListReader, PairsReader, SplitReader
from specwire.generated.columns.readers import (
    JSON,
    Fixed,
    KeywordReader,
    OctetsReader,
    Optional,
    Packed,
    Reader,
    RecordReader,
    Single,
    Sized,
    Step,
    Steps,
    TextReader,
    UnionReader,
)
from specwire.generated.layout import (
    Constant,
    Field,
    Integer,
    Json,
    Keyword,
    ListOf,
    Octets,
    Padding,
    Pairs,
    Record,
    Size,
    Span,
    Text,
    Type,
    Union,
)

WIDEST = 64
"""Largest number of octets of a value that is read together with its neighbours."""


def field_types(fields: Iterable[Field], type: ArrowType) -> Iterator[tuple[Field, ArrowType | None]]:
    """Yield each field with the type of its column in a struct; None for fields computed from others."""
    columns = iter([type.field(number).type for number in range(type.num_fields)])
    for field in fields:
        yield field, None if field.implied else next(columns)


def make_steps(
    fields: Sequence[tuple[Field, ArrowType | None]], *, checked: int = 0, frame: bool = False
) -> Steps:
    """Return the readers of the fields of a run.

    Args:
        fields: fields, each with the type of its column.
        checked: number of octets at the start whose constants are already checked.
        frame: the run is a whole frame, so every size in it counts all remaining octets.
    """
    steps: list[Step] = []
    packed: list[tuple[int, Fixed, ArrowType | None]] = []
    offset, sized, known = 0, frame, checked
    for field, arrow in fields:
        type = field.type
        if _fixed(type) and not field.optional:
            packed.append((offset, type, arrow))
            offset += octets_of(type)
            continue
        if packed:
            steps.append(Packed(tuple(packed), offset, known))
            packed, offset = [], 0
        known = 0
        if isinstance(type, Size):
            steps.append(Sized(type.forms, sized))
            sized = True
        else:
            step = _step(type, arrow)
            steps.append(Optional(step) if field.optional else step)
    if packed:
        steps.append(Packed(tuple(packed), offset, known))
    return Steps(tuple(steps))


def _step(type: Type, arrow: ArrowType | None) -> Step:
    return Packed(((0, type, arrow),), octets_of(type)) if _fixed(type) else Single(make_reader(type, arrow))


def _fixed(type: Type) -> TypeGuard[Fixed]:
    if isinstance(type, Constant):
        return True
    return isinstance(type, Integer | Padding | Octets | Text) and 0 < octets_of(type) <= WIDEST


def octets_of(type: Type) -> int:
    """Return the fixed number of octets of a type, 0 if values differ in size."""
    match type:
        case Constant(octets=octets):
            return len(octets)
        case Integer(octets=number) | Padding(octets=number):
            return number
        case Octets(span=Span(kind="fixed", octets=number)) | Text(span=Span(kind="fixed", octets=number)):
            return number
        case Record(fields=fields):
            sizes = [0 if field.optional else octets_of(field.type) for field in fields]
            empty = any(not size for size in sizes)
            return 0 if empty else sum(sizes)
    return 0


def make_reader(type: Type, arrow: ArrowType | None) -> Reader:
    """Return the reader of a value into a column of type `arrow`; None if it has no column."""
    match type:
        case Text():
            return TextReader(type)
        case Octets():
            return OctetsReader(type)
        case Json():
            return JSON
        case Constant() | Integer() | Padding():
            return Packed(((0, type, arrow),), octets_of(type))
        case Keyword(options=options):
            return KeywordReader(tuple(option.encode() for option in options), False)
        case ListOf() | Pairs() | Record() | Union() if arrow is not None:
            return _make_nested(type, arrow)
    raise AssertionError(type)


def _make_nested(type: ListOf | Pairs | Record | Union, arrow: ArrowType) -> Reader:
    match type:
        case ListOf(count_octets=count, element=element, minimum=minimum):
            reader = make_reader(element, arrow.value_type)
            return ListReader(count, minimum, reader, octets_of(element), arrow)
        case Pairs():
            return _make_pairs(type, arrow)
        case Record():
            return _make_record(type, arrow)
        case Union(options=options, tags=tags):
            records = tuple(_make_record(o, arrow.field(number).type) for number, o in enumerate(options))
            return UnionReader(tags, records, arrow)


def _make_pairs(type: Pairs, arrow: ArrowType) -> Reader:
    count, minimum = type.count_octets, type.minimum
    if type.value is None:
        return SplitReader(count, minimum, TextReader(type.name), type.split or "first", arrow)
    value = TextReader(type.value) if isinstance(type.value, Text) else OctetsReader(type.value)
    return PairsReader(count, minimum, TextReader(type.name), value, arrow)


def _make_record(type: Record, arrow: ArrowType) -> RecordReader:
    sized = any(isinstance(field.type, Size) for field in type.fields)
    return RecordReader(make_steps(list(field_types(type.fields, arrow))), arrow, sized)
