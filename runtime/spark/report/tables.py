"""Tables of the report and the command line: typed values and the format of each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from specwire.runtime.capture.identity import tap_name
from specwire.runtime.spark.pipeline.summary import UNDECODED, Summary
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report import queries
from specwire.runtime.spark.report.charts import KINDS, SILENCES, conversation_name
from specwire.runtime.spark.report.findings import TOPICS_KEPT, TRANSFERS_KEPT, Findings, Topic
from specwire.runtime.spark.report.text import (
    clock_text,
    count_text,
    micros_text,
    moment_text,
    size_text,
    span_text,
)

ERRORS_TITLE = "Messages that did not decode"
VIOLATIONS_TITLE = "Violations of the dialogs"

TAP_COLUMNS = 6
"""With more taps than this, types are summed over taps."""

TRANSFERS_SHOWN = 20
ERRORS_SHOWN = 20
SEGMENTS_SHOWN = 20
SILENCES_SHOWN = 20
TAPS_SHOWN = 40

Show = Callable[[Any], str]


class TableColumn(msgspec.Struct, frozen=True):
    """Heading of a column and format of its values; `word` aligns it left."""

    name: str
    show: Show
    word: bool = False


class Table(msgspec.Struct, frozen=True):
    """A table of values; `sql` is the query that returns them."""

    title: str
    note: str
    columns: tuple[TableColumn, ...]
    values: tuple[tuple[Any, ...], ...]
    sql: str = ""

    @property
    def head(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(column.name for column in self.columns)

    @property
    def labels(self) -> int:
        """The number of columns of words, which come first."""
        return sum(column.word for column in self.columns)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The style of each column."""
        return tuple("word" if column.word else "figure" for column in self.columns)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The values as texts; a missing value is an empty text."""
        return tuple(
            tuple(
                "" if value is None else column.show(value)
                for column, value in zip(self.columns, row, strict=True)
            )
            for row in self.values
        )


def _words(*names: str) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(name, str, word=True) for name in names)


def _counts(*names: str) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(name, count_text) for name in names)


def _size(name: str) -> TableColumn:
    return TableColumn(name, size_text)


def _micros(*names: str) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(name, micros_text) for name in names)


def type_table(summary: Summary, *, by_tap: bool = True) -> Table:
    """Return messages by type and sender; `by_tap` adds a column for each tap if taps are few.

    A cell is empty where the tap saw nothing of the protocol.
    """
    several = len(protocols_of(summary)) > 1
    names = short_names([tap.tap for tap in summary.taps if tap.messages])
    separate = by_tap and 1 < len(names) <= TAP_COLUMNS
    speaks = {(tap.tap, tap.protocol) for tap in summary.taps}
    counts: dict[tuple[str, str, str], dict[str, int]] = {}
    octets: dict[tuple[str, str, str], int] = {}
    for item in summary.types:
        key = (item.protocol, item.message or UNDECODED, role_name(item.protocol, item.sender))
        found = counts.setdefault(key, dict.fromkeys(names, 0))
        found[item.tap] = found.get(item.tap, 0) + item.messages
        octets[key] = octets.get(key, 0) + item.octets
    values = []
    for key, found in sorted(counts.items(), key=lambda item: (UNDECODED in item[0], item[0])):
        each = [messages if (tap, key[0]) in speaks else None for tap, messages in found.items()]
        values.append(
            (*(key if several else key[1:]), *(each if separate else ()), sum(found.values()), octets[key])
        )
    labels = _words(*(["Protocol"] if several else []), "Message", "Sent by")
    taps = _counts(*names.values(), "All taps") if separate else _counts("Messages")
    note = "A message that two taps saw is counted for each of them." if len(names) > 1 else ""
    sql = "" if several else queries.types(_protocol(summary), list(names) if separate else [])
    columns = (*labels, *taps, _size("Octets"))
    return Table("Messages by type and direction", note, columns, tuple(values), sql)


def error_table(summary: Summary) -> Table:
    """Return the messages that did not decode, by reason."""
    several = len(protocols_of(summary)) > 1
    names = short_names([tap.tap for tap in summary.taps])
    shown = summary.errors[:ERRORS_SHOWN]
    values = tuple(
        (*([error.protocol] if several else []), error.text, error.kind, error.tap, error.messages)
        for error in shown
    )
    note = "Every message decoded." if summary.messages else ""
    if values:
        note = "One finding represents all of its field and kind; the tables named _errors have every frame."
        note += _hidden(len(summary.errors) - len(shown))
    columns = (
        *_words(*(["Protocol"] if several else []), "Finding", "Kind"),
        _tap_column(names),
        *_counts("Messages"),
    )
    sql = queries.errors(None if several else _protocol(summary), ERRORS_SHOWN)
    return Table(ERRORS_TITLE, note, columns, values, sql if values and not several else "")


def _tap_column(names: Mapping[str, str]) -> TableColumn:
    return TableColumn("Tap", lambda tap: names.get(tap, tap), word=True)


def tap_table(summary: Summary) -> Table:
    """Return the table of taps; if there are many, only those with faults and the busiest.

    Times have dates only if the capture has several.
    """
    ranked = sorted(summary.taps, key=lambda tap: (-(tap.errors + tap.dropped + tap.missing), -tap.messages))
    shown = set(ranked[:TAPS_SHOWN])
    days = {text[:10] for tap in summary.taps for text in (tap.first, tap.last) if text}
    missing = ["missing"] if summary.missing else []
    fields = ("tap", "protocol", "first", "last", "messages", "octets", "errors", "dropped", *missing)
    values = tuple(tuple(getattr(tap, field) for field in fields) for tap in summary.taps if tap in shown)
    clock = partial(clock_text, dated=len(days) > 1)
    columns = (
        *_words("Tap", "Protocol"),
        TableColumn("First (UTC)", clock, word=True),
        TableColumn("Last (UTC)", clock, word=True),
        *_counts("Messages"),
        _size("Octets"),
        *_counts("Not decoded", "Dropped", *(["Missing"] if missing else [])),
    )
    note = ""
    if missing:
        note = "Missing messages are in no readable segment, though earlier and later ones of the tap are."
    note = (note + _hidden(len(summary.taps) - len(values))).strip()
    return Table("Taps", note, columns, values, queries.taps(None))


def transfer_table(summary: Summary) -> Table | None:
    """Return files by conversation, the largest first; None if no files were transferred."""
    if not summary.transfers:
        return None
    names = short_names([tap.tap for tap in summary.taps])
    shown = summary.transfers[:TRANSFERS_SHOWN]
    fields = ("tap", "conversation", "peer", "begun", "ended", "deleted", "chunks", "octets", "seconds")
    values = tuple(tuple(getattr(item, field) for field in fields) for item in shown)
    hidden = len(summary.transfers) - len(values)
    note = f"The conversations with the most octets.{_hidden(hidden)}" if hidden else ""
    columns = (
        _tap_column(names),
        *_words("Conversation", "Peer"),
        *_counts("Files begun", "Complete", "Deleted", "Chunks"),
        _size("Octets"),
        TableColumn("Time", span_text),
    )
    return Table(
        "Files by conversation", note, columns, values, queries.transfers(_protocol(summary), TRANSFERS_SHOWN)
    )


def segment_table(summary: Summary) -> Table | None:
    """Return the segments that cannot be read or are odd; None if there are none."""
    reports = summary.segments.told[:SEGMENTS_SHOWN]
    if not reports:
        return None
    values = tuple((item.name, item.outcome, item.reason, item.run) for item in reports)
    note = _hidden(len(summary.segments.told) - len(values)).strip()
    columns = (*_words("Segment", "Outcome", "Reason"), *_counts("Run"))
    return Table("Segments set aside", note, columns, values, queries.segments())


def topic_table(findings: Findings) -> Table | None:
    """Return the topics, the slowest first; None if there are none."""
    if not findings.topics:
        return None
    protocol = findings.topics[0].protocol
    fields = ("begun", "answered", "errors", "unanswered", "p50_us", "p99_us", "max_us")
    values = tuple(
        (_topic_text(item), *(getattr(item, field) for field in fields)) for item in findings.topics
    )
    columns = (
        *_words("Topic"),
        *_counts("Asked", "Answered", "Errors", "Given up"),
        *_micros("Median", "99 %", "Longest"),
    )
    note = "Ordered by the time within which 99 of 100 were answered."
    return Table("Slowest topics", note, columns, values, queries.topics(protocol, TOPICS_KEPT))


def file_table(findings: Findings) -> Table | None:
    """Return the largest files; None if there were none."""
    if not findings.files:
        return None
    fields = ("filename", "peer", "outcome", "octets", "duration_us", "octets_per_s", "stalls", "stalled_us")
    values = tuple(tuple(getattr(item, field) for field in fields) for item in findings.files)
    columns = (
        *_words("File", "Peer", "Outcome"),
        _size("Octets"),
        *_micros("Duration"),
        TableColumn("Speed", lambda octets: f"{size_text(octets)}/s"),
        *_counts("Stalls"),
        *_micros("Stalled"),
    )
    note = "A stall is time without credit in the middle of a file."
    return Table(
        "Largest files", note, columns, values, queries.files(findings.files[0].protocol, TRANSFERS_KEPT)
    )


def silence_table(findings: Findings, names: Mapping[str, str]) -> Table | None:
    """Return the longest silences; None if there were none. `names` has the names of taps."""
    if not findings.silences:
        return None
    found = findings.silences[:SILENCES_SHOWN]
    protocol = found[0].protocol
    dated = len({item.ts.date() for item in found}) > 1
    values = tuple(
        (
            conversation_name(item.peer, item.conversation, item.tap, {}),
            item.tap,
            item.sender,
            item.ts,
            item.outcome,
            item.silent_s,
        )
        for item in found
    )
    moment: Show = partial(moment_text, dated=dated, precise=True)
    columns = (
        *_words("Peer"),
        _tap_column(names),
        TableColumn("Silent side", partial(role_name, protocol), word=True),
        TableColumn("Since (UTC)", moment, word=True),
        TableColumn("Then", lambda outcome: SILENCES.get(outcome) or str(outcome), word=True),
        TableColumn("Duration", span_text),
    )
    note = "Sides that sent nothing for longer than their protocol allows."
    return Table("Longest silences", note, columns, values, queries.silences(protocol, SILENCES_SHOWN))


def violation_table(findings: Findings) -> Table | None:
    """Return the violations of dialogs by kind, the concurrent reading first.

    None if there are none.
    """
    if not findings.violation_counts:
        return None
    ranked = sorted(findings.violation_counts, key=lambda item: item.reading)
    values = tuple(
        (item.message or UNDECODED, item.kind, item.reading, item.conversations, item.violations)
        for item in ranked
    )
    sums = {
        reading: sum(item.violations for item in ranked if item.reading == reading)
        for reading in sorted({item.reading for item in ranked})
    }
    totals = ", ".join(f"{count_text(number)} {reading}" for reading, number in sums.items())
    note = (
        f"{totals}. The strict reading allows nobody to speak out of turn; peers that do not wait for each other "
        "violate it often and do no harm. At most 16 violations of a conversation are recorded for each reading."
    )
    columns = (*_words("Message", "Kind", "Reading"), *_counts("Conversations", "Violations"))
    sql = queries.violations(ranked[0].protocol)
    return Table(VIOLATIONS_TITLE, note, columns, values, sql)


def _topic_text(item: Topic) -> str:
    """The topic.

    A job's task after its service, because two services may have tasks of one name.
    """
    if item.kind == "job" and item.service and item.topic:
        return f"{item.service}: {item.topic}"
    return item.topic or item.service or f"({KINDS.get(item.kind, item.kind)})"


def _hidden(number: int) -> str:
    """Return the sentence at the end of a note that says how many rows are omitted."""
    return f" {count_text(number)} more are in summary.json." if number > 0 else ""


def short_names(taps: Sequence[str]) -> dict[str, str]:
    """Return each tap's name, or its id if two taps share a name."""
    taps = list(dict.fromkeys(taps))
    names = [tap_name(tap) for tap in taps]
    return {tap: name if names.count(name) == 1 else tap for tap, name in zip(taps, names, strict=True)}


def protocols_of(summary: Summary) -> list[str]:
    """Return the protocols of the capture, sorted."""
    return sorted({tap.protocol for tap in summary.taps if tap.protocol})


def _protocol(summary: Summary) -> str | None:
    return next(iter(protocols_of(summary)), None)
