"""Files sent by FILEMQ and libfilemq.

A transfer lasts from a file's first chunk to its end and uses the client's credit.

Chunks of one file are consecutive, so a connection sends one file at a time. Its end is what the
protocol says (`ProtocolSpecifics.file_ends`); if the headers state its size, an end short of that
is a cut. Credit is what NOM grants less what chunks hold. It is known only if the tap saw the
connection begin; a stall is the time in the middle of a file with no credit left. (The C server
also waits when the next chunk is larger than the credit left, which the wire does not show.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from specwire.runtime.spark.answers.answer import (
    MOMENT,
    PLACE,
    Continued,
    Frames,
    Step,
    table_schema,
)
from specwire.runtime.spark.answers.incremental import AnswerRow, Message, TrackerEnd, state_schema, track
from specwire.runtime.spark.answers.messages import present, select, union
from specwire.runtime.spark.answers.protocol_specifics import specifics_of

TRANSFERS = table_schema(
    *PLACE,
    "filename STRING: virtual path of the file",
    *MOMENT,
    "ended_ts TIMESTAMP: when its latest message came",
    "last_seq BIGINT: the tap's count of that message",
    "last_mono BIGINT (nanoseconds): when that was, the tap's monotonic clock",
    "offset BIGINT (octets): where in the file its first chunk begins: 0, or where it was resumed",
    "size BIGINT (octets): size of the file as the headers state it, null where they do not",
    "chunks BIGINT: chunks that hold octets",
    "octets BIGINT (octets): octets of the file that were sent",
    "outcome STRING: complete (its end came), cut (another file, a deletion or a new beginning of it "
    "came first), ended (the peer left or the conversation began anew), deleted (the message says that "
    "the file is gone), open (not over yet)",
    "duration_us BIGINT (microseconds): from its first chunk to its latest message",
    "octets_per_s DOUBLE (octets/s): octets by duration; null where that is 0",
    "stalls BIGINT: times that the credit was used up in the middle of the file",
    "stalled_us BIGINT (microseconds): time in which it was, until the next credit or, where none "
    "came, the latest message",
)

GIVEN_UP_NS = 86_400 * 1_000_000_000
"""A connection that was silent for so long, by the tap's clock, is over."""

KEYS = ("tap", "conversation", "peer")
STATE = "connections_sending"
TABLES = {"transfers": TRANSFERS}

DELETE = 2
"""The operation of CHEEZBURGER that deletes."""

MESSAGES = ("Ohai", "Nom", "Cheezburger", "Kthxbai", "Srsly", "Rtfm", "Wat")
"""The messages that a transfer depends on. The last four end a connection."""


NO_FIELDS = {
    **dict.fromkeys(("credit", "operation", "offset", "chunk_octets"), "cast(null as bigint)"),
    **dict.fromkeys(("filename", "size"), "cast(null as string)"),
    "ends": "cast(null as boolean)",
}
"""SQL of the columns that some messages have."""


class FileSending(msgspec.Struct):
    """File that is being sent.

    Times are of the tap's monotonic clock in nanoseconds, `ts` of its wall clock in microseconds.
    State of earlier versions has these names.
    """

    filename: str
    ts: Any
    seq: int
    mono: int
    offset: int
    size: int | None
    ended_ts: Any = None
    last_seq: int = 0
    last_mono: int = 0
    reached: int = 0
    chunks: int = 0
    octets: int = 0
    stalls: int = 0
    stalled_ns: int = 0
    stalled_since: int | None = None

    def resume(self, mono: int) -> None:
        """End a stall, if there is one."""
        if self.stalled_since is not None:
            self.stalled_ns += mono - self.stalled_since
            self.stalled_since = None


class ConnectionState(msgspec.Struct):
    """State of a connection; `credit` is None if its beginning was not seen."""

    credit: int | None = None
    sending: FileSending | None = None
    last_mono: int = 0


