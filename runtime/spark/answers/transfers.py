"""Files sent by FILEMQ and libfilemq.

A transfer lasts from a file's first chunk to its end and uses the client's credit.

Chunks of one file are consecutive, so a connection sends one file at a time
(`Connection`). Its end is what the protocol says (`Files.ends`); where the headers state its size,
an end short of that is a cut. Credit is what NOM grants less what chunks hold. It is known only
where the tap saw the connection begin; a stall is the time in the middle of a file with no credit
left. (The C server also waits when the next chunk is larger than the credit left, which the wire
does not show.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from specwire.runtime.spark.answers.folding import Found, Word, fold, state_schema
from specwire.runtime.spark.answers.messages import take, together
from specwire.runtime.spark.answers.particulars import Files, particulars_of
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.transfers import TRANSFERS
from specwire.runtime.spark.answers.step import Frames, Step
from specwire.runtime.spark.protocols import load_schemas

GIVEN_UP_NS = 86_400 * 1_000_000_000
"""A connection that was silent for so long, by the tap's clock, is over."""

KEYS = ("tap", "conversation", "peer")

DELETE = 2
"""The operation of CHEEZBURGER that deletes."""

LEAVING = ("Kthxbai", "Srsly", "Rtfm", "Wat")


class Sending(msgspec.Struct):
    """File that is being sent.

    Times are of the tap's monotonic clock in nanoseconds, `ts` of its wall clock in microseconds.
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


class Connection(msgspec.Struct):
    """State of a connection; `credit` is None if its beginning was not seen."""

    credit: int | None = None
    sending: Sending | None = None
    last_mono: int = 0


class Sender:
    """Folds the messages of one connection; see `specwire.runtime.spark.answers.folding.Folder`."""

    def __init__(self, key: Sequence[Any], known: bytes | None) -> None:
        self._key = dict(zip(KEYS, key, strict=True))
        self._state = Connection() if known is None else _DECODER.decode(known)

    def take(self, word: Word) -> Iterable[Found]:
        """See `Folder.take`."""
        state, found = self._state, list[Found]()
        if state.last_mono and word["mono"] - state.last_mono > GIVEN_UP_NS:
            found += self._finish("ended")
            state.credit = None
        state.last_mono = word["mono"]
        match word["message"]:
            case "Ohai":
                found += self._finish("ended")
                state.credit = 0
            case "Nom":
                self._grant(int(word["credit"]), word["mono"])
            case "Cheezburger" if word["operation"] == DELETE:
                found += self._supersede(word)
                found.append(("transfers", self._row(self._begin(word), "deleted")))
            case "Cheezburger":
                found += self._chunk(word)
            case message if message in LEAVING:
                found += self._finish("ended")
                state.credit = None
        return found

    def rest(self, tap_mono: int) -> tuple[Iterable[Found], Iterable[Found], bytes | None]:
        """See `Folder.rest`."""
        state = self._state
        if tap_mono - state.last_mono > GIVEN_UP_NS:
            return self._finish("ended"), (), None
        if state.sending is None:
            return (), (), None if state.credit is None else _ENCODER.encode(state)
        return (), [("transfers", self._row(state.sending, "open"))], _ENCODER.encode(state)

    def _grant(self, credit: int, mono: int) -> None:
        state = self._state
        if state.credit is None:
            return
        state.credit += credit
        if state.credit > 0 and state.sending is not None:
            _resume(state.sending, mono)

    def _chunk(self, word: Word) -> list[Found]:
        state, found = self._state, list[Found]()
        sending = state.sending
        if sending is None or sending.filename != word["filename"] or word["offset"] != sending.reached:
            found += self._supersede(word)
            sending = state.sending = self._begin(word)
        _resume(sending, word["mono"])
        octets = word["chunk_octets"]
        sending.reached += octets
        sending.octets += octets
        sending.chunks += octets > 0
        if sending.size is None:
            sending.size = _number(word["size"])
        sending.ended_ts, sending.last_seq, sending.last_mono = word["ts"], word["seq"], word["mono"]
        if state.credit is not None:
            state.credit -= octets
        if word["ends"]:
            short = sending.size is not None and sending.reached != sending.size
            found += self._finish("cut" if short else "complete")
        elif state.credit is not None and state.credit <= 0 and sending.reached != sending.size:
            sending.stalls += 1
            sending.stalled_since = word["mono"]
        return found

    def _begin(self, word: Word) -> Sending:
        offset = word["offset"] or 0
        moment = {name: word[name] for name in ("filename", "ts", "seq", "mono")}
        return Sending(
            **moment,
            offset=offset,
            reached=offset,
            size=_number(word["size"]),
            ended_ts=word["ts"],
            last_seq=word["seq"],
            last_mono=word["mono"],
        )

    def _supersede(self, word: Word) -> list[Found]:
        """Handle a message that comes before the end of the current file."""
        sending = self._state.sending
        if sending is None:
            return []
        if sending.size is None and word["filename"] != sending.filename:
            return self._finish("unmarked")
        return self._finish("complete" if sending.size == sending.reached else "cut")

    def _finish(self, outcome: str) -> list[Found]:
        sending, self._state.sending = self._state.sending, None
        return [] if sending is None else [("transfers", self._row(sending, outcome))]

    def _row(self, sending: Sending, outcome: str) -> dict[str, Any]:
        duration = sending.last_mono - sending.mono
        stalled = sending.stalled_ns
        if sending.stalled_since is not None:
            stalled += sending.last_mono - sending.stalled_since
        known = self._state.credit is not None
        names = ("filename", "ts", "seq", "mono", "ended_ts", "last_seq", "last_mono", "offset", "size")
        return self._key | {
            **{name: getattr(sending, name) for name in names},
            "chunks": sending.chunks,
            "octets": sending.octets,
            "outcome": outcome,
            "duration_us": duration // 1000,
            "octets_per_s": sending.octets / duration * 1e9 if duration else None,
            "stalls": sending.stalls if known else None,
            "stalled_us": stalled // 1000 if known else None,
        }


def _resume(sending: Sending, mono: int) -> None:
    if sending.stalled_since is not None:
        sending.stalled_ns += mono - sending.stalled_since
        sending.stalled_since = None


def _number(text: str | None) -> int | None:
    """Return the size that a header states, None where it is no number that a column can hold."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Connection)


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `transfers`."""
    files = particulars_of(protocol).files
    assert files is not None, f"{protocol} sends no files"
    words = _words(typed, protocol, files)
    return fold(words, state, KEYS, Sender, protocol, {"transfers": TRANSFERS}, "connections_sending")


def _words(typed: Frames, protocol: str, files: Files) -> Any:
    size = "element_at(filter(headers, h -> lower(h.name) = 'size'), 1).value"
    fields = {
        "Nom": {"credit": "credit"},
        "Cheezburger": {
            "operation": "operation",
            "filename": "filename",
            "offset": "try_cast(offset as bigint)",
            "size": f"if(size(filter(headers, h -> lower(h.name) = 'size')) > 0, {size}, null)",
            "chunk_octets": "cast(octet_length(chunk) as bigint)",
            "ends": files.ends,
        },
    }
    return together(take(typed, protocol, message, fields.get(message, {})) for message in _reads(protocol))


def _reads(protocol: str) -> tuple[str, ...]:
    there = load_schemas(protocol).SCHEMAS
    return tuple(name for name in ("Ohai", "Nom", "Cheezburger", *LEAVING) if name in there)


CONTINUED = (
    Continued(
        name="transfers",
        applies=lambda protocol: particulars_of(protocol).files is not None,
        reads=_reads,
        writes={"transfers": TRANSFERS},
        keeps={"connections_sending": state_schema(KEYS)},
        advance=advance,
    ),
)
