"""Encoders of columns of nested values: runs of fields, lists, pairs, records, unions.

Each level writes the values of all elements at once. The entries of all lists are written first and
then grouped. Grouping moves no octets, because the entries are already in order. `Writer.value`
accepts columns with nulls, which are wrong values; all other methods require arrays without nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.columns.intake import PAIR, Names, elements, field_of, plain, there
from specwire.generated.columns.joining import joined
from specwire.generated.columns.pieces import (
    Block,
    Component,
    Mask,
    Numbers,
    Pieces,
    Whole,
    starts_of,
    total_width,
)
from specwire.generated.columns.writing import (
    EQUALS,
    Written,
    either,
    fitting,
    holding,
    spanned,
    texts,
    write_scalar,
)
from specwire.generated.layout import Field, ListOf, Pairs, Record, Size, Type, Union

Columns = Callable[[str], "pa.Array[Any]"]
"""Function that returns the column of a field, by its name."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writer of columns. With `strict`, it follows the specification to the letter."""

    names: Names
    strict: bool

    def run(self, fields: Sequence[Field], columns: Columns, count: int) -> Written:
        """Return the octets of the fields of `count` runs."""
        found: list[tuple[Component, ...]] = []
        wrong: Mask | None = None
        ended: Mask | None = None
        for field in fields:
            if field.optional:
                array = plain(columns(field.name))
                now = there(array)
                written = self._left_out(field.type, array, now)
                wrong = either(wrong, None if ended is None else ended & now)
                ended = either(ended, ~now)
            elif field.implied:
                written = self._value(field.type, pa.nulls(count))
            else:
                written = self.value(field.type, columns(field.name))
            found.append(written.components)
            wrong = either(wrong, written.wrong)
        for at in reversed(range(len(found))):
            type = fields[at].type
            if isinstance(type, Size):
                behind = total_width([component for some in found[at + 1 :] for component in some])
                size = _size(type, np.broadcast_to(np.asarray(behind, np.int64), (count,)))
                found[at] = size.components
                wrong = either(wrong, size.wrong)
        return Written(tuple(component for some in found for component in some), wrong)

    def value(self, type: Type, array: pa.Array[Any]) -> Written:
        """Return the octets of the values of a column; a null is wrong."""
        array = plain(array)
        if not array.null_count:
            return self._value(type, array)
        now = there(array)
        written = self.present(type, array, now)
        return Written(written.components, either(~now, written.wrong))

    def present(self, type: Type, array: pa.Array[Any], now: Mask) -> Written:
        """Return the octets of the values where `now` is true, and nothing elsewhere."""
        written = self._value(type, array.drop_null())
        return spread(written, now)

    def _left_out(self, type: Type, array: pa.Array[Any], now: Mask) -> Written:
        """Return values that may be omitted; one without octets is wrong, as it would be read as omitted."""
        written = self.present(type, array, now)
        empty = np.broadcast_to(np.asarray(total_width(written.components)) == 0, now.shape) & now
        return Written(written.components, either(written.wrong, empty))

    def _value(self, type: Type, array: pa.Array[Any]) -> Written:
        match type:
            case ListOf():
                return self._list(type, array)
            case Pairs():
                return self._pairs(type, array)
            case Record(fields=fields):
                return self.run(fields, lambda name: field_of(array, name), len(array))
            case Union():
                return self._union(type, array)
            case Size():
                return Written(())  # Known once the octets after it are.
            case _:
                return write_scalar(type, array, self.strict)

    def _list(self, type: ListOf, array: pa.Array[Any]) -> Written:
        starts, values = elements(array)
        return counted(type, starts, self.value(type.element, values))

    def _pairs(self, type: Pairs, array: pa.Array[Any]) -> Written:
        starts, entries = elements(array)
        entries = plain(entries)
        now = there(entries)
        if entries.null_count:
            return counted(type, starts, spread(self._entries(type, entries.drop_null()), now, ~now))
        return counted(type, starts, self._entries(type, entries))

    def _entries(self, type: Pairs, entries: pa.Array[Any]) -> Written:
        name, value = (field_of(entries, part) for part in PAIR)
        if type.value is None:
            return self._divided(type, plain(name), plain(value))
        first, second = self.value(type.name, name), self.value(type.value, value)
        return Written((*first.components, *second.components), either(first.wrong, second.wrong))

    def _divided(self, type: Pairs, names: pa.Array[Any], values: pa.Array[Any]) -> Written:
        """Return name and value as one text; the side before the separator must not contain another ``=``."""
        now = there(names) & there(values)
        if not now.all():
            known = pa.array(now)
            return spread(self._divided(type, names.filter(known), values.filter(known)), now, ~now)
        (name, wrong_name), (value, wrong_value) = texts(names), texts(values)
        wrong = either(wrong_name, wrong_value, holding(name if type.split == "first" else value, EQUALS))
        octets = type.name.span.octets
        if self.strict or type.name.span.kind != "prefix" or octets == 8:
            whole = joined((name, b"=", value), len(names))
            if self.strict and type.name.pattern is not None:
                wrong = either(wrong, ~fitting(type.name.pattern, whole))
            return spanned(type.name.span, whole, wrong)
        sizes = name.sizes + 1 + value.sizes
        return Written((Numbers(sizes, octets), name, b"=", value), either(wrong, sizes >= 256**octets))

    def _union(self, type: Union, array: pa.Array[Any]) -> Written:
        """Return the octets of one of several records: the one whose column is not null."""
        columns = [plain(field_of(array, self.names[option.class_name])) for option in type.options]
        chosen = [there(column) for column in columns]
        wrong = np.sum(chosen, axis=0) != 1 if len(array) else np.zeros(0, np.bool_)
        written = [
            self.present(option, column, now)
            for option, column, now in zip(type.options, columns, chosen, strict=True)
        ]
        components = tuple(component for one in written for component in one.components)
        return Written(components, either(wrong, *(one.wrong for one in written)))


