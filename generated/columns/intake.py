# Written by specwire from generator/support/columns/intake.py. Do not edit; change that file and run `make generate`.
"""Arrow types that a column may have, and conversion of its values from any of them.

A column has the type in `columns.SCHEMA` or any other that loses nothing. These are integers of any
width, decimals without fraction, text and octets with offsets of any size, dictionary or run-end
encoding, and lists of any kind. Types are checked before values, so a wrong type is always
reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from specwire.generated.columns.pieces import Mask, Whole, starts_of, values_in
from specwire.generated.layout import (
    Field,
    Integer,
    Json,
    Keyword,
    ListOf,
    Octets,
    Pairs,
    Record,
    Text,
    Type,
    Union,
)

PAIR = ("name", "value")

_LISTS: Any = (
    pa.ListType,
    pa.LargeListType,
    pa.FixedSizeListType,
    pa.ListViewType,
    pa.LargeListViewType,
)

Names = Mapping[str, str]
"""Name in the grammar for each class; union columns have these names."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A column that a struct may have. With `many`, it holds lists of values of the type."""

    name: str
    type: Type
    many: bool = False


def check_fields(fields: Sequence[Expected], found: pa.DataType, path: str, names: Names) -> None:
    """Check the type of a struct: every field is one of `fields` and can hold its values.

    Raises:
        TypeError: `found` is no struct, or a field has the wrong type.
        ValueError: a field is unknown or occurs twice.
    """
    found = _bare(found)
    if pa.types.is_null(found):
        return
    if not pa.types.is_struct(found):
        _refuse(path, "a struct", found)
    known = {field.name: field for field in fields}
    inside = [found.field(index) for index in range(found.num_fields)]
    spelled = [field.name for field in inside]
    for field in inside:
        if spelled.count(field.name) > 1:
            raise ValueError(f"column {path} has two fields {field.name}")
        place = f"{path}.{field.name}"
        if field.name in known and known[field.name].many:
            check_type(known[field.name].type, list_values(field.type, place), f"{place}[]", names)
        elif field.name in known:
            check_type(known[field.name].type, field.type, place, names)
        elif not field.name.startswith("_"):
            raise ValueError(f"column {path} has a field {field.name}, which is none of {', '.join(known)}")


def check_type(type: Type, found: pa.DataType, path: str, names: Names) -> None:
    """Check that a column of an Arrow type can hold the values of `type`.

    Raises:
        TypeError: the column has the wrong type.
        ValueError: a struct has an unknown field.
    """
    found = _bare(found)
    if pa.types.is_null(found):
        return
    match type:
        case Integer():
            whole = pa.types.is_decimal(found) and found.scale == 0
            if not (pa.types.is_integer(found) or whole):
                _refuse(path, "integers", found)
        case Text() | Keyword() | Json():
            if not (_is_text(found) or found == pa.string_view()):
                _refuse(path, "text", found)
        case Octets():
            if not (_is_binary(found) or found == pa.binary_view()):
                _refuse(path, "octets", found)
        case ListOf(element=element):
            check_type(element, list_values(found, path), f"{path}[]", names)
        case Pairs(value=value):
            of_value = value if isinstance(value, Octets) else Text(type.name.span)
            fields = Expected(PAIR[0], type.name), Expected(PAIR[1], of_value)
            check_fields(fields, _pair(found) or list_values(found, path), f"{path}[]", names)
        case Record(fields=inside):
            check_fields(valued(inside), found, path, names)
        case Union(options=options):
            records = [Expected(names[option.class_name], option) for option in options]
            check_fields(records, found, path, names)


def list_values(found: pa.DataType, path: str) -> pa.DataType:
    """Return the element type of a list type.

    Raises:
        TypeError: `found` is no list type.
    """
    found = _bare(found)
    if pa.types.is_null(found):
        return found
    if not isinstance(found, _LISTS):
        _refuse(path, "a list", found)
    listed: Any = found
    inside: pa.DataType = listed.value_type
    return inside


def valued(fields: Sequence[Field], *, many: bool = False) -> list[Expected]:
    """Return the columns of `fields`, skipping fields that are computed from others."""
    return [Expected(field.name, field.type, many) for field in fields if not field.implied]


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


def integers(array: pa.Array[Any], most: int) -> tuple[Whole, Mask | None]:
    """Return the integers of an array without nulls, and the mask of those above `most` (None: none)."""
    if pa.types.is_null(array.type):
        return np.zeros(0, np.uint64), None
    if pa.types.is_decimal(array.type):
        return _decimals(array, most)
    kind = np.dtype(array.type.to_pandas_dtype())
    values = values_in(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
    wrong: Mask | None = None
    if np.iinfo(kind).max > most:
        # As an unsigned integer, a negative number exceeds any limit.
        wrong = values.view(f"u{kind.itemsize}") > most
    elif kind.kind == "i":
        wrong = values < 0
    return values, wrong if wrong is not None and wrong.any() else None


def _decimals(array: pa.Array[Any], most: int) -> tuple[Whole, Mask | None]:
    """Return the lower eight octets of decimals, which hold every value of an eight-octet integer."""
    if array.type.bit_width != 128:
        array = array.cast(pa.decimal128(38, 0)) if array.type.bit_width < 128 else _narrowed(array)
    halves = values_in(array.buffers()[1], "<u8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = halves[:, 0], halves[:, 1]
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
    return pa.struct([pa.field(PAIR[0], found.key_type), pa.field(PAIR[1], found.item_type)])


def _refuse(path: str, wanted: str, found: pa.DataType) -> NoReturn:
    raise TypeError(f"column {path}: {wanted} wanted, not {found}")
