"""Spark schemas as SQL writes them: names, types, and each column's comment."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import StructType


def column_lines(schema: StructType) -> Iterator[str]:
    """Yield ``name TYPE COMMENT '…'`` for each field; Spark reads the joined lines as a schema."""
    for field in schema.fields:
        comment = field.metadata.get("comment", "")
        quoted = comment.replace("\\", "\\\\").replace("'", "\\'")
        yield f"`{field.name}` {field.dataType.simpleString().upper()}" + (
            f" COMMENT '{quoted}'" if comment else ""
        )
