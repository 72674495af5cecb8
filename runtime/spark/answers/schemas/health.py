"""The tables of what is not well: silences, reconnects, gaps in numbering, messages that did not decode."""

from __future__ import annotations

from pyspark.sql.types import BooleanType, StructType

from specwire.runtime.spark.answers.schemas.shared import (
    DOUBLE,
    LONG,
    MOMENT,
    PLACE,
    STORED,
    TAP,
    TEXT,
    TIMESTAMP,
    column,
)

SENDER = column("sender", TEXT, "role letter of the side in question")

SILENCES = StructType(
    [
        *PLACE,
        SENDER,
        *MOMENT,
        column("until_ts", TIMESTAMP, "when it spoke again; null where it has not"),
        column("until_seq", LONG, "the tap's count of that message"),
        column("silent_s", DOUBLE, "how long, to its next message or to the tap's latest", "seconds"),
        column("threshold_s", DOUBLE, "the silence that was let pass", "seconds"),
        column("beats", LONG, "heartbeats that the side had sent in this conversation before"),
        column("missed", LONG, "heartbeats that would have fitted into the silence"),
        column("outcome", TEXT, "again (it spoke again), silent (not yet), gone (given up)"),
    ]
)
"""`ts`, `seq` and `mono` are those of the last message before the silence."""

RECONNECTS = StructType(
    [
        *PLACE,
        *MOMENT,
        column(
            "kind", TEXT, "connection (a new one of the peer after its last one) or greeting (a second one)"
        ),
        column("before", TEXT, "the conversation before; the same one for a greeting"),
        column("away_s", DOUBLE, "since the latest message of the conversation before", "seconds"),
    ]
)
"""`ts`, `seq` and `mono` are those of the first message of the new connection, or of the greeting."""

GAPS = StructType(
    [
        *PLACE,
        SENDER,
        *MOMENT,
        column("message", TEXT, "class of the message whose number does not follow"),
        column("expected", LONG, "the number that would have followed"),
        column("found", LONG, "the number that came"),
        column("missing", LONG, "numbers that are missing; 0 where it went back"),
        column("kind", TEXT, "gap, repeat (the same number again) or back (a lower number)"),
        column(
            "filtered", BooleanType(), "whether the receiver had asked for a choice: then gaps are natural"
        ),
    ]
)

ERRORS = StructType(
    [
        *STORED,
        TAP,
        SENDER,
        column("message", TEXT, "message that the octets seem to be; null where not even that is known"),
        column("field", TEXT, "path of the field at fault"),
        column("kind", TEXT, "what is wrong with it: length, text, range, ..."),
        column("messages", LONG, "messages that did not decode for this reason"),
        column("octets", LONG, "their octets", "octets"),
        column("first_ts", TIMESTAMP, "when the first came"),
        column("last_ts", TIMESTAMP, "when the last came"),
        column("text", TEXT, "the finding of the first of them by seq, as a sentence"),
    ]
)
