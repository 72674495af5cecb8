"""The columns of decoded rows as they were asked for: some of them, with other types, with their octets beside them.

The last step, because what a column means (its metadata) is lost by any expression and is put on here again, at
every depth, with the protocol's name on `_message` so that `tables` knows what the rows are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.spark.decoding.noted import name_noted
from specwire.runtime.spark.decoding.octets import hex_field, hex_of
from specwire.runtime.spark.decoding.options import Mode, Options
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas

PROTOCOL = "protocol"
"""The key of the protocol's name in the metadata of `_message`."""

RECORD_ID = StructField("_record_id", StringType(), False, {"comment": "The tap and its count: tap/seq."})
RECORD_FRAMES = StructField(
    "_record_frames",
    ArrayType(BinaryType()),
    True,
    {"comment": "The raw frames of the message, decoded or not."},
)
INPUT_FILE = StructField(
    "_input_file", StringType(), False, {"comment": "The file that the message is from."}
)
ADDED = (RECORD_ID, RECORD_FRAMES, INPUT_FILE)
"""What options of `decode` put behind the noted columns."""

_U64 = DecimalType(20, 0)


def decoded_fields(protocol: str) -> dict[str, StructField]:
    """Return every column that decoded rows may have by its name: noted, added by an option, decoded."""
    decoded = load_schemas(protocol).DECODED
    fields = (*name_noted(decoded.fieldNames()), *ADDED, *decoded)
    return {field.name: field for field in fields}


def check_columns(protocol: str, columns: Collection[str]) -> None:
    """InputError for a column that decoded rows do not have."""
    fields = decoded_fields(protocol)
    known = {name.casefold() for name in fields}
    for message, type in load_schemas(protocol).SCHEMAS.items():
        known.update(f"{message}.{name}".casefold() for name in type.fieldNames())
    for name in columns:
        if name.casefold() not in known:
            raise InputError(
                f"option 'columns' names {name!r}; decoded {protocol} has {', '.join(fields)}, and "
                "their fields as Message.field"
            )


def schema_of(protocol: str, asked: Options) -> StructType:
    """Return the columns that `decode` gives with these options."""
    return StructType([field for field, _ in _fields(protocol, asked)])


def shape(rows: DataFrame, protocol: str, asked: Options) -> DataFrame:
    """Return the columns that were asked for, each with what it means."""
    found: list[Column] = []
    for field, stored in _fields(protocol, asked):
        column = F.col(field.name)
        if field.name in load_schemas(protocol).SCHEMAS:
            column = _message(rows.schema[field.name].dataType, field, stored, asked)
        found.append(column.alias(field.name, metadata=field.metadata))
    return rows.select(*found)


def _fields(protocol: str, asked: Options) -> Iterator[tuple[StructField, StructField]]:
    """Each column that was asked for, as it becomes and as all rows have it before."""
    messages, only = load_schemas(protocol).SCHEMAS, _only(asked.columns)
    for name, field in decoded_fields(protocol).items():
        if not _is_asked_for(name, asked, only):
            continue
        if name == "_message":
            named = {**field.metadata, PROTOCOL: protocol}
            yield StructField(name, field.dataType, field.nullable, named), field
        elif name not in messages:
            yield field, field
        elif not asked.message or name in asked.message:
            type = _becomes(messages[name], only.get(name.casefold(), ()), asked)
            yield StructField(name, type, field.nullable, field.metadata), field


def _only(columns: Collection[str]) -> Mapping[str, set[str]]:
    """The fields to keep of each column, without case; none: all of them."""
    found: dict[str, set[str]] = {}
    whole = {name.casefold() for name in columns if "." not in name}
    for column in columns:
        name, _, field = column.casefold().partition(".")
        fields = found.setdefault(name, set())
        if field and name not in whole:
            fields.add(field)
    return found


def _is_asked_for(name: str, asked: Options, only: Mapping[str, set[str]]) -> bool:
    match name:
        case "_message" | "_error" | "_frames":
            return True
        case RECORD_ID.name:
            return asked.record_id
        case RECORD_FRAMES.name:
            return asked.record_frames
        case INPUT_FILE.name:
            return asked.input_file
    return not only or name.casefold() in only


def _becomes(fields: StructType, only: Collection[str], asked: Options) -> StructType:
    """The struct of a message with the fields that were asked for, their octets behind them, in the types asked for."""
    kept = [field for field in fields if not only or field.name.casefold() in only]
    twins = [_twin(field, fields) for field in kept] if asked.debug else []
    found = StructType([*kept, *twins])
    return _with_longs(found) if asked.u64 == "long" else found


def _message(found: DataType, field: StructField, stored: StructField, asked: Options) -> Column:
    """The struct of a message as it becomes; Spark stops a query at a number that is too large for its type."""
    column, target, fields = F.col(field.name), field.dataType, stored.dataType
    assert isinstance(target, StructType)
    assert isinstance(fields, StructType)
    if target.fieldNames() != fields.fieldNames():
        kept = [inside for inside in fields if inside.name in target.fieldNames()]
        made = [column[inside.name].alias(inside.name) for inside in kept]
        if asked.debug:
            made += [hex_of(column[one.name], one).alias(_twin(one, fields).name) for one in kept]
        column = F.when(column.isNotNull(), F.struct(*made))
    elif found == target:
        return column
    # Brings back what each field means, too.
    return column.cast(target) if asked.mode is Mode.FAILFAST else column.try_cast(target)


def _twin(field: StructField, beside: StructType) -> StructField:
    """The column of a field's octets, under a name that no field has."""
    taken = {name.casefold() for name in beside.fieldNames()}
    name = f"{field.name}_hex"
    while name.casefold() in taken:
        name += "_"
    return hex_field(field, name)


def _with_longs(fields: StructType) -> StructType:
    """Return a struct whose unsigned integers of eight octets are longs, at any depth."""
    return StructType([StructField(f.name, _with_long(f.dataType), f.nullable, f.metadata) for f in fields])


def _with_long(type: DataType) -> DataType:
    match type:
        case ArrayType(elementType=element, containsNull=nulls):
            return ArrayType(_with_long(element), nulls)
        case StructType():
            return _with_longs(type)
    return LongType() if type == _U64 else type
