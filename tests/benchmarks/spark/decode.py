"""Decoding Flux requests with payloads of 64 octets: each backend, and what people write without one.

A plain UDF is called with the header alone, so that no payload goes to Python, and its rows are the header's
fields; it is measured on a tenth of the capture and its time multiplied, as is the backend that decodes row by row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.generated.flux import constructs
from specwire.runtime.spark.decoding.backends import load_backend
from specwire.runtime.spark.decoding.decode import decode
from tests.benchmarks.spark.captures import SEGMENT_ROWS, flux_requests
from tests.benchmarks.spark.harness import Bench, Row, consume

CASE = "flux request, payload of 64 octets"
SCAN = "scan"
WANTED = {"jvm": 1.25, "arrow": 2.5, "sql": 3.5}
"""The most times of a scan that a backend may take."""
CONSTRUCT, UNPACK, ROW_BY_ROW = "UDF, Construct", "UDF, struct.unpack", "python"
HEADER = "flags short, userid long, rolemask long, nodeid long, matchtag long"


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for reading alone, for each backend that is there, and for each plain UDF."""
    segments = bench.capture("flux", "flux", bench.rows, flux_requests)
    part = min(bench.rows, max(2 * SEGMENT_ROWS, bench.rows // 10))
    whole, some = partial(bench.read, segments), partial(bench.read, segments, part)
    ways: dict[str, Callable[[], object]] = {SCAN: lambda: consume(whole())}
    for name in there(bench, "flux"):
        ways[name] = partial(decoded, some if name == ROW_BY_ROW else whole, "flux", name)
    ways[UNPACK] = lambda: consume(header_by(some(), unpacking()))
    ways[CONSTRUCT] = lambda: consume(header_by(some(), parsing()))
    scale = len(segments) * SEGMENT_ROWS / part
    counted = dict.fromkeys((ROW_BY_ROW, UNPACK, CONSTRUCT), scale)
    yield from bench.take_turns(CASE, ways, bench.rows, wanted=WANTED, counted=counted)


def there(bench: Bench, protocol: str) -> list[str]:
    """Return the backends that were asked for and can decode a protocol here."""
    return [name for name in bench.backends if load_backend(name).available(bench.spark, protocol) is None]


def decoded(frame: Callable[[], DataFrame], protocol: str, backend: str) -> None:
    """Decode all of a capture."""
    consume(decode(frame(), protocol, backend=backend))


def header_by(frame: DataFrame, read: Callable[[bytes], tuple[int, ...]]) -> DataFrame:
    """Return the messages with what `read` makes of their last frame."""
    return frame.withColumn("header", F.udf(read, HEADER, useArrow=False)(F.element_at("frames", -1)))


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
