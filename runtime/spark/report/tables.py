"""The tables of the report that tell of the summary, as rows of texts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specwire.runtime.capture.identity import tap_name
from specwire.runtime.spark.pipeline.summary import UNDECODED, Summary
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.figures import count_text, size_text, span_text

TAP_COLUMNS = 6
"""With more taps than this the types are summed over the taps."""

TRANSFERS_SHOWN = 20
ERRORS_SHOWN = 20
SEGMENTS_SHOWN = 20
TAPS_SHOWN = 40


class Table(msgspec.Struct, frozen=True):
    """A table of texts; the first `labels` columns are words, the others figures."""

    title: str
    note: str
    labels: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The style of each column."""
        return tuple("word" if at < self.labels else "figure" for at in range(len(self.head)))


def type_table(summary: Summary, *, by_tap: bool = True) -> Table:
    """Return messages by type and sender, `by_tap` with a column for each tap where the taps are few.

    A cell is empty where the tap saw nothing of the protocol.
    """
    names = short_names([tap.tap for tap in summary.taps if tap.messages])
    apart = by_tap and 1 < len(names) <= TAP_COLUMNS
    speaks = {(tap.tap, tap.protocol) for tap in summary.taps}
    protocols: dict[tuple[str, ...], str] = {}
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    octets: dict[tuple[str, ...], int] = {}
    for item in summary.types:
        key = (
            *if_several(summary, item.protocol),
            item.message or UNDECODED,
            role_name(item.protocol, item.sender),
        )
        protocols[key] = item.protocol
        counts.setdefault(key, dict.fromkeys(names, 0))[item.tap] += item.messages
        octets[key] = octets.get(key, 0) + item.octets
    rows: list[tuple[str, ...]] = []
    for key, found in sorted(counts.items(), key=lambda item: (UNDECODED in item[0], item[0])):
        protocol = protocols[key]
        each = (count_text(messages) if (tap, protocol) in speaks else "" for tap, messages in found.items())
        total = count_text(sum(found.values()))
        rows.append((*key, *(each if apart else ()), total, size_text(octets[key])))
    labels = (*if_several(summary, "Protocol"), "Message", "Sent by")
    taps = (*names.values(), "All taps") if apart else ("Messages",)
    note = "A message that two taps saw is counted for each of them." if len(names) > 1 else ""
    return Table("Messages by type and direction", note, len(labels), (*labels, *taps, "Octets"), tuple(rows))


def error_table(summary: Summary) -> Table:
    """Return what did not decode, by reason."""
    names = short_names([tap.tap for tap in summary.taps])
    rows: list[tuple[str, ...]] = []
    for error in summary.errors[:ERRORS_SHOWN]:
        protocol = if_several(summary, error.protocol)
        rows.append((*protocol, error.text, error.kind, names[error.tap], count_text(error.messages)))
    note = "Every message decoded." if summary.messages else ""
    if rows:
        note = "A finding stands for all of its field and kind; the tables named _errors have every frame."
        note += _hidden(len(summary.errors) - len(rows))
    labels = (*if_several(summary, "Protocol"), "Finding", "Kind", "Tap")
    return Table("Messages that did not decode", note, len(labels), (*labels, "Messages"), tuple(rows))


def tap_table(summary: Summary) -> Table:
    """Return what each tap saw, when, and what it left out; of many, those with faults and the busiest.

    Dates are there only where there are several.
    """
    ranked = sorted(summary.taps, key=lambda tap: (-(tap.errors + tap.dropped + tap.missing), -tap.messages))
    shown = set(ranked[:TAPS_SHOWN])
    days = {text[:10] for tap in summary.taps for text in (tap.first, tap.last) if text}
    rows: list[tuple[str, ...]] = []
    for tap in (tap for tap in summary.taps if tap in shown):
        times = (clock_text(text, dated=len(days) > 1) for text in (tap.first, tap.last))
        faults = (tap.errors, tap.dropped, *([tap.missing] if summary.missing else []))
        traffic = (count_text(tap.messages), size_text(tap.octets), *map(count_text, faults))
        rows.append((tap.tap, tap.protocol, *times, *traffic))
    labels = ("Tap", "Protocol", "First (UTC)", "Last (UTC)")
    head = (
        *labels,
        "Messages",
        "Octets",
        "Not decoded",
        "Dropped",
        *(["Missing"] if summary.missing else []),
    )
    note = ""
    if summary.missing:
        note = "Missing are messages of which no segment could be read, though earlier and later ones of the tap are here."
    note = (note + _hidden(len(summary.taps) - len(rows))).strip()
    return Table("Taps", note, len(labels), head, tuple(rows))


def transfer_table(summary: Summary) -> Table | None:
    if not summary.transfers:
        return None
    names = short_names([tap.tap for tap in summary.taps])
    rows: list[tuple[str, ...]] = []
    for item in summary.transfers[:TRANSFERS_SHOWN]:
        files = map(count_text, (item.begun, item.ended, item.deleted, item.chunks))
        place = (names[item.tap], item.conversation, item.peer)
        rows.append((*place, *files, size_text(item.octets), span_text(item.seconds)))
    hidden = len(summary.transfers) - len(rows)
    note = f"The largest conversations.{_hidden(hidden)}" if hidden else ""
    head = ("Tap", "Conversation", "Peer", "Files begun", "Ended", "Deleted", "Chunks", "Octets", "Time")
    return Table("Files transferred", note, 3, head, tuple(rows))


def segment_table(summary: Summary) -> Table | None:
    """Return the segments that could not be read, or were odd; None where all were sound."""
    told = summary.segments.told[:SEGMENTS_SHOWN]
    if not told:
        return None
    rows = tuple((item.name, item.outcome, item.reason, count_text(item.run)) for item in told)
    hidden = len(summary.segments.told) - len(rows)
    return Table(
        "Segments set aside", _hidden(hidden).strip(), 3, ("Segment", "Outcome", "Reason", "Run"), rows
    )


def _hidden(number: int) -> str:
    """A sentence for the end of a note, where rows are left out."""
    return f" {count_text(number)} more are in summary.json." if number else ""


def short_names(taps: Sequence[str]) -> dict[str, str]:
    """Return each tap's name, or its id where two taps share a name."""
    names = [tap_name(tap) for tap in taps]
    return {tap: name if names.count(name) == 1 else tap for tap, name in zip(taps, names, strict=True)}


def if_several(summary: Summary, protocol: str) -> tuple[str, ...]:
    """Return the cell of the protocol column, which only a capture of several protocols has."""
    return (protocol,) if len(protocols_of(summary)) > 1 else ()


def protocols_of(summary: Summary) -> list[str]:
    """Return the protocols of the capture, sorted."""
    return sorted({tap.protocol for tap in summary.taps if tap.protocol})


def clock_text(text: str | None, *, dated: bool) -> str:
    """Return the time of day of a moment in ISO 8601, after its date where it is `dated`; nothing for no moment."""
    if not text:
        return ""
    return text[:19].replace("T", " ") if dated else text[11:23]
