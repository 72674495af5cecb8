"""Conversations of a watched capture: their messages without payloads, and their alerts.

Of a decoded message only its name and the few fields that match a reply with its request are kept
(`WatchedMessage`).

There are three kinds of alerts:

- ``violation``: a message that the dialog does not allow in its state, in the concurrent reading.
  If a protocol has several dialogs, those that do not allow a message are dropped. A message that
  none of the remaining dialogs allows is a violation.
- ``undecodable``: frames that are not a message of the protocol.
- ``silent``: a side has sent no message for a time, and the dialog is not over. The time is
  measured by the watcher's clock from the reading of the last message, so a clock difference
  between two hosts has no effect.

The number of alerts is limited, whatever a peer sends. After a violation or an undecodable message,
further ones of the conversation are only counted for `Rules.repeat_s`; the next alert has the
count. Silence of a side is one alert, until the side sends again. A repeated message, or one that
arrives after later ones of its tap, is ignored. The state is a few hundred octets and the keys of
open requests, `OPEN_KEYS` at most for each kind of request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.generated.dialog import Dialog
from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message
from specwire.generated.monitors import Memory
from specwire.generated.session import DialogSession
from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import read_footer
from specwire.runtime.package_search import without_edition
from specwire.runtime.packages import choose_package
from specwire.runtime.spark.answers.protocol_specifics import silence_s
from specwire.runtime.spark.protocols import known_protocols, load_codec, load_machine

Kind = Literal["violation", "undecodable", "silent"]

OPEN_KEYS = 1024
"""Maximum open requests of one kind in a conversation; the longest silent are forgotten."""

SIDES = 8
"""Maximum sides of a conversation to watch for silence; a capture may state any sender."""

ROWS = 10_000
"""Number of messages that are read from a segment at once."""

READ = ["ts", "seq", "protocol", "tap", "conversation", "sender", "peer", "frames"]


class WatchedMessage(msgspec.Struct, frozen=True, gc=False):
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
    messages: tuple[WatchedMessage, ...]


def read_bundles(path: Path, override: str | None = None) -> Iterator[Bundle]:
    """Yield the messages of a segment by conversation.

    An incomplete segment and messages of an unknown protocol are skipped: the run that writes the
    tables reports them. `override` is the protocol of every message.
    """
    try:
        source = read_footer(path).source
        edition = source.edition if source else ""
        for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS, columns=READ):
            yield from _bundle(batch, edition, override)
    except (CaptureError, OSError, pa.ArrowException):
        return


def _bundle(batch: pa.RecordBatch, edition: str, override: str | None) -> Iterator[Bundle]:
    found: dict[tuple[str, str, str], list[WatchedMessage]] = {}
    peers: dict[tuple[str, str, str], str] = {}
    package_of = cache(_package)
    columns = (_values(batch.column(name)) for name in READ)
    for ts, seq, protocol, tap, conversation, sender, peer, frames in zip(*columns, strict=True):
        package = override or package_of(protocol, edition)
        if ts is None or seq is None or tap is None or package is None:
            continue
        key = (without_edition(package), tap, conversation or "")
        message = _message_reader(package)(seq, ts, sender or "", frames)
        found.setdefault(key, []).append(message)
        peers[key] = peer or ""
    for key, messages in found.items():
        yield Bundle(*key, peers[key], tuple(sorted(messages, key=lambda message: message.seq)))


def _values(column: pa.Array[Any]) -> list[Any]:
    """Return a column as Python values: times as microseconds, texts with invalid UTF-8 replaced."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    if not pa.types.is_string(column.type):
        return column.to_pylist()
    octets: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return [None if value is None else value.decode(errors="replace") for value in octets]


def _package(protocol: str | None, edition: str) -> str | None:
    """Return the name of the package that decodes a protocol and edition; None if there is none."""
    return choose_package(protocol, edition) if protocol and protocol in known_protocols() else None


