"""The tables of the report: summary and findings as rows of texts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specwire.runtime.capture.identity import tap_name
from specwire.runtime.spark.pipeline.summary import UNDECODED, Summary
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.figures import count_text, size_text, span_text
from specwire.runtime.spark.report.found import Findings

TAP_COLUMNS = 6
"""With more taps than this the types are summed over the taps."""

TRANSFERS_SHOWN = 20
ERRORS_SHOWN = 20
SEGMENTS_SHOWN = 20


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


def type_table(summary: Summary) -> Table:
    """Return messages by type and sender, a column for each tap where the taps are few."""
    names = short_names([tap.tap for tap in summary.taps if tap.messages])
    apart = 1 < len(names) <= TAP_COLUMNS
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    octets: dict[tuple[str, ...], int] = {}
    for item in summary.types:
        key = (
            *if_several(summary, item.protocol),
            item.message or UNDECODED,
            role_name(item.protocol, item.sender),
        )
        counts.setdefault(key, dict.fromkeys(names, 0))[item.tap] += item.messages
        octets[key] = octets.get(key, 0) + item.octets
    rows: list[tuple[str, ...]] = []
    for key, by_tap in sorted(counts.items(), key=lambda item: (UNDECODED in item[0], item[0])):
        each = map(count_text, by_tap.values()) if apart else ()
        rows.append((*key, *each, count_text(sum(by_tap.values())), size_text(octets[key])))
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
    note = "Every message decoded."
    if rows:
        note = "A finding stands for all of its field and kind; the tables named _errors have every frame."
    labels = (*if_several(summary, "Protocol"), "Finding", "Kind", "Tap")
    return Table("Messages that did not decode", note, len(labels), (*labels, "Messages"), tuple(rows))


def tap_table(summary: Summary) -> Table:
    rows: list[tuple[str, ...]] = []
    for tap in summary.taps:
        seen = (tap.tap, tap.protocol, _clock(tap.first), _clock(tap.last))
        traffic = (count_text(tap.messages), size_text(tap.octets))
        rows.append((*seen, *traffic, count_text(tap.errors), count_text(tap.dropped)))
    head = ("Tap", "Protocol", "First (UTC)", "Last (UTC)", "Messages", "Octets", "Not decoded", "Dropped")
    return Table("Taps", "", 4, head, tuple(rows))


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
    note = f"The largest conversations; {count_text(hidden)} more are in summary.json." if hidden else ""
    head = ("Tap", "Conversation", "Peer", "Files begun", "Ended", "Deleted", "Chunks", "Octets", "Time")
    return Table("Files transferred", note, 3, head, tuple(rows))


def topic_table(findings: Findings) -> Table | None:
    """Return what was asked for, the slowest first; None where nothing was."""
    if not findings.topics:
        return None
    rows = tuple(
        (
            item.topic or item.service or WORDS.get(item.kind, item.kind),
            item.protocol,
            *map(count_text, (item.begun, item.answered, item.errors, item.unanswered)),
            *map(_took, (item.p50_us, item.p99_us, item.max_us)),
        )
        for item in findings.topics
    )
    head = ("Topic", "Protocol", "Asked", "Answered", "Errors", "Given up", "Median", "99 %", "Longest")
    return Table("Slowest topics", "By the time in which 99 of 100 were answered.", 2, head, rows)


def file_table(findings: Findings) -> Table | None:
    """Return the largest files that were sent; None where there were none."""
    if not findings.files:
        return None
    rows = tuple(
        (
            item.filename,
            item.peer or "",
            item.outcome,
            size_text(item.octets),
            _took(item.duration_us),
            "" if item.octets_per_s is None else f"{size_text(round(item.octets_per_s))}/s",
            count_text(item.stalls),
            _took(item.stalled_us),
        )
        for item in findings.files
    )
    note = "Stalls are times in which the credit was used up in the middle of a file."
    head = ("File", "Peer", "Outcome", "Octets", "Took", "Speed", "Stalls", "Stalled")
    return Table("Largest files", note, 3, head, rows)


def violation_table(findings: Findings) -> Table | None:
    """Return the violations of dialogs by kind; None where there are none."""
    if not findings.violation_counts:
        return None
    rows = tuple(
        (
            item.message or UNDECODED,
            item.kind,
            item.reading,
            item.protocol,
            *map(count_text, (item.conversations, item.violations)),
        )
        for item in findings.violation_counts
    )
    note = "In the strict reading nobody speaks out of turn; peers that do not wait for each other keep the concurrent one."
    head = ("Message", "Kind", "Reading", "Protocol", "Conversations", "Violations")
    return Table("Violations of the dialogs", note, 4, head, rows)


def segment_table(summary: Summary) -> Table | None:
    """Return the segments that could not be read, or were odd; None where all were sound."""
    told = summary.segments.told[:SEGMENTS_SHOWN]
    if not told:
        return None
    rows = tuple((item.name, item.outcome, item.reason, count_text(item.run)) for item in told)
    return Table("Segments set aside", "", 3, ("Segment", "Outcome", "Reason", "Run"), rows)


def _took(micros: float | None) -> str:
    if micros is None:
        return ""
    return (
        f"{micros:.0f} µs"
        if micros < 1000
        else span_text(micros / 1e6)
        if micros >= 1e6
        else f"{micros / 1000:.3g} ms"
    )


WORDS = {"transfer": "(files)"}
"""Stand where something has no topic."""


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


def _clock(text: str | None) -> str:
    return text[11:23] if text else ""
