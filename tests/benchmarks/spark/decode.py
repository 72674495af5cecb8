"""Decoding Flux requests with payloads of 64 octets: each backend, and what people write without one.

A backend decodes the headers alone, the fields of the last frame and the tap's count, by the option ``columns``: the
goals `GOALS` are for these. And it decodes whole messages, every field of them beside what the tap noted, with the
goals `LIMITS`. Both are compared with reading the whole capture.

Each backend has a session of its own, as users have: a Java process that has run nothing but this backend and its
yardstick, the scan. In one session for all, what Java's compiler had made of the others was seen to make the quickest
take half as long again. Both ways go through `WARM` rounds first, in which the compiler does most of its work.

Plain UDFs are measured behind the backend that they are held against, in its session. They do the least that such a
function can do, or what the backends do. The least: it is called with the header alone, so that no payload goes to
Python, and gives the header's fields. What the backends do: it is called with all frames, finds out what message they
are, and gives all of its fields. They are measured on a tenth of the capture and their times multiplied, as is the
backend that decodes row by row.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.generated.flux import constructs
from specwire.runtime.spark import register
from specwire.runtime.spark.decoding.backends import BACKENDS, load_backend
from specwire.runtime.spark.decoding.decode import decode
from tests.benchmarks.spark.captures import SEGMENT_ROWS, flux_requests, in_segments
from tests.benchmarks.spark.harness import Bench, Row, consume

CASE = "flux request, payload of 64 octets"
SCAN = "scan"
SOURCE, ROW_BY_ROW = "source", "python"
WAYS = {SOURCE: "data source, decoded"}
"""Ways to decode besides the backends: the format that decodes where it reads."""
SESSIONS = (*BACKENDS, *WAYS)
"""A session for each of these."""
HEADERS = ", headers"
"""Behind the name of a backend that decodes these alone."""
GOALS = {"jvm" + HEADERS: 1.25, "arrow" + HEADERS: 2.5}
"""The most times of a scan that a backend may take with headers."""
LIMITS = {"jvm": 1.35, "arrow": 3.0}
"""The most times of a scan that a backend may take with whole messages."""
AGAINST = "jvm"
"""What plain UDFs are held against."""
TIMES_CONSTRUCT = 40.0
"""A plain UDF with Construct that does what the backends do takes so many times as long, or more."""
UNPACK, PARSE, CONSTRUCT = "UDF, struct.unpack, header", "UDF, Construct, header", "UDF, Construct, message"
WARM = 3
"""Rounds that are not measured; what decodes row by row has one."""
PLAIN_ROUNDS = 2
"""As many at most for plain UDFs: a round takes half a minute."""
HEADER = "flags short, userid long, rolemask long, nodeid long, matchtag long"
MESSAGE = f"{HEADER}, routes array<string>, topic string, payload binary"
FIELDS = ("flags", "userid", "rolemask", "nodeid", "matchtag")
COUNTED_HEADERS = ",".join(("seq", *(f"Request.{field}" for field in FIELDS)))
"""The tap's count and the header's fields, as the option ``columns`` names them."""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for reading alone and one for the backend that the session is for; then those of plain UDFs."""
    (name,) = bench.backends
    if not is_there(bench, "flux"):
        return
    count = in_segments(bench.rows)
    segments = bench.capture("flux", "flux", count, flux_requests)
    part = min(count, max(2 * SEGMENT_ROWS, in_segments(count / 10)))
    whole, some = partial(bench.read, segments), partial(bench.read, segments, part)
    ways: dict[str, Callable[[], object]] = {SCAN: lambda: consume(whole())}
    match name:
        case "source":
            ways[WAYS[name]] = lambda: consume(sourced(bench.spark, segments[0].parent))
        case _:
            frame = some if name == ROW_BY_ROW else whole
            ways[name] = partial(decoded, frame, "flux", name)
            ways[name + HEADERS] = partial(decoded, frame, "flux", name, columns=COUNTED_HEADERS)
    counted = dict.fromkeys((ROW_BY_ROW, ROW_BY_ROW + HEADERS), count / part)
    warm = 1 if name == ROW_BY_ROW else WARM
    yield from bench.take_turns(
        f"{CASE}: {name}", ways, count, wanted={**GOALS, **LIMITS}, counted=counted, warm=warm
    )
    if name == AGAINST:
        plain: dict[str, Callable[[], object]] = {name: ways[name]}
        plain[UNPACK] = lambda: consume(header_by(some(), unpacking()))
        plain[PARSE] = lambda: consume(header_by(some(), parsing()))
        plain[CONSTRUCT] = lambda: consume(message_by(some(), parsing_all()))
        few = replace(bench, rounds=min(bench.rounds, PLAIN_ROUNDS))
        counted = dict.fromkeys((UNPACK, PARSE, CONSTRUCT), count / part)
        wanted = {CONSTRUCT: -TIMES_CONSTRUCT}
        yield from few.take_turns(f"{CASE}: plain UDFs", plain, count, wanted=wanted, counted=counted)


def is_there(bench: Bench, protocol: str) -> bool:
    """Return whether the session's backend can decode a protocol here; say why where it cannot."""
    (name,) = bench.backends
    reason = load_backend(name).available(bench.spark, protocol) if name in BACKENDS else None
    if reason is not None:
        print(f"{name} is not measured: {reason}", file=sys.stderr)
    return reason is None


def decoded(frame: Callable[[], DataFrame], protocol: str, backend: str, columns: str = "") -> None:
    """Decode all of a capture, or some columns of it."""
    consume(decode(frame(), protocol, backend=backend, columns=columns))


def sourced(spark: SparkSession, folder: Path) -> DataFrame:
    """Decode with the format `specwire`."""
    register(spark)
    return spark.read.format("specwire").load(str(folder))


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
