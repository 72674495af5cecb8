"""Spark schemas as SQL writes them: names, types, what is never null, and each column's comment."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import ArrayType, DataType, StructType


def column_lines(schema: StructType) -> Iterator[str]:
    """Yield ``name TYPE NOT NULL COMMENT '…'`` for each field; Spark reads the joined lines as a schema."""
    for field in schema.fields:
        comment = field.metadata.get("comment", "")
        required = "" if field.nullable else " NOT NULL"
        said = f" COMMENT {quote_text(comment)}" if comment else ""
        yield f"{quote_name(field.name)} {_type(field.dataType)}{required}{said}"


def _type(type: DataType) -> str:
    """The type in capitals; names inside it as they are."""
    match type:
        case ArrayType(elementType=element):
            return f"ARRAY<{_type(element)}>"
        case StructType(fields=fields):
            return f"STRUCT<{', '.join(f'{quote_name(field.name)}: {_type(field.dataType)}' for field in fields)}>"
    return type.simpleString().upper()


def quote_name(name: str) -> str:
    """Return an identifier as SQL writes it."""
    return f"`{name.replace('`', '``')}`"


def quote_text(text: str) -> str:
    """Return a string as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
