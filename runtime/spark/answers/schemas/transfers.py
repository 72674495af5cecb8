"""The table of files sent by FILEMQ, each time that a file was sent or deleted."""

from __future__ import annotations

from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.schemas.shared import (
    DOUBLE,
    LONG,
    MOMENT,
    PLACE,
    TEXT,
    TIMESTAMP,
    column,
    micros,
)

TRANSFERS = StructType(
    [
        *PLACE,
        column("filename", TEXT, "virtual path of the file"),
        *MOMENT,
        column("ended_ts", TIMESTAMP, "when its latest message came"),
        column("last_seq", LONG, "the tap's count of that message"),
        column("last_mono", LONG, "when that was, the tap's monotonic clock", "nanoseconds"),
        column(
            "offset", LONG, "where in the file its first chunk begins: 0, or where it was resumed", "octets"
        ),
        column("size", LONG, "size of the file as the headers state it, null where they do not", "octets"),
        column("chunks", LONG, "chunks that hold octets"),
        column("octets", LONG, "octets of the file that were sent", "octets"),
        column(
            "outcome",
            TEXT,
            "complete (its end came), cut (another file, a deletion or a new beginning of it came first), "
            "ended (the peer left or the conversation began anew), deleted (the message says that the file "
            "is gone), open (not over yet)",
        ),
        micros("duration_us", "from its first chunk to its latest message"),
        column("octets_per_s", DOUBLE, "octets by duration; null where that is 0", "octets/s"),
        column("stalls", LONG, "times that the credit was used up in the middle of the file"),
        micros(
            "stalled_us",
            "time in which it was, until the next credit or, where none came, the latest message",
        ),
    ]
)
