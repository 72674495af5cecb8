"""Options of `decode` and of the data source, and the columns that decoded rows have with them.

Spark passes the options of a reader as text, with names that ignore case. So a flag may be
``"true"`` and a list ``"Request,Response"``. Unknown options and invalid values raise InputError,
so that a misspelt option is not silently ignored.

A decoded row has the columns of a capture, those that options add, and the columns of the generated
`schema.DECODED`. `schema_of` returns their types; nothing here needs a Spark session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Literal, cast

import msgspec
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols, load_schemas


class Mode(StrEnum):
    """Treatment of a row that does not decode, with the names that Spark's readers use."""

    PERMISSIVE = "PERMISSIVE"
    """The row is kept, with `_error` and its raw `_frames`."""
    DROPMALFORMED = "DROPMALFORMED"
    """The row is dropped."""
    FAILFAST = "FAILFAST"
    """The query fails; the error names the file, the message, the field and the offset."""


class Options(msgspec.Struct, frozen=True):
    """Options of `decode` and of the data source."""

    mode: Mode = Mode.PERMISSIVE
    dialect: str = ""
    """Suffix of the package name: ``ascii`` of ``norfab`` selects ``norfab_ascii``."""
    message: tuple[str, ...] = ()
    """Message classes to keep; empty for all."""
    columns: tuple[str, ...] = ()
    """Columns to keep, such as ``seq``, ``Request`` or ``Request.topic``; empty for all."""
    debug: bool = False
    """Whether to add a column with the octets of each field in hexadecimal."""
    record_id: bool = False
    record_frames: bool = False
    input_file: bool = False
    u64: Literal["decimal", "long"] = "decimal"
    """Type of unsigned integers of eight octets."""


KNOWN: tuple[str, ...] = Options.__struct_fields__
PLAIN = Options()


def commented(name: str, kind: DataType, comment: str, *, nullable: bool = True) -> StructField:
    """Return a column with a comment."""
    return StructField(name, kind, nullable, {"comment": comment})


ENVELOPE = StructType(
    [
        commented("ts", TimestampType(), "when the tap saw the message, to the microsecond, UTC"),
        commented("mono", LongType(), "the tap's monotonic clock, nanoseconds"),
        commented("seq", LongType(), "count of the tap's messages, from 0, without gaps"),
        commented("protocol", StringType(), "name of the generated package, as the tap stated it"),
        commented("tap", StringType(), "id of the tap"),
        commented("conversation", StringType(), "one connection, as the tap names it"),
        commented("sender", StringType(), "role letter of the side that sent the message"),
        commented("peer", StringType(), "the other side's identity, as the tap saw it"),
    ]
)
"""Columns that a tap records about a message, besides its frames."""

EDITION = commented("edition", StringType(), "edition of the specification, as the tap stated it")
"""Column that the pipeline adds from the metadata of a segment."""

CAPTURE = StructType([*ENVELOPE, commented("frames", ArrayType(BinaryType()), "the message, frame by frame")])

OCTETS = StructField(
    "octets", LongType(), False, metadata={"comment": "octets of all frames", "unit": "octets"}
)
NOTED = StructType([*ENVELOPE, OCTETS])
"""Columns of a capture, which come before the decoded ones."""

COUNT = StructField("_octets", LongType(), metadata=OCTETS.metadata)
"""Octets of all frames in a struct of decoded columns."""

FRAMES = "_frames"
"""Raw frames: of all rows before they are decoded, of rows with an error afterwards."""

PROTOCOL = "protocol"
"""Metadata key of `_message` with the protocol's name."""

RECORD_ID = commented("_record_id", StringType(), "The tap and its count: tap/seq.", nullable=False)
RECORD_FRAMES = commented(
    "_record_frames", ArrayType(BinaryType()), "The raw frames of the message, decoded or not."
)
INPUT_FILE = commented("_input_file", StringType(), "The file that the message is from.", nullable=False)
ADDED = (RECORD_ID, RECORD_FRAMES, INPUT_FILE)
"""Columns that options of `decode` add after those of the capture."""

