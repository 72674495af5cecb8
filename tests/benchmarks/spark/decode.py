"""Decoding Flux requests with payloads of 64 octets: each backend, and what people write without one.

Plain UDFs do the least that such a function can do, or what the backends do. The least: it is called with the header
alone, so that no payload goes to Python, and gives the header's fields. What the backends do: it is called with all
frames, finds out what message they are, and gives all of its fields. They are measured on a tenth of the capture and
their times multiplied, as is the backend that decodes row by row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.generated.flux import constructs, sql
from specwire.runtime.spark.decoding.backends import load_backend
from specwire.runtime.spark.decoding.decode import decode
from tests.benchmarks.spark.captures import SEGMENT_ROWS, flux_requests, in_segments
from tests.benchmarks.spark.harness import Bench, Row, consume

CASE = "flux request, payload of 64 octets"
SCAN = "scan"
QUERY = "sql, the query alone"
WANTED = {"jvm": 1.25, "arrow": 2.5, "sql": 3.5, QUERY: 3.5}
"""The most times of a scan that a backend may take."""
TIMES_CONSTRUCT = 40.0
"""A plain UDF with Construct that does what the backends do takes so many times as long as the first, or more."""
UNPACK, PARSE, CONSTRUCT = "UDF, struct.unpack, header", "UDF, Construct, header", "UDF, Construct, message"
ROW_BY_ROW = "python"
PLAIN = (UNPACK, PARSE, CONSTRUCT)
HEADER = "flags short, userid long, rolemask long, nodeid long, matchtag long"
MESSAGE = f"{HEADER}, routes array<string>, topic string, payload binary"


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for reading alone, for each backend that is there, and for each plain UDF."""
    count = in_segments(bench.rows)
    segments = bench.capture("flux", "flux", count, flux_requests)
    part = min(count, max(2 * SEGMENT_ROWS, in_segments(count / 10)))
    whole, some = partial(bench.read, segments), partial(bench.read, segments, part)
    ways: dict[str, Callable[[], object]] = {SCAN: lambda: consume(whole())}
    for name in there(bench, "flux"):
        ways[name] = partial(decoded, some if name == ROW_BY_ROW else whole, "flux", name)
    if "sql" in ways:
        ways[QUERY] = lambda: consume(queried(whole()))
    ways[UNPACK] = lambda: consume(header_by(some(), unpacking()))
    ways[PARSE] = lambda: consume(header_by(some(), parsing()))
    ways[CONSTRUCT] = lambda: consume(message_by(some(), parsing_all()))
    counted = dict.fromkeys((ROW_BY_ROW, *PLAIN), count / part)
    rows = list(bench.take_turns(CASE, ways, count, wanted=WANTED, counted=counted))
    yield from rows
    yield from against_first({row.way: row for row in rows})


def against_first(rows: Mapping[str, Row]) -> Iterator[Row]:
    """Yield how many times as long as the first backend each plain UDF takes."""
    first = next(way for way in rows if way != SCAN)
    quick = rows[first]
    for way in PLAIN:
        slow = rows[way]
        yield replace(
            slow,
            case=f"{CASE}, against {first}",
            ratio=slow.median_s / quick.median_s,
            best_ratio=slow.best_s / quick.best_s,
            wanted=-TIMES_CONSTRUCT if way == CONSTRUCT else None,
        )


def there(bench: Bench, protocol: str) -> list[str]:
    """Return the backends that were asked for and can decode a protocol here."""
    return [name for name in bench.backends if load_backend(name).available(bench.spark, protocol) is None]


def decoded(frame: Callable[[], DataFrame], protocol: str, backend: str) -> None:
    """Decode all of a capture."""
    consume(decode(frame(), protocol, backend=backend))


def queried(frame: DataFrame) -> DataFrame:
    """Decode with the package's SQL and nothing else: what is no message has no error, and no row goes to Python."""
    frame.createOrReplaceTempView("bench_captured")
    return frame.sparkSession.sql(sql.EXPRESSIONS.query("bench_captured"))


def header_by(frame: DataFrame, read: Callable[[bytes], tuple[int, ...]]) -> DataFrame:
    """Return the messages with what `read` makes of their last frame."""
    return frame.withColumn("header", F.udf(read, HEADER, useArrow=False)(F.element_at("frames", -1)))


def message_by(frame: DataFrame, read: Callable[[list[bytes]], tuple[object, ...]]) -> DataFrame:
    """Return the messages with what `read` makes of all their frames."""
    return frame.withColumn("message", F.udf(read, MESSAGE, useArrow=False)(F.col("frames")))


# Workers cannot import this module: a function goes to them whole where it is made by another.
def unpacking() -> Callable[[bytes], tuple[int, ...]]:
    """Return what reads a header as a program without a codec does."""

    def unpack_header(frame: bytes) -> tuple[int, ...]:
        fields: tuple[int, ...] = struct.unpack(">3xBIIII", frame)
        return fields

    return unpack_header


def parsing() -> Callable[[bytes], tuple[int, ...]]:
    """Return what reads a header with the package's Construct declaration."""

    def parse_header(frame: bytes) -> tuple[int, ...]:
        found: Any = constructs.request.parse(frame)
        return found.flags, found.userid, found.rolemask, found.nodeid, found.matchtag

    return parse_header


def parsing_all() -> Callable[[list[bytes]], tuple[object, ...]]:
    """Return what reads a message with the package's Construct declarations."""

    def parse_message(frames: list[bytes]) -> tuple[object, ...]:
        _, found = constructs.parse(frames)
        header = found["flags"], found["userid"], found["rolemask"], found["nodeid"], found["matchtag"]
        return *header, found["routes"], found["topic"], found["payload"]

    return parse_message
