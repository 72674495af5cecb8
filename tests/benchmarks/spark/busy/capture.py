"""Put what the taps of a busy network see into the segments of a capture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, stating_schema
from tests.benchmarks.spark.busy.calls import play_broker
from tests.benchmarks.spark.busy.files import play_server
from tests.benchmarks.spark.busy.jobs import play_jobs
from tests.benchmarks.spark.busy.scene import Scene

SEGMENT_ROWS = 250_000
RATE = 460
"""Messages a second, of all taps."""
BEGUN_US = 1_780_002_000_000_000
"""2026-05-28 21:00 UTC."""

MOST = 20_000_000
"""Of messages: the numbers of a tap are in memory, some 100 octets a message."""


def write_capture(folder: Path, messages: int) -> int:
    """Write the capture and return how many messages are in it, about as many as asked for."""
    if not 1000 <= messages <= MOST:
        raise ValueError(f"{messages}: from 1,000 to {MOST:,} messages")
    folder.mkdir(parents=True)
    span_us = messages * 1_000_000 // RATE
    plays: tuple[tuple[str, str, float, Callable[[int, int, int], Scene]], ...] = (
        ("broker-0-4711-63f1a2b3c4d5e", "flux", 0.4, play_broker),
        ("broker-1-4712-63f1a2b3c4d5f", "flux", 0.15, play_broker),
        ("files-812-63f1a2b3c4e00", "filemq", 0.33, play_server),
        ("hub-97-63f1a2b3c4e11", "norfab", 0.12, play_jobs),
    )
    written = 0
    for number, (tap, protocol, share, play) in enumerate(plays):
        scene = play(number, int(messages * share), span_us)
        written += _write(folder, Source(tap, protocol, ""), scene)
    return written


def _write(folder: Path, source: Source, scene: Scene) -> int:
    """Write what a tap saw as segments; the third one is lost, where there are so many."""
    at, talk, sender, form, first, second = (np.concatenate(part) for part in zip(*scene.parts, strict=True))
    inside = np.flatnonzero((at >= 0) & (at < scene.span_us))
    order = inside[np.argsort(at[inside], kind="stable")]
    names, peers = (pa.array(texts) for texts in zip(*scene.talks, strict=True))
    written = 0
    for number, begin in enumerate(range(0, len(order), SEGMENT_ROWS)):
        if number == 2 and source.protocol == "flux":
            continue
        rows = order[begin : begin + SEGMENT_ROWS]
        who = pa.array(talk[rows])
        columns = {
            "ts": pa.array(BEGUN_US + at[rows]).cast(pa.timestamp("us", tz="UTC")),
            "mono": pa.array(at[rows] * 1000 + 5_000_000_000),
            "seq": pa.array(np.arange(begin, begin + len(rows))),
            "protocol": pa.repeat(source.protocol, len(rows)),
            "tap": pa.repeat(source.tap, len(rows)),
            "conversation": names.take(who),
            "sender": pa.array(list(scene.senders)).take(pa.array(sender[rows])),
            "peer": peers.take(who),
            "frames": scene.forms.copy(
                form[rows].astype(np.int32), first[rows].astype(np.uint32), second[rows].astype(np.uint32)
            ),
        }
        table = pa.table(columns, schema=stating_schema(source, dropped=37 * number))
        place = folder / segment_name(source.tap, number)
        pq.write_table(table, place, compression="zstd", compression_level=1, use_dictionary=False)
        written += len(rows)
    return written
