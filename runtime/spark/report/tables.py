"""Tables of the report and the command line: typed values, the format of each column, and their SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from specwire.runtime.spark.pipeline.summary import UNDECODED, Summary
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.findings import FILES_KEPT, READINGS, TOPICS_KEPT, Findings, Topic
from specwire.runtime.spark.report.text import (
    KINDS,
    SILENCES,
    clock_text,
    conversation_name,
    count_text,
    join_sentences,
    listed_text,
    micros_text,
    moment_text,
    short_names,
    size_text,
    span_text,
)

TEMPLATES = Path(__file__).parent / "templates"

ERRORS_TITLE = "Messages that did not decode"
VIOLATIONS_TITLE = "Violations of the dialogs"
SEGMENTS_TITLE = "Segments with problems"
NOT_LISTED = "(not listed)"

TAP_COLUMNS = 6
"""With more taps than this, types are summed over taps."""
TRANSFERS_SHOWN = 20
ERRORS_SHOWN = 20
SEGMENTS_SHOWN = 20
SILENCES_SHOWN = 20
TAPS_SHOWN = 40


class TableColumn(msgspec.Struct, frozen=True):
    """Heading of a column and format of its values; `word` aligns it left."""

    name: str
    show: Callable[[Any], str]
    word: bool = False


class Table(msgspec.Struct, frozen=True):
    """A table of values; `sql` is the query that returns them."""

    title: str
    note: str
    columns: tuple[TableColumn, ...]
    values: tuple[tuple[Any, ...], ...]
    sql: str = ""

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


def query(name: str, *arguments: object) -> str:
    """Return a statement of ``queries.sql.j2``."""
    return str(getattr(_queries(), name)(*arguments)).strip()


@cache
def _queries() -> object:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("queries.sql.j2").module


def _columns(show: Callable[[Any], str], *names: str, word: bool = False) -> tuple[TableColumn, ...]:
    """Return columns of one format; columns of plain texts are columns of words."""
    return tuple(TableColumn(name, show, word or show is str) for name in names)


def _tap_column(names: Mapping[str, str]) -> tuple[TableColumn, ...]:
    return _columns(lambda tap: names.get(tap, tap), "Tap", word=True)


def _pick(items: Iterable[object], *fields: str) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(getattr(item, field) for field in fields) for item in items)


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
    labels = _columns(str, *(["Protocol"] if several else []), "Message", "Sent by")
    taps = _columns(count_text, *([*names.values(), "All taps"] if separate else ["Messages"]))
    note = "A message that two taps saw is counted for each of them." if len(names) > 1 else ""
    sql = "" if several else query("types", _protocol(summary), list(names) if separate else [])
    columns = (*labels, *taps, *_columns(size_text, "Octets"))
    return Table("Messages by type and direction", note, columns, tuple(values), sql)


def error_table(summary: Summary) -> Table | None:
    """Return the messages that did not decode, by finding; None if there are none."""
    if not summary.undecoded:
        return None
    several = len(protocols_of(summary)) > 1
    names = short_names([tap.tap for tap in summary.taps])
    shown = summary.errors[:ERRORS_SHOWN]
    values = _pick(shown, *(["protocol"] if several else []), "text", "kind", "tap", "messages")
    listed = sum(error.messages for error in shown)
    # In the mode DROPMALFORMED they are only counted.
    kept = any(rows for path, rows in summary.tables.items() if path.endswith("/_errors"))
    note = join_sentences(
        "A finding is an example for all messages with its field and kind.",
        listed_text(listed, summary.undecoded, "messages that did not decode", "counted here"),
        "The tables named _errors have all of them with their frames." if kept else "",
    )
    columns = (
        *_columns(str, *(["Protocol"] if several else []), "Finding", "Kind"),
        *_tap_column(names),
        *_columns(count_text, "Messages"),
    )
    sql = "" if several else query("errors", _protocol(summary), ERRORS_SHOWN)
    return Table(ERRORS_TITLE, note, columns, values, sql)


def tap_table(summary: Summary) -> Table:
    """Return the table of taps; if there are many, only those with faults and the busiest.

    Times have dates only if the capture has several.
    """
    ranked = sorted(summary.taps, key=lambda tap: (-(tap.errors + tap.dropped + tap.missing), -tap.messages))
    shown = [tap for tap in summary.taps if tap in ranked[:TAPS_SHOWN]]
    missing = ["missing"] if summary.missing else []
    fields = ("tap", "protocol", "first", "last", "messages", "octets", "errors", "dropped", *missing)
    dated = len({text[:10] for tap in summary.taps for text in (tap.first, tap.last) if text}) > 1
    columns = (
        *_columns(str, "Tap", "Protocol"),
        *_columns(partial(clock_text, dated=dated), "First (UTC)", "Last (UTC)", word=True),
        *_columns(count_text, "Messages"),
        *_columns(size_text, "Octets"),
        *_columns(count_text, "Not decoded", "Dropped", *map(str.capitalize, missing)),
    )
    note = "Missing messages are in no readable segment, though earlier and later ones of the tap are."
    cut = listed_text(len(shown), len(summary.taps), "rows")
    return Table(
        "Taps", join_sentences(note if missing else "", cut), columns, _pick(shown, *fields), query("taps")
    )


def transfer_table(summary: Summary, findings: Findings) -> Table | None:
    """Return files by conversation, the largest first; None if no files were transferred."""
    if not summary.transfers:
        return None
    shown = summary.transfers[:TRANSFERS_SHOWN]
    fields = ("tap", "conversation", "peer", "begun", "ended", "deleted", "chunks", "octets", "seconds")
    columns = (
        *_tap_column(short_names([tap.tap for tap in summary.taps])),
        *_columns(str, "Conversation", "Peer"),
        *_columns(count_text, "Files begun", "Complete", "Deleted", "Chunks"),
        *_columns(size_text, "Octets"),
        *_columns(span_text, "Time"),
    )
    note = listed_text(len(shown), findings.total("transfers"), "conversations")
    sql = query("transfers", _protocol(summary), TRANSFERS_SHOWN)
    return Table("Files by conversation", note, columns, _pick(shown, *fields), sql)


def segment_table(summary: Summary) -> Table | None:
    """Return the segments that cannot be read or are odd; None if there are none."""
    told, aside = summary.segments.told, summary.segments.quarantined
    if not told:
        return None
    note = join_sentences(
        f"{count_text(aside)} could not be read and {'is' if aside == 1 else 'are'} set aside (quarantined).",
        f"The latest {SEGMENTS_SHOWN} are shown." if len(told) > SEGMENTS_SHOWN else "",
    )
    columns = (*_columns(str, "Segment", "Outcome", "Reason"), *_columns(count_text, "Run"))
    values = _pick(told[:SEGMENTS_SHOWN], "name", "outcome", "reason", "run")
    return Table(SEGMENTS_TITLE, note, columns, values, query("segments"))


def topic_table(findings: Findings) -> Table | None:
    """Return the topics, the slowest first; None if there are none."""
    if not findings.topics:
        return None
    fields = ("begun", "answered", "errors", "unanswered", "p50_us", "p99_us", "max_us")
    values = tuple(
        (_topic_text(item), *row)
        for item, row in zip(findings.topics, _pick(findings.topics, *fields), strict=True)
    )
    columns = (
        *_columns(str, "Topic"),
        *_columns(count_text, "Begun", "Answered", "Errors", "Unanswered"),
        *_columns(micros_text, "Median", "99 %", "Longest"),
    )
    note = "Ordered by the time within which 99 of 100 were answered."
    cut = listed_text(len(values), findings.total("topics"), "topics")
    sql = query("topics", findings.topics[0].protocol, TOPICS_KEPT)
    return Table("Slowest topics", join_sentences(note, cut), columns, values, sql)


def _topic_text(item: Topic) -> str:
    """Return the topic; a job's task comes after its service, as two services may share a task name."""
    if item.kind == "job" and item.service and item.topic:
        return f"{item.service}: {item.topic}"
    return item.topic or item.service or f"({KINDS.get(item.kind, item.kind)})"