class TransferTracker:
    """Tracker of one connection; see `specwire.runtime.spark.answers.incremental.KeyTracker`."""

    def __init__(self, key: dict[str, Any], known: bytes | None) -> None:
        self._key = key
        self._state = ConnectionState() if known is None else _DECODER.decode(known)

    def add(self, message: Message) -> Iterable[AnswerRow]:
        state, found = self._state, list[AnswerRow]()
        if state.last_mono and message["mono"] - state.last_mono > GIVEN_UP_NS:
            found += self._finish("ended")
            state.credit = None
        state.last_mono = message["mono"]
        match message["message"]:
            case "Nom":
                self._grant(int(message["credit"]), message["mono"])
            case "Cheezburger" if message["operation"] == DELETE:
                found += self._supersede(message)
                found.append(self._row(_begin(message), "deleted"))
            case "Cheezburger":
                found += self._add_chunk(message)
            case name:
                found += self._finish("ended")
                state.credit = 0 if name == "Ohai" else None
        return found

    def end(self, tap_mono: int) -> TrackerEnd:
        state = self._state
        if tap_mono - state.last_mono > GIVEN_UP_NS:
            return TrackerEnd(closed=self._finish("ended"))
        if state.sending is not None:
            return TrackerEnd(open=[self._row(state.sending, "open")], state=_ENCODER.encode(state))
        return TrackerEnd(state=None if state.credit is None else _ENCODER.encode(state))

    def _grant(self, credit: int, mono: int) -> None:
        state = self._state
        if state.credit is None:
            return
        state.credit += credit
        if state.credit > 0 and state.sending is not None:
            state.sending.resume(mono)

    def _add_chunk(self, message: Message) -> list[AnswerRow]:
        state, found = self._state, list[AnswerRow]()
        sending = state.sending
        if sending is None or sending.filename != message["filename"] or message["offset"] != sending.reached:
            found += self._supersede(message)
            sending = state.sending = _begin(message)
        sending.resume(message["mono"])
        octets = message["chunk_octets"]
        sending.reached += octets
        sending.octets += octets
        sending.chunks += octets > 0
        if sending.size is None:
            sending.size = _parse_size(message["size"])
        sending.ended_ts, sending.last_seq = message["ts"], message["seq"]
        sending.last_mono = message["mono"]
        if state.credit is not None:
            state.credit -= octets
        if message["ends"]:
            short = sending.size is not None and sending.reached != sending.size
            found += self._finish("cut" if short else "complete")
        elif state.credit is not None and state.credit <= 0 and sending.reached != sending.size:
            sending.stalls += 1
            sending.stalled_since = message["mono"]
        return found

    def _supersede(self, message: Message) -> list[AnswerRow]:
        """Finish the current file because of a message that comes before its end."""
        sending = self._state.sending
        if sending is None:
            return []
        if sending.size is None and message["filename"] != sending.filename:
            return self._finish("unmarked")
        return self._finish("complete" if sending.size == sending.reached else "cut")

    def _finish(self, outcome: str) -> list[AnswerRow]:
        sending, self._state.sending = self._state.sending, None
        return [] if sending is None else [self._row(sending, outcome)]

    def _row(self, sending: FileSending, outcome: str) -> AnswerRow:
        duration = sending.last_mono - sending.mono
        stalled = sending.stalled_ns
        if sending.stalled_since is not None:
            stalled += sending.last_mono - sending.stalled_since
        knows_credit = self._state.credit is not None
        return "transfers", {
            **self._key,
            **{name: getattr(sending, name) for name in TRANSFERS.names if hasattr(sending, name)},
            "outcome": outcome,
            "duration_us": duration // 1000,
            "octets_per_s": sending.octets / duration * 1e9 if duration else None,
            "stalls": sending.stalls if knows_credit else None,
            "stalled_us": stalled // 1000 if knows_credit else None,
        }


def _begin(message: Message) -> FileSending:
    offset = message["offset"] or 0
    return FileSending(
        **{name: message[name] for name in ("filename", "ts", "seq", "mono")},
        offset=offset,
        reached=offset,
        size=_parse_size(message["size"]),
        ended_ts=message["ts"],
        last_seq=message["seq"],
        last_mono=message["mono"],
    )


def _parse_size(text: str | None) -> int | None:
    """Return the size that a header states, None if it is no number that a column can hold."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ConnectionState)


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `transfers`."""
    size = "element_at(filter(headers, h -> lower(h.name) = 'size'), 1).value"
    fields = {
        "Nom": {"credit": "credit"},
        "Cheezburger": {
            "operation": "operation",
            "filename": "filename",
            "offset": "try_cast(offset as bigint)",
            "size": f"if(size(filter(headers, h -> lower(h.name) = 'size')) > 0, {size}, null)",
            "chunk_octets": "cast(octet_length(chunk) as bigint)",
            "ends": specifics_of(protocol).file_ends,
        },
    }
    messages = union(
        select(typed, protocol, name, NO_FIELDS | fields.get(name, {}))
        for name in _reads(protocol)
        if name in typed
    )
    return track(messages, protocol, KEYS, TransferTracker, TABLES, STATE, state)


def _reads(protocol: str) -> tuple[str, ...]:
    return present(protocol, MESSAGES) if specifics_of(protocol).file_ends else ()


CONTINUED = Continued("transfers", _reads, TABLES, {STATE: state_schema(KEYS)}, advance)
