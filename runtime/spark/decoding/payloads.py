"""Payloads with separate schemas, on Spark.

The Spark version of `specwire.runtime.schemas.payloads.with_payloads`. Both return the same columns
for the same rows. Spark reads the JSON itself, inside the Java process.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from specwire.runtime.schemas.payloads import MAX_OCTETS, Payload
from specwire.runtime.spark.errors import InputError

PAYLOAD_OF = "payload_of"
"""Metadata key of a payload column, with the messages that have such payloads."""


def with_payloads(decoded: DataFrame, payloads: Sequence[Payload]) -> DataFrame:
    """Return decoded rows, as from `decode`, with an added column for each kind of payload.

    `tables` adds the column to the tables of the messages that have such payloads.

    Raises:
        InputError: the rows lack the messages that may have such payloads.
    """
    there = set(decoded.columns)
    added: dict[str, Column] = {}
    for payload in payloads:
        missing = [message for message, _ in payload.places if message not in there]
        if missing:
            raise InputError(
                f"the DataFrame has no column {missing[0]!r}: with_payloads() takes what decode() gives"
            )
        type = from_arrow_type(payload.type)
        assert isinstance(type, StructType)
        found = [_column(payload, message, field, type) for message, field in payload.places]
        comment = f"Payload of the messages whose {payload.by} is like {payload.pattern}; null in others."
        messages = list(dict.fromkeys(message for message, _ in payload.places))
        metadata = {"comment": comment, PAYLOAD_OF: messages}
        added[payload.column] = F.coalesce(*found).alias(payload.column, metadata=metadata)
    return decoded.select("*", *added.values())


def _column(payload: Payload, message: str, field: str, type: StructType) -> Column:
    """Return the payload in one field of a message.

    Null if it is not a JSON object or of another kind.
    """
    content = F.col(message)[field]
    small = F.when(F.octet_length(content) <= MAX_OCTETS, content)
    text = F.rtrim(F.try_validate_utf8(small.cast("string")), F.lit("\0"))
    wanted = F.col(message)[payload.by].rlike(rf"(?s)\A(?:{payload.pattern})\z")
    is_object = text.rlike(r"\A\s*\{") & F.try_parse_json(text).isNotNull()
    return F.when(wanted & is_object, F.from_json(text, type))
