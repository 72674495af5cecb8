"""What a pipeline run found, as values: written to ``summary.json``, shown by the command and the report.

Everything is counted for each tap by itself. Where both sides of a conversation were tapped, each message is
in the capture twice, and a sum over taps counts it twice too.
"""

from __future__ import annotations

import msgspec


class TapCount(msgspec.Struct, frozen=True):
    """All that one tap saw of one protocol; times in ISO 8601, UTC, None where it saw nothing."""

    tap: str
    protocol: str
    messages: int
    octets: int
    errors: int
    dropped: int
    first: str | None
    last: str | None


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
        ended: files whose end was marked by an empty chunk.
        deleted: deletions sent.
        chunks: chunks that hold octets.
        octets: octets in the chunks.
        seconds: from the first to the last of these messages.
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
    """Traffic in one stretch of time; `index` counts stretches from the first message of the capture."""

    index: int
    messages: int
    octets: int


class Timeline(msgspec.Struct, frozen=True):
    """Traffic over time in stretches of `width_s` seconds; stretches without traffic are left out."""

    width_s: float
    buckets: tuple[Bucket, ...]


class Summary(msgspec.Struct, frozen=True):
    """The result of one run.

    `tables` gives the rows of each table by its path in the output folder; `elapsed_s` is the time the run
    took, without the start of Spark.
    """

    capture: str
    taps: tuple[TapCount, ...]
    types: tuple[TypeCount, ...]
    errors: tuple[ErrorCount, ...]
    transfers: tuple[Transfer, ...]
    timeline: Timeline
    tables: dict[str, int]
    elapsed_s: float

    @property
    def messages(self) -> int:
        """Messages in the capture; one that two taps saw counts twice."""
        return sum(tap.messages for tap in self.taps)

    @property
    def octets(self) -> int:
        """Octets of all frames in the capture."""
        return sum(tap.octets for tap in self.taps)

    @property
    def undecoded(self) -> int:
        """Messages that did not decode."""
        return sum(tap.errors for tap in self.taps)

    @property
    def dropped(self) -> int:
        """Messages that the taps had to leave out."""
        return sum(tap.dropped for tap in self.taps)

    def to_json(self) -> bytes:
        """Return the summary as an indented JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