def spread(written: Written, now: Mask, wrong: Mask | None = None) -> Written:
    """Return what was written for the elements where `now` is true, and nothing elsewhere."""
    if now.all():
        return Written(written.components, either(written.wrong, wrong))
    pieces = joined(written.components, int(np.count_nonzero(now))).spread(now)
    if written.wrong is not None:
        inside = np.zeros(len(now), np.bool_)
        inside[now] = written.wrong
        wrong = either(wrong, inside)
    return Written((pieces,), wrong)


def counted(type: ListOf | Pairs, starts: Whole, entries: Written) -> Written:
    """Return the octets of lists whose entries begin at `starts`."""
    counts = np.diff(starts)
    pieces = joined(entries.components, int(starts[-1])).grouped(starts)
    wrong = None if entries.wrong is None else np.diff(starts_of(entries.wrong)[starts]) > 0
    many = counts >= 256**type.count_octets if 0 < type.count_octets < 8 else None
    few = counts < type.minimum if type.minimum else None
    count = (Numbers(counts, type.count_octets),) if type.count_octets else ()
    return Written((*count, pieces), either(wrong, many, few))


def _size(type: Size, behind: Whole) -> Written:
    """Return the sizes of the octets that follow, each in the first form that can hold it."""
    forms = [(tag, octets) for tag, octets in type.forms]
    spelled = [joined((tag, Numbers(behind, octets)), len(behind)) for tag, octets in forms]
    used = np.full(len(behind), -1)
    for number in reversed(range(len(forms))):
        tag, octets = forms[number]
        fits = behind < 256**octets if octets < 8 else np.ones(len(behind), np.bool_)
        if not tag:
            fits &= ~_begins_as_another(spelled[number], octets, [other for other, _ in forms if other])
        used[fits] = number
    wrong = used < 0
    for number, piece in enumerate(spelled):
        if (used == number).all():
            return Written((Block(piece.octets.reshape(len(behind), -1)),) if len(behind) else ())
    return Written(tuple(_only(piece, used == number) for number, piece in enumerate(spelled)), either(wrong))


def _begins_as_another(numbers: Pieces, octets: int, tags: Sequence[bytes]) -> Mask:
    """Return the mask of sizes without a tag that begin like a form with one."""
    rows = numbers.octets.reshape(-1, octets)
    found = np.zeros(len(rows), np.bool_)
    for tag in tags:
        if len(tag) <= octets:
            found |= (rows[:, : len(tag)] == np.frombuffer(tag, np.uint8)).all(axis=1)
    return found


def _only(pieces: Pieces, now: Mask) -> Pieces:
    """Return the pieces of the elements where `now` is true, empty elsewhere."""
    rows = pieces.octets.reshape(len(now), -1)[now]
    return Pieces(np.arange(len(rows) + 1) * (rows.shape[1]), rows.reshape(-1)).spread(now)