@cache
def _message_reader(package: str) -> Callable[[int, int, str, Sequence[bytes | None] | None], WatchedMessage]:
    """Return the function that decodes one message with a package.

    A null frame is a fault, with the same text as in the tables.
    """
    decode: Callable[..., Message] = load_codec(package).decode
    takes_sender = "sender" in inspect.signature(decode).parameters
    fields = sorted(
        {
            name
            for dialog in dialogs(without_edition(package)).values()
            for name in (*dialog.key, *dialog.keyless, *dialog.unanswered)
        }
    )

    def read(seq: int, ts: int, sender: str, frames: Sequence[bytes | None] | None) -> WatchedMessage:
        known = [frame for frame in frames or () if frame is not None]
        if frames is not None and len(known) < len(frames):
            fault = f"frames in frame {frames.index(None)}: expected octets, found null [columns]"
            return WatchedMessage(seq, ts, sender, None, fault=fault)
        try:
            message = decode(known, sender=sender or None) if takes_sender else decode(known)
        except DecodeError as error:
            return WatchedMessage(seq, ts, sender, None, fault=str(error))
        values = {name: getattr(message, name, None) for name in fields}
        return WatchedMessage(seq, ts, sender, type(message).__name__, values)

    return read


def dialogs(protocol: str) -> Mapping[str, Dialog]:
    """Return the dialogs of a protocol by name; none if the specification has no conversation."""
    found: Mapping[str, Dialog] = getattr(load_machine(protocol), "DIALOGS", {})
    return found


class Rules(msgspec.Struct, frozen=True):
    """Rules for alerts.

    Attributes:
        silent_s: seconds without a message after which a side is silent; None for the limit that
            the answers use.
        repeat_s: seconds after an alert in which further ones of the conversation are only counted.
        forget_s: seconds after which a conversation that is silent on all sides is forgotten.
    """

    silent_s: float | None = None
    repeat_s: float = 60.0
    forget_s: float = 3600.0

    def silence_ms(self, protocol: str) -> int:
        """Return the time after which a side is silent, in milliseconds."""
        return int(1000 * (silence_s(protocol) if self.silent_s is None else self.silent_s))


class Alert(msgspec.Struct, frozen=True):
    """Alert; the fields are columns of `specwire.runtime.spark.live.alerts.ALERTS`.

    `ts` is in microseconds since 1970. `seq` and `message` are None for silence, and `message` is
    None for undecodable frames. `state` is None if no dialog is watched.
    """

    ts: int
    kind: Kind
    sender: str
    seq: int | None
    message: str | None
    state: str | None
    expected: tuple[str, ...]
    text: str
    suppressed: int = 0


class Side(msgspec.Struct, array_like=True):
    """Side of a conversation.

    Attributes:
        ts: time of its last message, by the tap's clock, microseconds since 1970.
        read_ms: when that message was read, by the watcher's clock, milliseconds since 1970.
        silent: whether its silence was an alert.
    """

    ts: int
    read_ms: int
    silent: bool = False


