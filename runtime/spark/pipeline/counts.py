"""Counts of messages and octets by tap, time, type, sender and finding.

One Spark job counts each protocol of a run. The result has about `STRETCHES` rows for each key
without its time. The driver collects the rows and stores them in the table ``counts`` of the output
folder, beside those of earlier runs. Rows are summed, never recomputed. Summary, taps and totals
are computed from them without Spark (`specwire.runtime.spark.pipeline.summing`).

Times are rounded down to stretches of one of `WIDTHS_MS`, chosen for the time span of the run. Each
width divides the next, so rows of different runs add up at the wider one. The files of many runs
are merged into one, at the width for the time span of all of them. Therefore a stream with one run
a second has no more rows after a month than after a minute.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.package_search import without_edition
from specwire.runtime.spark.decoding.tables import noted_columns
from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
from specwire.runtime.spark.pipeline.summary import UNKNOWN
from specwire.runtime.spark.protocols import role_letters

TABLE = "counts"
MERGED_AFTER = 64

SECOND_MS = 1000
DAY_MS = 86_400 * SECOND_MS
WIDTHS_MS = (
    *(1, 2, 10, 20, 100, 200),
    *(seconds * SECOND_MS for seconds in (1, 2, 10, 20, 60, 120, 600, 1200, 3600, 7200, 21_600)),
    *(days * DAY_MS for days in (1, 7, 28, 364, 3640, 36_400, 364_000)),
)
STRETCHES = 240
"""Maximum stretches of time in one run.

For three hours a stretch is a minute, so that a burst of a minute is visible.
"""

UNKNOWN_SENDER = "?"

Way = Literal["sum", "min", "max"]
"""Aggregation of rows with the same key."""

KEY = ("protocol", "tap", "since", "sender", "message", "wrong_message", "wrong_field", "wrong_kind")

_COMMENTS = {
    "protocol": "what the messages were read as",
    "tap": "id of the tap",
    "since": "begin of the stretch, milliseconds since 1970",
    "sender": "role letter; empty or ? where unknown",
    "message": "class of the message; null where it did not decode",
    "wrong_message": "message in the finding, where it got so far",
    "wrong_field": "field in the finding, indexes left out",
    "wrong_kind": "kind of the finding; null where the message decoded",
    "messages": "how many there are",
    "octets": "of all frames",
    "first": "least ts, microseconds since 1970",
    "last": "greatest ts, microseconds since 1970",
    "text": "the finding of one of them",
    "width_ms": "length of the stretch, milliseconds",
}
_NUMBERS = ("since", "messages", "octets", "first", "last", "width_ms")
_FIELDS: list[pa.Field[pa.DataType]] = [
    pa.field(name, pa.int64() if name in _NUMBERS else pa.string(), metadata={"comment": comment})
    for name, comment in _COMMENTS.items()
]
SCHEMA = pa.schema(_FIELDS)


def choose_width_ms(span_us: int) -> int:
    """Return the length of a stretch for a run that spans `span_us` microseconds."""
    return next((width for width in WIDTHS_MS if span_us < width * 1000 * STRETCHES), WIDTHS_MS[-1])


def count_rows(decoded: DataFrame, package: str, width_ms: int) -> pa.Table:
    """Count the rows that a package decoded; for `UNKNOWN` those that none decodes.

    Runs one job, and a second one over the messages that did not decode, if there are any.
    """
    noted = [F.col("*")] if package == UNKNOWN else noted_columns(package)
    rows = decoded.select(*noted, "_message", "_error").select(
        F.lit(without_edition(package)).alias("protocol"),
        "tap",
        _cut(F.unix_micros("ts"), width_ms).alias("since"),
        _known_sender(package).alias("sender"),
        F.col("_message").alias("message"),
        F.col("_error")["message"].alias("wrong_message"),
        # With the index, each wrong item of a list would get a row.
        F.regexp_replace(F.col("_error")["field"], r"\[\d+\]", "[]").alias("wrong_field"),
        F.col("_error")["kind"].alias("wrong_kind"),
        "octets",
        F.unix_micros("ts").alias("at"),
        F.col("_error")["text"].alias("text"),
    )
    numbers = (
        F.count("*").alias("messages"),
        F.sum("octets").alias("octets"),
        F.min("at").alias("first"),
        F.max("at").alias("last"),
        F.lit(width_ms).cast("long").alias("width_ms"),
    )
    counted = rows.groupBy(*KEY).agg(*numbers).toArrow()
    # A separate job: for the minimum of a text, Spark sorts all rows instead of using a hash table.
    wrong = pc.is_valid(counted["wrong_kind"])
    if pc.any(wrong).as_py():
        told = rows.where(F.col("wrong_kind").isNotNull()).groupBy(*KEY).agg(F.min("text").alias("text"))
        counted = _with_texts(counted, told.toArrow())
    else:
        counted = counted.append_column("text", pa.nulls(counted.num_rows, pa.string()))
    return counted.select(SCHEMA.names).cast(SCHEMA)


def _with_texts(counted: pa.Table, told: pa.Table) -> pa.Table:
    """Return counts with the texts of their keys. Arrow's join does not match null keys."""
    texts = {tuple(key): text for *key, text in map(dict.values, told.select([*KEY, "text"]).to_pylist())}
    found = [texts.get(tuple(row.values())) for row in counted.select(KEY).to_pylist()]
    return counted.append_column("text", pa.array(found, pa.string()))