def file_table(findings: Findings) -> Table | None:
    """Return the largest files; None if there were none."""
    if not findings.files:
        return None
    fields = ("filename", "peer", "outcome", "octets", "duration_us", "octets_per_s", "stalls", "stalled_us")
    columns = (
        *_columns(str, "File", "Peer", "Outcome"),
        *_columns(size_text, "Octets"),
        *_columns(micros_text, "Duration"),
        *_columns(lambda octets: f"{size_text(octets)}/s", "Speed"),
        *_columns(count_text, "Stalls"),
        *_columns(micros_text, "Stalled"),
    )
    note = "A stall is a wait for credit in the middle of a file."
    cut = listed_text(len(findings.files), findings.total("files"), "files")
    sql = query("files", findings.files[0].protocol, FILES_KEPT)
    return Table("Largest files", join_sentences(note, cut), columns, _pick(findings.files, *fields), sql)


def silence_table(findings: Findings, names: Mapping[str, str]) -> Table | None:
    """Return the longest silences; None if there were none. `names` has the names of taps."""
    if not findings.silences:
        return None
    found = findings.silences[:SILENCES_SHOWN]
    protocol = found[0].protocol
    dated = len({item.ts.date() for item in found}) > 1
    values = tuple(
        (conversation_name(item.peer, item.conversation, item.tap, {}), *row)
        for item, row in zip(found, _pick(found, "tap", "sender", "ts", "outcome", "silent_s"), strict=True)
    )
    columns = (
        *_columns(str, "Peer"),
        *_tap_column(names),
        *_columns(partial(role_name, protocol), "Silent side", word=True),
        *_columns(partial(moment_text, dated=dated, precise=True), "Since (UTC)", word=True),
        *_columns(lambda outcome: SILENCES.get(outcome, outcome), "Then", word=True),
        *_columns(span_text, "Duration"),
    )
    note = "Sides that sent nothing for longer than their protocol allows."
    cut = listed_text(len(found), findings.total("silences"), "silences")
    sql = query("silences", protocol, SILENCES_SHOWN)
    return Table("Longest silences", join_sentences(note, cut), columns, values, sql)