_U64 = DecimalType(20, 0)


def read_options(
    given: Mapping[str, object], known: Collection[str] = KNOWN, listed: Collection[str] = ()
) -> Options:
    """Return the options from values by name.

    Raises InputError for a name that is not in `known`, and for an invalid value of an option. The
    error lists the names in `listed`, or in `known` if `listed` is empty.
    """
    values: dict[str, object] = {}
    for name, value in given.items():
        key = name.casefold()
        if key not in known:
            near = get_close_matches(key, listed or known, 1)
            hint = f" (is it {near[0]!r}?)" if near else ""
            raise InputError(
                f"there is no option {name!r}{hint}; the known ones are {', '.join(listed or known)}"
            )
        values[key] = _read(key, value)
    return msgspec.convert(values, Options)


def _read(name: str, value: object) -> object:
    text = str(value).casefold()
    match name:
        case "mode":
            return one_of(name, text.upper(), tuple(Mode), value)
        case "u64":
            return one_of(name, text, ("decimal", "long"), value)
        case "dialect":
            return value or ""
        case "message" | "columns":
            if isinstance(value, str):
                value = [part.strip() for part in value.split(",") if part.strip()]
            if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
                raise InputError(
                    f"option {name!r} is {value!r}; it may be names, or text with commas between them"
                )
            return tuple(cast("Sequence[str]", value))
    if text not in ("true", "false"):
        raise InputError(f"option {name!r} is {value!r}; it may be true or false")
    return text == "true"


def one_of(option: str, word: str, known: Sequence[str], given: object) -> str:
    """Return `word` if it is known; raise InputError for the value `given` of an option if not."""
    if word not in known:
        raise InputError(f"option {option!r} is {given!r}; it may be {' or '.join(known)}")
    return word


def resolve_dialect(protocol: str, dialect: str) -> str:
    """Return the name of the package for a dialect of a protocol; InputError if there is none."""
    prefix = f"{protocol}_"
    known = known_protocols()
    if not dialect or prefix + dialect in known:
        return prefix + dialect if dialect else protocol
    others = [name.removeprefix(prefix) for name in known if name.startswith(prefix)]
    has = " and ".join(others) or "no dialect but its own"
    raise InputError(f"option 'dialect' is {dialect!r}; {protocol} has {has}")


def check_messages(protocol: str, messages: Sequence[str]) -> None:
    """Raise InputError for a message that the protocol does not have."""
    known = load_schemas(protocol).SCHEMAS
    for name in messages:
        if name not in known:
            raise InputError(f"option 'message' names {name!r}; {protocol} has {', '.join(known)}")


def check_columns(protocol: str, columns: Collection[str], others: Sequence[str] = ()) -> None:
    """Raise InputError for a column that is neither a decoded column nor in `others`."""
    fields = decoded_fields(protocol)
    known = {name.casefold() for name in (*fields, *others)}
    for message, type in load_schemas(protocol).SCHEMAS.items():
        known.update(f"{message}.{name}".casefold() for name in type.fieldNames())
    for name in columns:
        if name.casefold() not in known:
            raise InputError(
                f"option 'columns' names {name!r}; decoded {protocol} has {', '.join((*fields, *others))}, "
                "and their fields as Message.field"
            )


def name_noted(taken: Iterable[str]) -> list[StructField]:
    """Return the columns of `NOTED`; a name that is taken, ignoring case, gets a leading ``_``."""
    folded = {name.casefold() for name in taken}
    return [
        StructField(f"_{field.name}", field.dataType, field.nullable, field.metadata)
        if field.name in folded
        else field
        for field in NOTED
    ]


def noted_name(protocol: str, name: str) -> str:
    """Return the name of a column of `NOTED` beside the decoded columns of a protocol."""
    named = name_noted(load_schemas(protocol).DECODED.fieldNames())
    return named[NOTED.fieldNames().index(name)].name


