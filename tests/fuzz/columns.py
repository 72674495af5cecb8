"""What must hold for any array of messages: each row says what the row codec says of it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from specwire.generated.errors import DecodeError
from tests.fuzz.codecs import demand, outcome
from tests.fuzz.pieces import split
from tests.generated.vectors import package

FRAMES = pa.list_(pa.binary())


def columns_check(name: str) -> Callable[[bytes], None]:
    """Return the check of a package's column decoder; its input is pieces, a message each, of pieces."""
    module = package(name)
    decode, columns = module.codec.decode, module.columns

    def check(octets: bytes) -> None:
        rows = [split(row) for row in split(octets)]
        batch = columns.decode(pa.array(rows, FRAMES))
        demand(batch.schema == columns.SCHEMA and batch.num_rows == len(rows), "a row for each message")
        found = batch.to_pylist()
        written: list[list[bytes]] = []
        for frames, row in zip(rows, found, strict=True):
            said = outcome(decode, frames)
            if isinstance(said, DecodeError):
                demand(row["_message"] is None and row["_frames"] == frames, "a bad row keeps its frames")
                error = row["_error"]
                written.append(frames)
                demand(error["text"] == str(said) and error["offset"] == said.offset, "the error is the same")
            else:
                demand(row["_message"] == type(said).__name__ and row["_error"] is None, "the same class")
                written.append(said.encode())
        demand(columns.encode(batch).to_pylist() == written, "columns encode to the messages that they hold")
        alone = columns.decode(pa.array(rows[-1:], FRAMES)).to_pylist()
        demand(alone == found[-1:], "a row says the same whatever stands beside it")

    return check
