"""What an output folder holds, as values: written to ``summary.json``, shown by the command and the report.

Everything is counted for each tap by itself. Where both sides of a conversation were tapped, each message is
in the capture twice, and a sum over taps counts it twice too.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from specwire.runtime.packages import HINT

NAME = "summary.json"
UNKNOWN = "unknown"
"""Stands for all protocols that there is no package for."""
UNKNOWN_TEXT = "the tap states a protocol that is not known: "
"""How the error of a message of such a protocol begins; what the tap stated follows."""
UNDECODED = "(undecoded)"
"""Stands for the class of messages that did not decode."""


class TapCount(msgspec.Struct, frozen=True):
    """All that one tap saw of one protocol; times in ISO 8601, UTC, None where it saw nothing.

    `dropped` is what the tap says it left out; `missing` are messages between its first and its last that are in
    no segment that could be read (those that a full disk lost are in `dropped` as well). Both stand in one row of
    a tap that saw several protocols.
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
    """Messages of one type from one side, as one tap saw them; `message` is None where they did not decode."""

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
    """Files carried over one conversation, as one tap saw them.

    Attributes:
        begun: files whose beginning was sent (a chunk at offset 0).
        ended: files that came whole.
        deleted: deletions sent.
        chunks: chunks that hold octets.
        octets: octets in the chunks.
        seconds: from the first to the last chunk or deletion.
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

    `types` has the messages by class; messages that did not decode are counted as ``(undecoded)``.
    """

    index: int
    messages: int
    octets: int
    types: dict[str, int] = {}


class Timeline(msgspec.Struct, frozen=True):
    """Traffic over time in stretches of `width_s` seconds; stretches without traffic are omitted."""

    width_s: float
    buckets: tuple[Bucket, ...]


class SetAside(msgspec.Struct, frozen=True):
    """A segment that cannot be read, or that is odd; `run` found it so, `reason` is one sentence."""

    run: int
    name: str
    outcome: str
    reason: str


class Totals(msgspec.Struct, frozen=True):
    """Where the messages of all segments went: `captured` is the sum of the others.

    Attributes:
        captured: messages in the segments that could be read.
        typed: in the typed tables.
        errors: did not decode; in the tables `_errors`, or left out in the mode DROPMALFORMED.
        late: in the table `late`.
        repeated: in several segments; counted once elsewhere.
    """

    captured: int = 0
    typed: int = 0
    errors: int = 0
    late: int = 0
    repeated: int = 0


class Segments(msgspec.Struct, frozen=True):
    """What came of the segments; `told` names those that cannot be read, and others that are odd."""

    read: int = 0
    partial: int = 0
    duplicate: int = 0
    late: int = 0
    quarantined: int = 0
    told: tuple[SetAside, ...] = ()


class Summary(msgspec.Struct, frozen=True):
    """An output folder after a run.

    `tables` gives the rows of each table by its path in the output folder; `elapsed_s` is the time the last run
    took, without the start of Spark; `run` is its number. `timelines` has the part of each protocol in the
    timeline, with the same stretches and indexes.
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
        """Messages in the tables; one that two taps saw counts twice."""
        return sum(tap.messages for tap in self.taps)

    @property
    def octets(self) -> int:
        """Octets of all frames of these messages."""
        return sum(tap.octets for tap in self.taps)

    @property
    def undecoded(self) -> int:
        """Messages that did not decode."""
        return sum(tap.errors for tap in self.taps)

    @property
    def set_aside(self) -> int:
        """Segments that the last run found that it cannot read; at most `told` of them."""
        told = self.segments.told
        return sum(item.run == self.run and item.outcome == "quarantined" for item in told)

    @property
    def unknown(self) -> int:
        """Messages of protocols that no package was known for."""
        return sum(tap.messages for tap in self.taps if tap.protocol == UNKNOWN)

    @property
    def unknown_sentence(self) -> str:
        """Which protocols these are, as far as the errors say, and how to name a package; empty for none."""
        if not self.unknown:
            return ""
        stated = (error.text.removeprefix(UNKNOWN_TEXT) for error in self.errors if error.protocol == UNKNOWN)
        names = ", ".join(sorted(set(stated)))
        return (
            f"{self.unknown:,} messages have no package here ({names}): {HINT}, and use a new output folder"
        )

    @property
    def missing(self) -> int:
        """Messages that are in no segment that could be read, though earlier and later ones are."""
        return sum(tap.missing for tap in self.taps)

    @property
    def dropped(self) -> int:
        """Messages that the taps had to leave out."""
        return sum(tap.dropped for tap in self.taps)

    def to_json(self) -> bytes:
        """Return the summary as an indented JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_summary(out: Path) -> Summary | None:
    """Return the summary of an output folder; None where there is none."""
    try:
        return msgspec.json.decode((out / NAME).read_bytes(), type=Summary)
    except FileNotFoundError:
        return None