def _known_sender(package: str) -> Column:
    """Return the role letter: empty if none is stated, `UNKNOWN_SENDER` for any other text."""
    sender = F.coalesce(F.col("sender"), F.lit(""))
    return F.when(sender.isin("", *role_letters(package)), sender).otherwise(UNKNOWN_SENDER)


def _cut(micros: Column, width_ms: int) -> Column:
    return (F.floor(micros / F.lit(width_ms * 1000.0)) * width_ms).cast("long")


def read_counts(out: Path) -> pa.Table:
    """Return the counts of all runs of an output folder."""
    found = [pq.read_table(path, schema=SCHEMA) for path in visible_files(out / TABLE)]
    return pa.concat_tables([SCHEMA.empty_table(), *found])


def write_counts(run: Run, earlier: pa.Table, counted: Iterable[pa.Table]) -> pa.Table:
    """Stage the counts of a run; return the counts of all runs, `earlier` and new.

    Many small files of earlier runs are merged into one. Its stretches have the width for the whole
    time span, and rows of one stretch are summed.
    """
    added = pa.concat_tables([SCHEMA.empty_table(), *counted])
    whole = pa.concat_tables([earlier, added])
    files = visible_files(run.out / TABLE)
    if len(files) >= MERGED_AFTER:
        run.replace(files)
        added = whole = add_up(cut(whole, choose_width_ms(span_us(whole))))
    if added.num_rows:
        folder = run.folder(Area.ADDED, TABLE)
        folder.mkdir(parents=True)
        pq.write_table(added, folder / "part-0.parquet")
    return whole


def span_us(counts: pa.Table) -> int:
    """Return the time from the first message to the last in microseconds; 0 without messages."""
    first, last = pc.min(counts["first"]).as_py(), pc.max(counts["last"]).as_py()
    return 0 if first is None else int(last - first)


def cut(counts: pa.Table, width_ms: int) -> pa.Table:
    """Return counts with stretches of at least this width; wider ones do not change.

    `width_ms` is one of `WIDTHS_MS`, so an earlier stretch never spans two new ones.
    """
    since, widths = counts["since"], pc.max_element_wise(counts["width_ms"], width_ms)
    begins = pc.multiply(pc.divide(since, widths), widths)
    # Arrow's division rounds towards zero: before 1970 it returns one stretch too late.
    begins = pc.if_else(pc.greater(begins, since), pc.subtract(begins, widths), begins)
    for name, column in (("since", begins), ("width_ms", widths)):
        counts = counts.set_column(counts.column_names.index(name), SCHEMA.field(name), column)
    return counts


def add_up(counts: pa.Table) -> pa.Table:
    """Return counts with the rows of one key and width summed."""
    keys = [*KEY, "width_ms"]
    ways: dict[str, Way] = {"messages": "sum", "octets": "sum", "first": "min", "last": "max", "text": "min"}
    summed = counts.group_by(keys).aggregate(list(ways.items()))
    named = {f"{name}_{way}": name for name, way in ways.items()}
    return (
        summed.rename_columns([named.get(name, name) for name in summed.column_names])
        .select(SCHEMA.names)
        .cast(SCHEMA)
    )
