"""Files that FILEMQ carried, for the summary: counted from the typed table of chunks.

FILEMQ has no word for the end of a file; servers mark it with an empty chunk at the file's size.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.pipeline.store import TYPED
from specwire.runtime.spark.pipeline.summary import Transfer
from specwire.runtime.spark.pipeline.view import View

CHUNKS = "Cheezburger"
"""The message that carries files, in FILEMQ and in the C implementation's form of it."""

KEPT = 200


def find_transfers(view: View, protocols: Iterable[str]) -> tuple[Transfer, ...]:
    """Return the files by conversation, the largest of each protocol first."""
    found: list[Transfer] = []
    for protocol in protocols:
        table = view.table(f"{TYPED}/{protocol}/{CHUNKS}")
        if table is not None:
            found += count_transfers(table, protocol)
    return tuple(found)


def count_transfers(cheezburgers: DataFrame, protocol: str) -> list[Transfer]:
    """Count the files in a table of chunks, by conversation, the largest first; at most `KEPT`."""
    created, size = F.col("operation") == 1, F.octet_length("chunk")
    counted = cheezburgers.groupBy("tap", "conversation", "peer").agg(
        F.count_if(created & (F.col("offset") == 0)).alias("begun"),
        F.count_if(created & (size == 0)).alias("ended"),
        F.count_if(F.col("operation") == 2).alias("deleted"),
        F.count_if(size > 0).alias("chunks"),
        F.sum(size.cast("long")).alias("octets"),
        ((F.max("mono") - F.min("mono")) / 1e9).alias("seconds"),
    )
    ranked = counted.orderBy(F.desc("octets"), "tap", "conversation").limit(KEPT)
    return [Transfer(protocol=protocol, **row.asDict()) for row in ranked.collect()]
