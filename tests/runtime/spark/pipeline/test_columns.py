"""The union of the columns of a table: their order, types and nulls, and what cannot be one column."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.columns import unite

TABLE = "typed/ticker/Quote"


def columns(**types: DataType) -> StructType:
    """Return columns that are never null."""
    return StructType([StructField(name, type, False) for name, type in types.items()])


def test_new_columns_come_last_and_are_nullable() -> None:
    """So is a column that the later edition no longer has."""
    old = columns(ts=LongType(), price=LongType(), note=StringType())
    new = columns(ts=LongType(), price=LongType(), volume=LongType())
    found = unite(TABLE, [old, new])
    assert [(field.name, field.nullable) for field in found] == [
        ("ts", False), ("price", False), ("note", True), ("volume", True),
    ]  # fmt: skip
    assert unite(TABLE, [found, new]) == unite(TABLE, [found, old]) == found


def test_the_wider_integer() -> None:
    """In either order; a number of 64 bits without sign is a decimal."""
    u64 = DecimalType(20, 0)
    for one, other, wider in ((IntegerType(), LongType(), LongType()), (u64, LongType(), u64)):
        for schemas in ([columns(n=one), columns(n=other)], [columns(n=other), columns(n=one)]):
            assert unite(TABLE, schemas)["n"].dataType == wider


def test_a_field_that_a_file_of_version_0_1_has() -> None:
    """`edition` was a field of the message there and still is."""
    old = columns(tap=StringType(), edition=StringType())
    new = columns(
        tap=StringType(), conversation_name=StringType(), _edition=StringType(), edition=StringType()
    )
    assert unite(TABLE, [old, new]).fieldNames() == ["tap", "edition", "conversation_name", "_edition"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            columns(price=LongType()),
            columns(price=StringType()),
            "the column price is bigint in one edition and string in another",
        ),
        (
            columns(sender=StringType(), price=LongType()),
            columns(_sender=StringType(), sender=StringType()),
            "the column sender is a field of the message in one edition and the tap's column in another",
        ),
        (
            columns(conversation_name=StringType(), edition=StringType()),
            columns(conversation_name=StringType(), _edition=StringType(), edition=StringType()),
            "the column edition is a field of the message in one edition and the tap's column in another",
        ),
    ],
)
def test_columns_that_are_not_one(old: StructType, new: StructType, sentence: str) -> None:
    """One sentence with the table, the column and what to do; in either order."""
    for schemas in ([old, new], [new, old]):
        with pytest.raises(InputError) as caught:
            unite(TABLE, schemas)
        assert str(caught.value).startswith(f"{TABLE}: the column ")
        assert str(caught.value).endswith(": read the editions into two folders")
    with pytest.raises(InputError) as caught:
        unite(TABLE, [old, new])
    assert sentence in str(caught.value)
