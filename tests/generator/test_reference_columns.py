"""The columns that a reference page shows are those that the generated schema has."""

from __future__ import annotations

import pytest

from specwire.generator.emit.reference.columns import view_columns
from tests.generator.reference_pages import NAMES, compilation

pytest.importorskip("pyspark", reason="compares with the schemas of Spark")


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_of_the_schema(name: str) -> None:
    """Name, type, whether it may be null, comment: of every message of every protocol."""
    package = pytest.importorskip(f"specwire.generated.{name}")
    protocol = compilation(name).protocol
    for message in protocol.messages:
        shown = view_columns(message, protocol).rows
        fields = package.schema.TABLES[message.class_name].fields
        assert [row[0] for row in shown] == [field.name for field in fields]
        for (column, kind, null, unit, comment), field in zip(shown, fields, strict=True):
            assert kind.replace(", ", ",").replace(": ", ":") == field.dataType.simpleString(), column
            assert (null == "never") is not field.nullable, column
            assert unit == field.metadata.get("unit", "")
            assert field.metadata["comment"] in comment, column