def decoded_fields(protocol: str) -> dict[str, StructField]:
    """Return every column that decoded rows of a capture may have, by name."""
    decoded = load_schemas(protocol).DECODED
    fields = (*name_noted(decoded.fieldNames()), *ADDED, *decoded)
    return {field.name: field for field in fields}


def schema_of(protocol: str, options: Options) -> StructType:
    """Return the columns that `decode` returns for a capture with these options."""
    return StructType([field for field, _ in selected_fields(protocol, options)])


def struct_type(protocol: str, options: Options = PLAIN) -> StructType:
    """Return the struct type of back ends, or of `from_specwire` if there are options."""
    decoded = load_schemas(protocol).DECODED.fieldNames()
    return StructType([*(field for field in schema_of(protocol, options) if field.name in decoded), COUNT])


def selected_fields(protocol: str, options: Options) -> Iterator[tuple[StructField, StructField]]:
    """Yield each selected column: the field after and before the options are applied."""
    messages, only = load_schemas(protocol).SCHEMAS, _only(options.columns)
    always = {"_message": True, "_error": True, FRAMES: True, RECORD_ID.name: options.record_id}
    always |= {RECORD_FRAMES.name: options.record_frames, INPUT_FILE.name: options.input_file}
    for name, field in decoded_fields(protocol).items():
        if not always.get(name, not only or name.casefold() in only):
            continue
        if name == "_message":
            metadata = {**field.metadata, PROTOCOL: protocol}
            yield StructField(name, field.dataType, field.nullable, metadata), field
        elif name not in messages:
            yield field, field
        elif not options.message or name in options.message:
            type = _message_type(messages[name], only.get(name.casefold(), ()), options)
            yield StructField(name, type, field.nullable, field.metadata), field


def _only(columns: Collection[str]) -> Mapping[str, set[str]]:
    """Return the fields to keep of each column, in lower case; an empty set keeps all."""
    found: dict[str, set[str]] = {}
    whole = {name.casefold() for name in columns if "." not in name}
    for column in columns:
        name, _, field = column.casefold().partition(".")
        fields = found.setdefault(name, set())
        if field and name not in whole:
            fields.add(field)
    return found


def _message_type(fields: StructType, only: Collection[str], options: Options) -> StructType:
    """Return the struct of a message with the selected fields; `debug` adds their octets."""
    kept = [field for field in fields if not only or field.name.casefold() in only]
    octets = [hex_field(field, fields) for field in kept] if options.debug else []
    found = StructType([*kept, *octets])
    return cast(StructType, _with_longs(found)) if options.u64 == "long" else found


def _with_longs(type: DataType) -> DataType:
    """Return a type whose unsigned integers of eight octets are longs, at any depth."""
    match type:
        case ArrayType(elementType=element, containsNull=nulls):
            return ArrayType(_with_longs(element), nulls)
        case StructType():
            return StructType(
                [StructField(f.name, _with_longs(f.dataType), f.nullable, f.metadata) for f in type]
            )
    return LongType() if type == _U64 else type


def hex_field(field: StructField, beside: StructType) -> StructField:
    """Return the column of a field's octets, under a name that no other field has."""
    name = unused_name(f"{field.name}_hex", beside.fieldNames())
    return commented(name, _hex_type(field.dataType), f"Octets of {field.name}, hexadecimal.")


def unused_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, ignoring case: `name`, with as many ``_`` as needed."""
    folded = {one.casefold() for one in taken}
    while name.casefold() in folded:
        name += "_"
    return name


def _hex_type(type: DataType) -> DataType:
    match type:
        case ArrayType(elementType=element):
            return ArrayType(_hex_type(element))
        case StructType(fields=fields):
            return StructType([StructField(field.name, _hex_type(field.dataType)) for field in fields])
    return StringType()
