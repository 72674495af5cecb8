"""Spark schemas as SQL writes them: names, types, what is never null, and each column's comment."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import ArrayType, DataType, StructType


def column_lines(schema: StructType) -> Iterator[str]:
    """Yield ``name TYPE NOT NULL COMMENT '…'`` for each field; Spark reads the joined lines as a schema."""
    for field in schema.fields:
        comment = field.metadata.get("comment", "")
        quoted = comment.replace("\\", "\\\\").replace("'", "\\'")
        required = "" if field.nullable else " NOT NULL"
        said = f" COMMENT '{quoted}'" if comment else ""
        yield f"{_name(field.name)} {_type(field.dataType)}{required}{said}"


def _type(type: DataType) -> str:
    """The type in capitals; names inside it as they are."""
    match type:
        case ArrayType(elementType=element):
            return f"ARRAY<{_type(element)}>"
        case StructType(fields=fields):
            return f"STRUCT<{', '.join(f'{_name(field.name)}: {_type(field.dataType)}' for field in fields)}>"
    return type.simpleString().upper()


def _name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
