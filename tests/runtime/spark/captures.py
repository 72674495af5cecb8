"""Hand-made captures: FILEMQ messages whose octets were derived by hand from the specification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment

OHAI = [bytes.fromhex("aaa3010646494c454d5102")]
OHAI_OK = [bytes.fromhex("aaa304")]
ICANHAZ = [bytes.fromhex("aaa305072f70686f746f730108524553594e433d31010a612e6a70673d44413339")]
ICANHAZ_OK = [bytes.fromhex("aaa306")]
NOM = [bytes.fromhex("aaa3070000010000000000")]
CHEEZBURGER = [
    bytes.fromhex("aaa30800000000000000050105612e6a7067000000000000100000"),
    bytes.fromhex("000164617461"),
]
DELETION = [bytes.fromhex("aaa30800000000000000060205612e6a7067000000000000000000"), b""]
HUGZ = [bytes.fromhex("aaa309")]
SRSLY = [bytes.fromhex("aaa38009626164207468696e67")]

SHORT_NOM = [bytes.fromhex("aaa307000001")]
"""The credit ends after 3 of its 8 octets."""

UNKNOWN = [bytes.fromhex("aaa377")]
"""The octet at offset 2 names no message."""

FLUX_ATTR_GET = [
    bytes.fromhex("617474722e676574"),
    bytes.fromhex("7b226e616d65223a2273697a65227d00"),
    bytes.fromhex("8e010103ffffffff00000000ffffffff00000001"),
]
"""A request as a client of flux-core 0.88.0 sent it."""

BEGUN = 1_700_000_000_000_000
"""Microseconds since 1970 of the first message of a hand-made capture."""

Message = tuple[str, Sequence[bytes]]

NO_TEXT = b"b\x80"
"""Octets that are not UTF-8: nothing begins with 0x80."""
AS_TEXT = "b\ufffd"
"""The same with the replacement character of Unicode."""


def put_octets(segment: Path, *columns: str) -> None:
    """Have the second row of a segment hold `NO_TEXT` in some columns of texts, as a careless tool would."""
    table = pq.read_table(segment)
    for name in columns:
        values = [str(value).encode() for value in table[name].to_pylist()]
        values[1] = NO_TEXT
        octets = pa.array(values, pa.binary())
        text = pa.Array.from_buffers(pa.string(), len(values), octets.buffers())
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), text)
    pq.write_table(table, segment)


def write_capture(
    folder: Path,
    messages: Sequence[Message],
    *,
    tap: str = "server-1-0",
    protocol: str = "filemq",
    dropped: int = 0,
    edition: str = "2",
) -> Path:
    """Write messages, each given as sender and frames and a millisecond after the one before, as one segment."""
    folder.mkdir(exist_ok=True)
    rows = [
        Captured(BEGUN + 1000 * seq, 10**6 * seq, seq, "c1", sender, "00aa", tuple(frames), 0)
        for seq, (sender, frames) in enumerate(messages)
    ]
    source = Source(tap=tap, protocol=protocol, edition=edition)
    write_segment(folder, segment_name(tap, 0), build_table(rows, source, dropped))
    return folder
