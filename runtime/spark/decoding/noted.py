"""What stands beside the decoded columns: what the tap noted of each message, and how it is called there.

Column names are compared without regard to case, so a name of the tap that a message type also has (``Peer``)
gets a leading ``_``, which no name from a grammar begins with.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import LongType, StructField, StructType

from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.capture import ENVELOPE

OCTETS = StructField(
    "octets", LongType(), False, metadata={"comment": "octets of all frames", "unit": "octets"}
)
NOTED = StructType([*ENVELOPE, OCTETS])
"""The columns that come before the decoded ones."""

FRAMES = "_frames"
"""The raw frames: of all rows before they are decoded, of faulty ones after."""


def name_noted(taken: Iterable[str]) -> list[StructField]:
    """Return the columns of `NOTED` under names that differ from the taken ones, case aside."""
    folded = {name.casefold() for name in taken}
    return [_rename(field, f"_{field.name}") if field.name in folded else field for field in NOTED]


def noted_name(protocol: str, name: str) -> str:
    """Return what a column of `NOTED` is called beside the decoded columns of a protocol."""
    named = name_noted(load_schemas(protocol).DECODED.fieldNames())
    return named[NOTED.fieldNames().index(name)].name


def _rename(field: StructField, name: str) -> StructField:
    return StructField(name, field.dataType, field.nullable, field.metadata)
