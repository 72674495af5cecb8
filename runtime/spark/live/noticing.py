"""What a watcher of conversations needs of a segment: who sent what, by conversation, without the payloads.

A message is decoded where its segment is read, and only its name and the few fields that pair a reply with its
request go on. The messages of one conversation in one segment travel together as one packed row, because a
row costs more than what is in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.generated.dialog import Dialog
from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message
from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import read_footer
from specwire.runtime.spark.protocols import known_protocols, load_codec, load_machine

ROWS = 10_000
"""Messages that are read from a segment at once."""

READ = ["ts", "seq", "protocol", "tap", "conversation", "sender", "peer", "frames"]


class Noticed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message of a conversation.

    Attributes:
        ts: the tap's wall clock, microseconds since 1970.
        name: class name of the message, None where it did not decode.
        values: the fields that the protocol's dialogs look at.
        fault: why it did not decode, as one sentence.
    """

    seq: int
    ts: int
    sender: str
    name: str | None
    values: dict[str, int | str | None] = {}
    fault: str | None = None


class Bundle(msgspec.Struct, frozen=True):
    """Messages of one conversation, in the order of `seq`."""

    protocol: str
    tap: str
    conversation: str
    peer: str
    messages: tuple[Noticed, ...]


pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(tuple[Noticed, ...]).decode


def notice(path: Path, override: str | None = None) -> Iterator[Bundle]:
    """Yield the conversations of a segment; nothing where it is not a whole one or of an unknown protocol.

    Whoever reads the segment for its messages says so; `override` is the protocol to read everything as.
    """
    try:
        read_footer(path)
        for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS, columns=READ):
            yield from _bundle(batch, override)
    except (CaptureError, OSError, pa.ArrowException):
        return


def _bundle(batch: pa.RecordBatch, override: str | None) -> Iterator[Bundle]:
    stamps = batch.column(batch.schema.get_field_index("ts")).cast(pa.int64()).to_pylist()
    found: dict[tuple[str, str, str], list[Noticed]] = {}
    peers: dict[tuple[str, str, str], str] = {}
    for row, ts in zip(_rows(batch.drop_columns(["ts"])), stamps, strict=True):
        protocol = override or row["protocol"]
        if ts is None or row["seq"] is None or row["tap"] is None or protocol not in known_protocols():
            continue
        key = (protocol, row["tap"], row["conversation"] or "")
        look = _watcher(protocol)
        found.setdefault(key, []).append(look(row["seq"], ts, row["sender"] or "", row["frames"]))
        peers[key] = row["peer"] or ""
    for key, messages in found.items():
        yield Bundle(*key, peers[key], tuple(sorted(messages, key=lambda message: message.seq)))


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch; texts of another tool may be no UTF-8, and are made so, as the tables have them."""
    try:
        return batch.to_pylist()
    except UnicodeDecodeError:
        raw = batch.cast(pa.schema([(field.name, _octets(field.type)) for field in batch.schema]))
        return [
            {
                name: value.decode(errors="replace") if isinstance(value, bytes) else value
                for name, value in row.items()
            }
            for row in raw.to_pylist()
        ]


def _octets(type: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_string(type) else type


@cache
def _watcher(protocol: str) -> Callable[[int, int, str, Sequence[bytes | None] | None], Noticed]:
    """Return the function that looks at one message of a protocol.

    Frames with a null among them are not known: that is a fault, told as the tables tell it.
    """
    decode = _decoder(protocol)
    fields = watched_fields(dialogs(protocol).values())

    def look(seq: int, ts: int, sender: str, frames: Sequence[bytes | None] | None) -> Noticed:
        known = [frame for frame in frames or () if frame is not None]
        if frames is not None and len(known) < len(frames):
            fault = f"frames in frame {frames.index(None)}: expected octets, found null [columns]"
            return Noticed(seq, ts, sender, None, fault=fault)
        try:
            message = decode(known, sender)
        except DecodeError as error:
            return Noticed(seq, ts, sender, None, fault=str(error))
        values = {name: getattr(message, name, None) for name in fields}
        return Noticed(seq, ts, sender, type(message).__name__, values)

    return look


def _decoder(protocol: str) -> Callable[[Sequence[bytes], str], Message]:
    decode: Callable[..., Message] = load_codec(protocol).decode
    if "sender" in inspect.signature(decode).parameters:
        return lambda frames, sender: decode(frames, sender=sender or None)
    return lambda frames, _: decode(frames)


def dialogs(protocol: str) -> Mapping[str, Dialog]:
    """Return the dialogs of a protocol by name; none where the specification has no conversation."""
    found: Any = getattr(load_machine(protocol), "DIALOGS", {})
    named: Mapping[str, Dialog] = found
    return named


def watched_fields(found: Sequence[Dialog] | Any) -> tuple[str, ...]:
    """Return the fields of messages that dialogs look at, sorted."""
    names: set[str] = set()
    for dialog in found:
        names.update(dialog.key, dialog.keyless, dialog.unanswered)
    return tuple(sorted(names))