class Conversation(msgspec.Struct):
    """State of a conversation.

    Attributes:
        watched: state of the session of each dialog, by the dialog's name.
        last_seq: number of the last message, -1 before the first.
        sides: sides by role letter.
        quiet_until_ms: time until which alerts are only counted.
    """

    protocol: str
    peer: str = ""
    watched: dict[str, Memory] = {}
    last_seq: int = -1
    sides: dict[str, Side] = {}
    quiet_until_ms: int = 0
    suppressed: int = 0

    @classmethod
    def begin(cls, protocol: str) -> Conversation:
        """Return a conversation without messages."""
        starts = {name: next(iter(dialog.phases)) for name, dialog in dialogs(protocol).items()}
        return cls(protocol, watched={name: Memory(start) for name, start in starts.items()})

    @classmethod
    def load(cls, octets: bytes) -> Conversation | None:
        """Return what `dump` stored; None if a version with other dialogs stored it."""
        try:
            found = _decoder.decode(octets)
        except msgspec.ValidationError:
            return None
        known = dialogs(found.protocol)
        for name, memory in found.watched.items():
            if name not in known or memory.state not in known[name].phases:
                return None
        return found

    def dump(self) -> bytes:
        """Return the state as octets."""
        return msgspec.msgpack.encode(self)

    @property
    def over(self) -> bool:
        """Whether every remaining dialog is closed, so that it allows no more messages."""
        left = [(dialogs(self.protocol)[name], memory) for name, memory in self.watched.items()]
        return bool(left) and all(dialog.phases[memory.state].closed for dialog, memory in left)

    def observe(self, messages: Sequence[WatchedMessage], now_ms: int, rules: Rules) -> Iterator[Alert]:
        """Process messages in the order of `seq`, and yield alerts.

        `now_ms` is the watcher's clock, milliseconds since 1970.
        """
        sessions = {name: _session(self.protocol, name) for name in self.watched}
        for name, session in sessions.items():
            session.recall(self.watched[name])
        for message in messages:
            if message.seq <= self.last_seq:
                continue
            self.last_seq = message.seq
            if message.sender in self.sides or len(self.sides) < SIDES:
                self.sides[message.sender] = Side(message.ts, now_ms)
            alert = self._observe_one(message, sessions)
            if alert is None:
                continue
            if now_ms < self.quiet_until_ms:
                self.suppressed += 1
                continue
            yield msgspec.structs.replace(alert, suppressed=self.suppressed)
            self.suppressed = 0
            self.quiet_until_ms = now_ms + int(1000 * rules.repeat_s)
        self.watched = {name: session.memory() for name, session in sessions.items()}

    def find_silent(self, now_ms: int, rules: Rules) -> Iterator[Alert]:
        """Yield an alert for each side that has become silent."""
        silence_ms = rules.silence_ms(self.protocol)
        for sender, side in sorted(self.sides.items()):
            since_ms = now_ms - side.read_ms
            if side.silent or since_ms < silence_ms:
                continue
            side.silent = True
            text = f"{sender} sent nothing for {since_ms / 1000:.1f} s; it is silent after {silence_ms / 1000:g} s"
            states = ", ".join(memory.state for memory in self.watched.values()) or None
            yield Alert(side.ts, "silent", sender, None, None, states, (), text)

    def next_check_ms(self, rules: Rules) -> int:
        """Return when the next side will be silent; if all are, when to forget the conversation."""
        silence_ms = rules.silence_ms(self.protocol)
        waiting = [side.read_ms + silence_ms for side in self.sides.values() if not side.silent]
        if waiting:
            return min(waiting)
        last_ms = max((side.read_ms for side in self.sides.values()), default=0)
        return last_ms + max(silence_ms, int(1000 * rules.forget_s))

    def _observe_one(self, message: WatchedMessage, sessions: dict[str, DialogSession]) -> Alert | None:
        states = ", ".join(session.state for session in sessions.values()) or None
        if message.name is None:
            for session in sessions.values():
                session.malformed(message.sender)
            text = message.fault or ""
            return Alert(message.ts, "undecodable", message.sender, message.seq, None, states, (), text)
        # Drop the sessions that do not allow the message, unless none does.
        seen = _message_class(message.name)(**message.values)
        found = {name: session.observe(message.sender, seen) for name, session in sessions.items()}
        violations = {name: violation for name, violation in found.items() if violation is not None}
        if len(violations) < len(found):
            for name in violations:
                del sessions[name]
            return None
        if not violations:
            return None
        expected = dict.fromkeys(label for violation in violations.values() for label in violation.expected)
        states = ", ".join(violation.state for violation in violations.values())
        text = "; ".join(map(str, violations.values()))
        place = (message.sender, message.seq, message.name)
        return Alert(message.ts, "violation", *place, states, tuple(expected), text)


_decoder = msgspec.msgpack.Decoder(Conversation)


def _session(protocol: str, name: str) -> DialogSession:
    dialog = dialogs(protocol)[name]
    return DialogSession(dialog, dialog.roles[0], "concurrent", open_limit=OPEN_KEYS)


@cache
def _message_class(name: str) -> type:
    """Return a substitute for a message class, with its name and the fields that dialogs read."""
    return type(name, (SimpleNamespace,), {})
