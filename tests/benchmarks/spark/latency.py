"""Latency of remote procedure calls from typed tables, against reading these tables whole.

Half of the messages are requests and half are responses, on a thousand connections with a few tags each, so every tag
is used hundreds of times. Beside the product's way there are the two that come to mind: to join or group by tag, which
is wrong where tags are used again (`group by`), and to look at the message before by `lag`, which is right for calls
with one response each but knows neither streams nor what is left over.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.requests import advance
from specwire.runtime.spark.protocols import load_schemas
from tests.benchmarks.spark.conversations import warm_rounds
from tests.benchmarks.spark.harness import Bench, Row, consume

CONNECTIONS = 1000
TAGS = 4
WANTED = 7.2
"""What `lag` by connection, tag and time was measured to take, times the scan."""

NOTED = {
    "ts": "timestamp_micros(1780000000000000 + {seq} * 10)",
    "mono": "{seq} * 10000",
    "seq": "{seq}",
    "protocol": "'flux'",
    "tap": "'broker-0-4711-63f1a2b3c4d5e'",
    "conversation": f"concat('5a6b7c8d-0f38f44e-8d4a-4a3d-8d0b-', lpad(id % {CONNECTIONS}, 12, '0'))",
    "sender": "'{sender}'",
    "peer": f"concat('0f38f44e-8d4a-4a3d-8d0b-', lpad(id % {CONNECTIONS}, 12, '0'))",
    "octets": "104L",
}
FIELDS = {
    "routes": "array('3b8a5f0d-8d4a-4a3d-8d0b-0d2c0d2c0d2c')",
    "topic": "element_at(array('kvs-watch.lookup', 'job-manager.submit', 'broker.ping'), cast(id % 3 + 1 as int))",
    "payload": "unhex(repeat(sha2(cast(id as string), 256), 2))",
    "flags": "cast(11 as smallint)",
    "userid": "1000L",
    "rolemask": "5L",
    "nodeid": "4294967295L",
    "errnum": "if(id % 100 = 0, 2L, 0L)",
    "matchtag": f"floor(id / {CONNECTIONS}) % {TAGS} + 1",
}


def measure(bench: Bench) -> Iterator[Row]:
    """Yield what each way takes."""
    typed = {
        name: _table(bench, name, offset)
        for name, offset in (("Request", 0), ("Response", 6 * CONNECTIONS + 1))
    }

    def ours() -> None:
        consume(advance(typed, "flux").rows["requests"])

    def scan() -> None:
        for table in typed.values():
            consume(table)

    yield from bench.take_turns(
        "RPC latency",
        {
            "scan": scan,
            "group by (wrong where tags are used again)": lambda: consume(_group(typed)),
            "lag": lambda: consume(_lag(typed)),
            "answers.requests": ours,
        },
        bench.rows,
        wanted={"answers.requests": WANTED},
        warm=warm_rounds(bench),
    )


def _table(bench: Bench, message: str, offset: int) -> DataFrame:
    """Return a typed table; a response comes three requests of its connection later than its request."""
    place = str(bench.folder / f"latency-{message}-{bench.rows}")
    names = {"Request": ("C", 0), "Response": ("S", offset)}
    sender, late = names[message]
    seq = f"(id * 2 + {late})"
    columns = NOTED | {name: FIELDS[name] for name in load_schemas("flux").SCHEMAS[message].fieldNames()}
    made = (f"{sql.format(seq=seq, sender=sender)} as {name}" for name, sql in columns.items())
    bench.spark.range(bench.rows // 2).selectExpr(*made).write.mode("overwrite").parquet(place)
    return bench.spark.read.parquet(place)


def _words(typed: dict[str, DataFrame]) -> DataFrame:
    columns = ("tap", "conversation", "matchtag", "seq", "mono", "topic")
    asked = typed["Request"].select(*columns, F.lit(True).alias("asks"))
    return asked.unionByName(typed["Response"].select(*columns, F.lit(False).alias("asks")))


def _group(typed: dict[str, DataFrame]) -> DataFrame:
    first = F.min(F.when(F.col("asks"), F.col("mono")))
    last = F.max(F.when(~F.col("asks"), F.col("mono")))
    grouped = _words(typed).groupBy("tap", "conversation", "matchtag")
    return grouped.agg(F.max("topic").alias("topic"), ((last - first) / 1000).alias("latency_us"))


def _lag(typed: dict[str, DataFrame]) -> DataFrame:
    before = Window.partitionBy("tap", "conversation", "matchtag").orderBy("seq")
    paired = _words(typed).withColumns(
        {"was": F.lag("mono").over(before), "asked": F.lag("asks").over(before)}
    )
    return paired.where("asked and not asks").withColumn("latency_us", (F.col("mono") - F.col("was")) / 1000)
