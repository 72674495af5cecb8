"""Conversations of a watched capture: their messages without payloads, and when they raise an alert.

A message is decoded by the task that reads its segment. Only its name and the few fields that match
a reply with its request are forwarded (`Noticed`). The messages of one conversation in one segment
are packed into one row, because a row costs more than its content.

There are three kinds of alerts:

- ``violation``: a message that the dialog does not allow in its state, in the concurrent reading.
  If a protocol has several dialogs, all of them watch until they differ. A message that none of the
  remaining dialogs allows is a violation.
- ``undecodable``: frames that are not a message of the protocol.
- ``silent``: a side that spoke before has not been heard for a time, and the dialog is not over.
  The time is measured by the watcher's clock from the reading of the last message, so a clock
  difference between two hosts has no effect.

The number of alerts is limited, whatever a peer sends. After a violation or an undecodable message,
further ones of the conversation are counted but not emitted for `Rules.repeat_s`. The next emitted
alert states the count. Silence of a side is emitted once, until the side is heard again. A repeated
message, or one that arrives after later ones of its tap, is ignored. The state is a few hundred
octets and the keys of open requests, `OPEN_KEYS` at most for each kind of request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
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
    stamps = batch.column("ts").cast(pa.int64()).to_pylist()
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
        raw = batch.cast(
            pa.schema(
                (field.name, pa.binary() if pa.types.is_string(field.type) else field.type)
                for field in batch.schema
            )
        )
        return [
            {
                name: value.decode(errors="replace") if isinstance(value, bytes) else value
                for name, value in row.items()
            }
            for row in raw.to_pylist()
        ]


def _package(protocol: str | None, edition: str) -> str | None:
    """Return the name of the package that decodes a protocol and edition; None if there is none."""
    return choose_package(protocol, edition) if protocol and protocol in known_protocols() else None


@cache
def _watcher(package: str) -> Callable[[int, int, str, Sequence[bytes | None] | None], Noticed]:
    """Return the function that decodes one message with a package into `Noticed`.

    Null among the frames is a fault, with the same text as in the tables.
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

    def look(seq: int, ts: int, sender: str, frames: Sequence[bytes | None] | None) -> Noticed:
        known = [frame for frame in frames or () if frame is not None]
        if frames is not None and len(known) < len(frames):
            fault = f"frames in frame {frames.index(None)}: expected octets, found null [columns]"
            return Noticed(seq, ts, sender, None, fault=fault)
        try:
            message = decode(known, sender=sender or None) if takes_sender else decode(known)
        except DecodeError as error:
            return Noticed(seq, ts, sender, None, fault=str(error))
        values = {name: getattr(message, name, None) for name in fields}
        return Noticed(seq, ts, sender, type(message).__name__, values)

    return look


def dialogs(protocol: str) -> Mapping[str, Dialog]:
    """Return the dialogs of a protocol by name; none if the specification has no conversation."""
    found: Any = getattr(load_machine(protocol), "DIALOGS", {})
    named: Mapping[str, Dialog] = found
    return named


class Rules(msgspec.Struct, frozen=True):
    """Rules for alerts.

    Attributes:
        silent_s: seconds after which a side is silent; None for the limit that the answers use.
        repeat_s: seconds in which further findings of a conversation are only counted.
        forget_s: seconds after which a conversation that is silent on all sides is forgotten.
    """

    silent_s: float | None = None
    repeat_s: float = 60.0
    forget_s: float = 3600.0

    def silence_ms(self, protocol: str) -> int:
        """Return the time after which a side is silent, in milliseconds."""
        return int(1000 * (silence_s(protocol) if self.silent_s is None else self.silent_s))


