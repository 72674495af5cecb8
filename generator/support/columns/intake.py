"""Arrow types that a column may have, and conversion of its values from any of them.

A column has the type in `columns.SCHEMA` or any other that loses nothing. These are integers of any
width, decimals without fraction, text and octets with offsets of any size, dictionary or run-end
encoding, and lists of any kind. Types are checked before values, so a wrong type is always
reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from specwire.generated.columns.arrow import Mask, Whole, numbers_in, starts_of
from specwire.generated.columns.slots import Enclosed, Fields, Records, Value, values_of, visible
from specwire.generated.layout import Boolean, Coding, Float, Integer
from specwire.generated.named_plan import NamedMessage
from specwire.generated.plan import (
    ITEM,
    NAME,
    VALUE,
    Bit,
    Choose,
    Extent,
    Loop,
    Nest,
    Number,
    Optional,
    TakeOctets,
    TakeText,
    Word,
)

PAIR = {NAME: "name", VALUE: "value"}
"""Columns of a pair."""

_TEXT = TakeText(ITEM, Extent("rest"))
_LISTS: Any = (
    pa.ListType,
    pa.LargeListType,
    pa.FixedSizeListType,
    pa.ListViewType,
    pa.LargeListViewType,
)


@dataclass(frozen=True, slots=True)
class TypeCheck:
    """Check that columns can hold the values of their slots.

    The methods raise TypeError for a column of the wrong type, and ValueError for a field of a struct
    that is unknown or occurs twice.
    """

    records: Records
    fields: Fields
    options: Mapping[str, str]
    """Column of each record in a union, by class."""

    def message(self, message: NamedMessage, found: pa.DataType) -> None:
        """Check the type of the column of a message."""
        values = (op for part in message.parts for op in values_of(part))
        name = message.layout.class_name
        self._struct(self._named(name, values), found, name)

    def value(self, op: Value, found: pa.DataType, path: str) -> None:
        """Check the type of a column of values."""
        found = _bare(found)
        if pa.types.is_null(found):
            return
        match op:
            case Number(coding=coding):
                _check_number(coding, found, path)
            case Bit(boolean=True) | Optional():
                _check_number(Boolean(), found, path)
            case Bit():
                _check_number(Integer(8), found, path)
            case TakeOctets(uuid=None) | Enclosed():
                if not (_is_binary(found) or found == pa.binary_view()):
                    _refuse(path, "octets", found)
            case TakeText() | Word() | TakeOctets():
                if not (_is_text(found) or found == pa.string_view()):
                    _refuse(path, "text", found)
            case Loop(body=body, pairs=""):
                (item,) = visible(body)
                self.value(item, _element(found, path), f"{path}[]")
            case Loop(body=body, pairs=kind):
                sides = visible(body) if kind == "both" else (_TEXT, _TEXT)
                pair = dict(zip(PAIR.values(), sides, strict=True))
                self._struct(pair, _pair(found) or _element(found, path), f"{path}[]")
            case Nest(record=record):
                self._struct(self._named(record, visible(self.records.bodies[record])), found, path)
            case Choose(options=options):
                records = {self.options[record]: Nest(op.slot, record) for _, record in options}
                self._struct(records, found, path)

    def _named(self, owner: str, values: Iterable[Value]) -> dict[str, Value]:
        return {self.fields[owner][op.slot].name: op for op in values}

    def _struct(self, fields: Mapping[str, Value], found: pa.DataType, path: str) -> None:
        """Check the type of a struct that may have some fields."""
        found = _bare(found)
        if pa.types.is_null(found):
            return
        if not pa.types.is_struct(found):
            _refuse(path, "a struct", found)
        inside = [found.field(index) for index in range(found.num_fields)]
        spelled = [field.name for field in inside]
        for field in inside:
            if spelled.count(field.name) > 1:
                raise ValueError(f"column {path} has two fields {field.name}")
            if field.name in fields:
                self.value(fields[field.name], field.type, f"{path}.{field.name}")
            elif not field.name.startswith("_"):
                raise ValueError(
                    f"column {path} has a field {field.name}, which is none of {', '.join(fields)}"
                )


def _check_number(coding: Coding, found: pa.DataType, path: str) -> None:
    match coding:
        case Float():
            if not pa.types.is_floating(found):
                _refuse(path, "floating-point numbers", found)
        case Boolean():
            if not pa.types.is_boolean(found):
                _refuse(path, "booleans", found)
        case _:
            whole = pa.types.is_decimal(found) and found.scale == 0
            if not (pa.types.is_integer(found) or whole):
                _refuse(path, "integers", found)


def _element(found: pa.DataType, path: str) -> pa.DataType:
    """Return the element type of a list type."""
    found = _bare(found)
    if pa.types.is_null(found):
        return found
    if not isinstance(found, _LISTS):
        _refuse(path, "a list", found)
    listed: Any = found
    inside: pa.DataType = listed.value_type
    return inside


def plain(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return an array without dictionary or run-end encoding and without views."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return plain(array.dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        return plain(pc.call_function("run_end_decode", [array]))
    if array.type == pa.string_view():
        return array.cast(pa.large_string())
    if array.type == pa.binary_view():
        return array.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    pair = _pair(array.type)
    return array if pair is None else array.cast(pa.list_(pair))


def there(array: pa.Array[Any]) -> Mask:
    """Return the mask of slots that are not null."""
    if array.null_count in (0, len(array)):
        return np.full(len(array), not array.null_count)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def field_of(array: pa.Array[Any], name: str) -> pa.Array[Any]:
    """Return a field of a struct array without nulls; a missing field is null in every row."""
    if not isinstance(array, pa.StructArray) or array.type.get_field_index(name) < 0:
        return pa.nulls(len(array))
    return array.field(name)


def elements(array: pa.Array[Any]) -> tuple[Whole, pa.Array[Any]]:
    """Return the offsets and the elements of any list array without nulls."""
    if pa.types.is_null(array.type):
        return np.zeros(1, np.int64), pa.nulls(0)
    counts = pc.list_value_length(array).to_numpy(zero_copy_only=False)
    lists: Any = array
    return starts_of(counts), lists.flatten()


def integers_of(array: pa.Array[Any], most: int, least: int = 0) -> tuple[Whole, Mask | None]:
    """Return the integers of an array without nulls, and the mask of those outside of a range."""
    if pa.types.is_null(array.type):
        return np.zeros(0, np.uint64), None
    if pa.types.is_decimal(array.type):
        return _decimals(array, most, least)
    kind = np.dtype(array.type.to_pandas_dtype())
    if kind.kind == "b":
        values = array.to_numpy(zero_copy_only=False)
        return values.view(np.uint8), None
    values = numbers_in(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
    limits = np.iinfo(kind)
    wrong: Mask | None = None
    if least == 0 and limits.max > most:
        # As an unsigned integer, a negative number exceeds any limit.
        wrong = values.view(f"u{kind.itemsize}") > most
    else:
        if limits.max > most:
            wrong = values > most
        if limits.min < least:
            wrong = values < least if wrong is None else wrong | (values < least)
    return values, wrong if wrong is not None and wrong.any() else None


def floats(array: pa.Array[Any]) -> NDArray[Any]:
    """Return the floating-point numbers of an array without nulls."""
    return np.zeros(0) if pa.types.is_null(array.type) else array.to_numpy(zero_copy_only=False)


def _decimals(array: pa.Array[Any], most: int, least: int) -> tuple[Whole, Mask | None]:
    """Return the lower eight octets of decimals, which hold every value of an eight-octet integer."""
    if array.type.bit_width != 128:
        array = array.cast(pa.decimal128(38, 0)) if array.type.bit_width < 128 else _narrowed(array)
    halves = numbers_in(array.buffers()[1], "<u8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = halves[:, 0], halves[:, 1]
    if least:
        signed = low.view(np.int64)
        wrong = (
            (high != np.where(signed < 0, ~np.uint64(0), np.uint64(0))) | (signed > most) | (signed < least)
        )
        return signed, wrong if wrong.any() else None
    wrong = high != 0
    if most < 2**64 - 1:
        wrong |= low > most
    return low, wrong if wrong.any() else None


def _narrowed(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return 256-bit decimals as 128-bit ones; values that do not fit become invalid for any field."""
    outside = pc.or_(
        pc.less(array, pa.scalar(0, array.type)), pc.greater(array, pa.scalar(2**64, array.type))
    )
    found: pa.Array[Any] = pc.if_else(outside, pa.scalar(2**64, array.type), array).cast(pa.decimal128(38, 0))
    return found


def _bare(found: pa.DataType) -> pa.DataType:
    """Return a type without the encodings around it."""
    if isinstance(found, pa.BaseExtensionType):
        return _bare(found.storage_type)
    if isinstance(found, pa.DictionaryType | pa.RunEndEncodedType):
        return _bare(found.value_type)
    return found


def _is_text(found: pa.DataType) -> bool:
    return pa.types.is_string(found) or pa.types.is_large_string(found)


def _is_binary(found: pa.DataType) -> bool:
    return (
        pa.types.is_binary(found) or pa.types.is_large_binary(found) or pa.types.is_fixed_size_binary(found)
    )


def _pair(found: pa.DataType) -> pa.DataType | None:
    """Return the struct type of the entries of a map type, None for any other type."""
    if not isinstance(found, pa.MapType):
        return None
    return pa.struct([pa.field(PAIR[NAME], found.key_type), pa.field(PAIR[VALUE], found.item_type)])


def _refuse(path: str, wanted: str, found: pa.DataType) -> NoReturn:
    raise TypeError(f"column {path}: {wanted} wanted, not {found}")
