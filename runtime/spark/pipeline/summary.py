"""Summary of an output folder, written to ``summary.json`` and shown by the command and the report.

Each tap is counted separately. If both sides of a conversation are tapped, each message is in the
capture twice, and a sum over taps counts it twice.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from specwire.runtime.packages import HINT

NAME = "summary.json"
UNKNOWN = "unknown"
"""Name for all protocols without a package."""
UNKNOWN_TEXT = "the tap states a protocol that is not known: "
"""Prefix of the error text of such messages, before the protocol that the tap stated."""
UNDECODED = "(undecoded)"
"""Name for the class of messages that did not decode."""


class TapCount(msgspec.Struct, frozen=True):
    """Traffic of one protocol at one tap; times in ISO 8601, UTC, or None without messages.

    `dropped` is the number of messages that the tap reports as dropped. `missing` is the number of
    messages between its first and last that are in no readable segment. Messages lost to a full
    disk are in both. If a tap saw several protocols, both numbers are in one of its rows.
    """

    tap: str
    protocol: str
    messages: int
    octets: int
    errors: int
    dropped: int
    first: str | None
    last: str | None
    missing: int = 0


class TypeCount(msgspec.Struct, frozen=True):
    """Messages of one type from one side at one tap; `message` is None if they did not decode."""

    tap: str
    protocol: str
    message: str | None
    sender: str
    messages: int
    octets: int


class ErrorCount(msgspec.Struct, frozen=True):
    """Messages that did not decode for one reason; `text` is the finding of one of them."""

    tap: str
    protocol: str
    message: str | None
    field: str | None
    kind: str
    text: str
    messages: int


class Transfer(msgspec.Struct, frozen=True):
    """Files transferred over one conversation, as one tap saw them.

    Attributes:
        begun: files whose beginning was sent (a chunk at offset 0).
        ended: files that were transferred completely.
        deleted: deletions sent.
        chunks: chunks that hold octets.
        octets: octets in the chunks.
        seconds: time from the first to the last chunk or deletion.
    """

    tap: str
    protocol: str
    conversation: str
    peer: str
    begun: int
    ended: int
    deleted: int
    chunks: int
    octets: int
    seconds: float


class Bucket(msgspec.Struct, frozen=True):
    """Traffic in one stretch of time; `index` counts stretches from the first with a message.

    `types` counts messages by class. Messages that did not decode are counted as ``(undecoded)``.
    """

    index: int
    messages: int
    octets: int
    types: dict[str, int] = {}


class Timeline(msgspec.Struct, frozen=True):
    """Traffic over time in stretches of `width_s` seconds, omitting those without traffic."""

    width_s: float
    buckets: tuple[Bucket, ...]


class SetAside(msgspec.Struct, frozen=True):
    """An unreadable or unusual segment: the `run` that found it, and the `reason` as a sentence."""

    run: int
    name: str
    outcome: str
    reason: str


class Totals(msgspec.Struct, frozen=True):
    """Numbers of messages in all segments by result: `captured` is the sum of the others.

    Attributes:
        captured: messages in the readable segments.
        typed: messages in the typed tables.
        errors: messages that did not decode. They are in the tables `_errors`, or omitted in the
            mode DROPMALFORMED.
        late: messages in the table `late`.
        repeated: messages in several segments, which another number counts once.
    """

    captured: int = 0
    typed: int = 0
    errors: int = 0
    late: int = 0
    repeated: int = 0


class Segments(msgspec.Struct, frozen=True):
    """Numbers of segments by outcome; `told` lists unreadable and unusual segments."""

    read: int = 0
    partial: int = 0
    duplicate: int = 0
    late: int = 0
    quarantined: int = 0
    told: tuple[SetAside, ...] = ()


class Summary(msgspec.Struct, frozen=True):
    """Content of an output folder after a run.

    `tables` is the number of rows of each table, by its path in the output folder. `elapsed_s` is
    the duration of the last run without the start of Spark, and `run` is its number. `timelines` is
    the timeline of each protocol, with the stretches and indexes of `timeline`.
    """

    capture: str
    taps: tuple[TapCount, ...]
    types: tuple[TypeCount, ...]
    errors: tuple[ErrorCount, ...]
    transfers: tuple[Transfer, ...]
    timeline: Timeline
    tables: dict[str, int]
    elapsed_s: float
    run: int = 1
    totals: Totals = Totals()
    segments: Segments = Segments()
    timelines: dict[str, Timeline] = {}

    @property
    def messages(self) -> int:
        """Number of messages in the tables; a message that two taps saw counts twice."""
        return sum(tap.messages for tap in self.taps)

    @property
    def octets(self) -> int:
        """Number of octets in all frames of these messages."""
        return sum(tap.octets for tap in self.taps)

    @property
    def undecoded(self) -> int:
        """Number of messages that did not decode."""
        return sum(tap.errors for tap in self.taps)

    @property
    def set_aside(self) -> int:
        """Number of segments in `told` that the last run could not read."""
        told = self.segments.told
        return sum(item.run == self.run and item.outcome == "quarantined" for item in told)

    @property
    def unknown(self) -> int:
        """Number of messages of protocols without a package."""
        return sum(tap.messages for tap in self.taps if tap.protocol == UNKNOWN)

    @property
    def unknown_sentence(self) -> str:
        """Sentence with the protocols known from the errors, and how to name a package.

        It is empty if there are no such messages.
        """
        if not self.unknown:
            return ""
        stated = (error.text.removeprefix(UNKNOWN_TEXT) for error in self.errors if error.protocol == UNKNOWN)
        names = ", ".join(sorted(set(stated)))
        return (
            f"{self.unknown:,} messages have no package here ({names}): {HINT}, and use a new output folder"
        )

    @property
    def missing(self) -> int:
        """Number of messages in no readable segment, though earlier and later ones are in some."""
        return sum(tap.missing for tap in self.taps)

    @property
    def dropped(self) -> int:
        """Number of messages that the taps dropped."""
        return sum(tap.dropped for tap in self.taps)

    def to_json(self) -> bytes:
        """Return the summary as an indented JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_summary(out: Path) -> Summary | None:
    """Return the summary of an output folder; None if there is none."""
    try:
        return msgspec.json.decode((out / NAME).read_bytes(), type=Summary)
    except FileNotFoundError:
        return None