def violation_table(findings: Findings) -> Table | None:
    """Return all violations by kind, the concurrent reading first; None if there are none.

    The answers list the first violations of each conversation. A row counts all others of a reading.
    """
    if not findings.violation_counts:
        return None
    values: list[tuple[Any, ...]] = []
    notes = []
    for reading in READINGS:
        listed = [item for item in findings.violation_counts if item.reading == reading]
        values += (
            (reading, item.message or UNDECODED, item.kind, item.conversations, item.violations)
            for item in listed
        )
        number, total = sum(item.violations for item in listed), findings.total(reading)
        if total > number:
            values.append((reading, NOT_LISTED, None, None, total - number))
        notes.append(
            listed_text(number, total, f"violations of the {reading} reading", "listed in the answers")
        )
    columns = (
        *_columns(str, "Reading", "Message", "Kind"),
        *_columns(count_text, "Conversations", "Violations"),
    )
    rule = (
        "In the concurrent reading both sides may send without waiting for each other; a violation of it is a fault. "
        "In the strict reading one message follows another as in the specification; peers that do not wait violate "
        "it often, without harm."
    )
    note = join_sentences(rule, *notes)
    sql = query("violations", findings.violation_counts[0].protocol, NOT_LISTED)
    return Table(VIOLATIONS_TITLE, note, columns, tuple(values), sql)


def protocols_of(summary: Summary) -> list[str]:
    """Return the protocols of the capture, sorted."""
    return sorted({tap.protocol for tap in summary.taps if tap.protocol})


def _protocol(summary: Summary) -> str | None:
    return next(iter(protocols_of(summary)), None)
