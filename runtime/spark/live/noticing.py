"""Reduction of a segment for a watcher of conversations: senders and message types, no payloads.

A message is decoded by the task that reads its segment. Only its name and the few fields that match
a reply with its request are forwarded. The messages of one conversation in one segment are packed
into one row, because a row costs more than its content.
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
from specwire.runtime.package_search import without_edition
from specwire.runtime.packages import choose_package
from specwire.runtime.spark.protocols import known_protocols, load_codec, load_machine

ROWS = 10_000
"""Number of messages that are read from a segment at once."""

READ = ["ts", "seq", "protocol", "tap", "conversation", "sender", "peer", "frames"]


class Noticed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message of a conversation.

    Attributes:
        ts: the tap's wall clock, microseconds since 1970.
        name: class name of the message; None if it did not decode.
        values: the fields that the protocol's dialogs read.
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
    """Yield the messages of a segment by conversation.

    An incomplete segment and messages of an unknown protocol are skipped: the reader of the tables
    reports them. `override` is the protocol of every message.
    """
    try:
        source = read_footer(path).source
        edition = source.edition if source else ""
        for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS, columns=READ):
            yield from _bundle(batch, edition, override)
    except (CaptureError, OSError, pa.ArrowException):
        return


def _bundle(batch: pa.RecordBatch, edition: str, override: str | None) -> Iterator[Bundle]:
    stamps = batch.column(batch.schema.get_field_index("ts")).cast(pa.int64()).to_pylist()
    found: dict[tuple[str, str, str], list[Noticed]] = {}
    peers: dict[tuple[str, str, str], str] = {}
    choose = cache(_package)
    for row, ts in zip(_rows(batch.drop_columns(["ts"])), stamps, strict=True):
        package = override or choose(row["protocol"], edition)
        if ts is None or row["seq"] is None or row["tap"] is None or package is None:
            continue
        key = (without_edition(package), row["tap"], row["conversation"] or "")
        look = _watcher(package)
        found.setdefault(key, []).append(look(row["seq"], ts, row["sender"] or "", row["frames"]))
        peers[key] = row["peer"] or ""
    for key, messages in found.items():
        yield Bundle(*key, peers[key], tuple(sorted(messages, key=lambda message: message.seq)))


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch. Texts that are not UTF-8 are repaired, as in the tables."""
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


def _package(protocol: str | None, edition: str) -> str | None:
    """Return the name of the package that decodes a protocol and edition; None if there is none."""
    return choose_package(protocol, edition) if protocol and protocol in known_protocols() else None


@cache
def _watcher(package: str) -> Callable[[int, int, str, Sequence[bytes | None] | None], Noticed]:
    """Return the function that decodes one message with a package into `Noticed`.

    Null among the frames is a fault, with the same text as in the tables.
    """
    decode = _decoder(package)
    fields = watched_fields(dialogs(without_edition(package)).values())

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


def _decoder(package: str) -> Callable[[Sequence[bytes], str], Message]:
    decode: Callable[..., Message] = load_codec(package).decode
    if "sender" in inspect.signature(decode).parameters:
        return lambda frames, sender: decode(frames, sender=sender or None)
    return lambda frames, _: decode(frames)


def dialogs(protocol: str) -> Mapping[str, Dialog]:
    """Return the dialogs of a protocol by name; none if the specification has no conversation."""
    found: Any = getattr(load_machine(protocol), "DIALOGS", {})
    named: Mapping[str, Dialog] = found
    return named


def watched_fields(found: Sequence[Dialog] | Any) -> tuple[str, ...]:
    """Return, sorted, the fields of messages that dialogs read."""
    names: set[str] = set()
    for dialog in found:
        names.update(dialog.key, dialog.keyless, dialog.unanswered)
    return tuple(sorted(names))
