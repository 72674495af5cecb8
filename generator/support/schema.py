"""Spark types that the schemas of all packages share; the twin of ``specwire.generated.columns``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.generated.column_metadata import message_metadata, rule_metadata

PAIRS = ArrayType(StructType([StructField("name", StringType()), StructField("value", StringType())]))
"""Type of a dictionary: pairs in wire order, repeated names included."""

BINARY_PAIRS = ArrayType(StructType([StructField("name", StringType()), StructField("value", BinaryType())]))
"""Type of a dictionary whose values are octets."""

ERROR = StructType(
    [
        StructField("message", StringType()),
        StructField("field", StringType()),
        StructField("frame", IntegerType()),
        StructField("offset", LongType()),
        StructField("kind", StringType()),
        StructField("text", StringType()),
    ]
)

COMMON = (
    StructField(
        "_message", StringType(), True, {"comment": "Class of the message; null where it does not decode."}
    ),
    StructField("_error", ERROR, True, {"comment": "Why the message does not decode; null where it does."}),
    StructField(
        "_frames",
        ArrayType(BinaryType()),
        True,
        {"comment": "The raw frames of a message that does not decode."},
    ),
)
"""Columns that every protocol has."""


def rule_field(
    edition: str,
    name: str,
    kind: DataType,
    comment: str,
    rule: str,
    line: int = 0,
    *,
    named: bool = True,
    **more: str,
) -> StructField:
    """Return the column for a field of a message; for the other arguments see `rule_metadata`."""
    return StructField(name, kind, True, rule_metadata(edition, comment, rule, line, named=named, **more))


def decoded(schemas: Mapping[str, StructType], rules: Mapping[str, str]) -> StructType:
    """Return the columns of decoded messages: the common ones, and one for each message class.

    Args:
        rules: for each message class name, the rule that defines it.
    """
    own = [StructField(name, schemas[name], True, message_metadata(rule)) for name, rule in rules.items()]
    return StructType([*COMMON, *own])


def flag(name: str, of: str, mask: int, comment: str) -> StructField:
    """Return the table column for one bit of the column `of`."""
    return StructField(name, BooleanType(), True, {"comment": comment, "of": of, "mask": mask})


def json(name: str, of: str, comment: str) -> StructField:
    """Return the table column for the JSON text in the column `of`."""
    return StructField(name, StringType(), True, {"comment": comment, "of": of})


def time(name: str, of: str, unit: str, epoch: str, comment: str, *, many: bool = False) -> StructField:
    """Return the table column for the time that the number in the column `of` means.

    With `many`, `of` is a list of numbers.
    """
    type = ArrayType(TimestampType()) if many else TimestampType()
    return StructField(name, type, True, {"comment": comment, "of": of, "timestamp": unit, "epoch": epoch})


def table(fields: StructType, required: Collection[str], *derived: StructField) -> StructType:
    """Return the columns of a message's table: its fields, then the derived columns.

    The `required` fields are never null, nor are the bits of one. A derived column has the ``abnf``
    and ``source`` of its field.
    """
    own = [StructField(f.name, f.dataType, f.name not in required, f.metadata) for f in fields]
    more = [StructField(d.name, d.dataType, _nullable(d, required), _provenance(fields, d)) for d in derived]
    return StructType(own + more)


def _nullable(derived: StructField, required: Collection[str]) -> bool:
    return "mask" not in derived.metadata or derived.metadata["of"] not in required


def _provenance(fields: StructType, derived: StructField) -> dict[str, object]:
    known = fields[derived.metadata["of"]].metadata
    return {**derived.metadata, **{key: known[key] for key in ("abnf", "source") if key in known}}