class Alert(msgspec.Struct, frozen=True):
    """An alert.

    Attributes:
        ts: time of the finding, microseconds since 1970; for silence, when the side was last heard.
        kind: see the module.
        sender: role letter of the side that caused it.
        seq, message: number and class of the message. Both are None for silence, and `message` is
            None for undecodable frames.
        state: state of the dialog; None if no dialog is watched.
        expected: messages that the dialog would have allowed, each as ``ROLE:Message``.
        text: finding as one sentence.
        suppressed: number of earlier findings of the conversation that were not emitted.
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


class Heard(msgspec.Struct, array_like=True):
    """A side of the conversation: time and reading time of its last message.

    `told` says whether an alert for its silence was emitted.
    """

    ts: int
    read_ms: int
    told: bool = False


class Conversation(msgspec.Struct):
    """State of a conversation.

    Attributes:
        watched: state of the session of each dialog, by the dialog's name.
        last_seq: number of the last message, -1 before the first.
        heard: sides by role letter.
        quiet_until_ms: time until which findings are only counted.
        timer_ms: time of the next check for silence; None if no timer is set.
    """

    protocol: str
    peer: str = ""
    watched: dict[str, Memory] = {}
    last_seq: int = -1
    heard: dict[str, Heard] = {}
    quiet_until_ms: int = 0
    suppressed: int = 0
    timer_ms: int | None = None

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

    def observe(self, messages: Sequence[Noticed], now_ms: int, rules: Rules) -> Iterator[Alert]:
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
            if message.sender in self.heard or len(self.heard) < SIDES:
                self.heard[message.sender] = Heard(message.ts, now_ms)
            found = self._look(message, sessions)
            if found is not None:
                yield from self._tell(found, now_ms, rules)
        self.watched = {name: session.memory() for name, session in sessions.items()}

    def find_silent(self, now_ms: int, rules: Rules) -> Iterator[Alert]:
        """Yield an alert for each side that has been silent for too long and has no alert yet."""
        silence_ms = rules.silence_ms(self.protocol)
        for sender, heard in sorted(self.heard.items()):
            since_ms = now_ms - heard.read_ms
            if heard.told or since_ms < silence_ms:
                continue
            heard.told = True
            text = f"{sender} was not heard for {since_ms / 1000:.1f} s, after {silence_ms / 1000:g} s it is silent"
            states = ", ".join(memory.state for memory in self.watched.values()) or None
            yield Alert(heard.ts, "silent", sender, None, None, states, (), text)

    def next_look_ms(self, rules: Rules) -> int:
        """Return when the next side will be silent; if all are, when to forget the conversation."""
        silence_ms = rules.silence_ms(self.protocol)
        waiting = [heard.read_ms + silence_ms for heard in self.heard.values() if not heard.told]
        if waiting:
            return min(waiting)
        last_ms = max((heard.read_ms for heard in self.heard.values()), default=0)
        return last_ms + max(silence_ms, int(1000 * rules.forget_s))

    def _look(self, message: Noticed, sessions: dict[str, DialogSession]) -> Alert | None:
        states = ", ".join(session.state for session in sessions.values()) or None
        if message.name is None:
            for session in sessions.values():
                session.malformed(message.sender)
            text = message.fault or ""
            return Alert(message.ts, "undecodable", message.sender, message.seq, None, states, (), text)
        # Sessions that cannot be the dialog of this conversation are removed, but never the last.
        seen = _kind(message.name)(message.values)
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

    def _tell(self, alert: Alert, now_ms: int, rules: Rules) -> Iterator[Alert]:
        if now_ms < self.quiet_until_ms:
            self.suppressed += 1
            return
        yield msgspec.structs.replace(alert, suppressed=self.suppressed)
        self.suppressed = 0
        self.quiet_until_ms = now_ms + int(1000 * rules.repeat_s)


_decoder = msgspec.msgpack.Decoder(Conversation)


def _session(protocol: str, name: str) -> DialogSession:
    dialog = dialogs(protocol)[name]
    return DialogSession(dialog, dialog.roles[0], "concurrent", open_limit=OPEN_KEYS)


@cache
def _kind(name: str) -> type:
    """Return a substitute for a message class, with its name and the fields that dialogs read."""

    def keep(self: object, values: dict[str, object]) -> None:
        self.__dict__.update(values)

    return type(name, (), {"__init__": keep})
